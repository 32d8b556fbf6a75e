//! Requests that wait for their answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use landspeed_record::TrialProgress;
use parking_lot::Mutex;

use crate::session::{Error, Reply, Request, one_line};

/// The largest number of unread progress messages of one request. Later ones are dropped.
const UNREAD: usize = 16;

/// A reply and the time at which it arrived.
type TimedReply = (Instant, Reply);

/// The requests that wait for their answers, and the reason why the session is over, if it is.
#[derive(Default)]
pub(crate) struct CallTable(Mutex<CallState>);

#[derive(Default)]
struct CallState {
    waiting: HashMap<u64, (SyncSender<TimedReply>, SyncSender<TrialProgress>)>,
    /// The id of the next request. All smaller ids have been used.
    next: u64,
    over: Option<String>,
}

impl CallTable {
    /// Registers a request. Returns its id and the handle that receives its answer, or an error if the session is over.
    pub(crate) fn add(self: &Arc<Self>, request: &Request) -> Result<(u64, PendingReply), Error> {
        let mut state = self.0.lock();
        if let Some(why) = &state.over {
            return Err(Error::Ended { why: why.clone() });
        }
        let id = state.next;
        state.next += 1;
        let (sender, answer) = sync_channel(1);
        let (teller, progress) = sync_channel(UNREAD);
        state.waiting.insert(id, (sender, teller));
        Ok((id, PendingReply { id, asked: request.name(), calls: Arc::clone(self), answer, progress }))
    }

    /// Passes `reply` to the caller that waits for the answer to request `id`, or drops it if no caller waits any
    /// longer. Returns false if no request had this id.
    pub(crate) fn answer(&self, id: u64, reply: Reply) -> bool {
        let mut state = self.0.lock();
        if let Some((caller, _)) = state.waiting.remove(&id) {
            // The caller may be gone by now. The channel holds one answer, so this never blocks.
            let _ = caller.try_send((Instant::now(), reply));
        }
        id < state.next
    }

    /// Passes `progress` to the caller that waits for request `id`, or drops it if [`UNREAD`] earlier messages are
    /// still unread. Returns false if no request had this id.
    pub(crate) fn progress(&self, id: u64, progress: TrialProgress) -> bool {
        let state = self.0.lock();
        if let Some((_, teller)) = state.waiting.get(&id) {
            let _ = teller.try_send(progress);
        }
        id < state.next
    }

    /// Ends the session. All present and future callers get [`Error::Ended`] with the reason `why`, or with the first
    /// reason if the session has already ended.
    pub(crate) fn end(&self, why: &str) {
        let mut state = self.0.lock();
        state.over.get_or_insert_with(|| why.to_owned());
        state.waiting.clear();
    }
}

/// A request under way. Dropping it gives up the answer; the agent still carries out the request.
#[must_use]
pub struct PendingReply {
    id: u64,
    asked: &'static str,
    calls: Arc<CallTable>,
    answer: Receiver<TimedReply>,
    progress: Receiver<TrialProgress>,
}

impl PendingReply {
    /// Returns the next unread progress message of the request, or `None` if there is none.
    pub fn progress(&self) -> Option<TrialProgress> {
        self.progress.try_recv().ok()
    }

    /// Waits for the answer, at most `limit`. [`Reply::Failed`] becomes [`Error::Refused`].
    pub fn wait(self, limit: impl Into<Duration>) -> Result<Reply, Error> {
        let limit = limit.into();
        let answer = self.poll(limit).map(|(_, answer)| answer);
        answer.unwrap_or(Err(Error::TimedOut { asked: self.asked, limit: limit.into() }))
    }

    /// Waits for the answer, at most `wait`, and returns it with the time of its arrival; `None` if it does not arrive
    /// in time. [`Reply::Failed`] becomes [`Error::Refused`], and [`Reply::Lost`] becomes [`Error::Lost`]. A session that
    /// is over gives the reason why it ended.
    pub fn poll(&self, wait: Duration) -> Option<(Instant, Result<Reply, Error>)> {
        match self.answer.recv_timeout(wait) {
            Ok((at, reply)) => Some((at, accepted(reply))),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let why = self.calls.0.lock().over.clone();
                let why = why.unwrap_or_else(|| "its thread panicked".to_owned());
                Some((Instant::now(), Err(Error::Ended { why })))
            }
        }
    }
}

/// Converts a refusal of the agent into an error.
fn accepted(reply: Reply) -> Result<Reply, Error> {
    match reply {
        Reply::Failed { why } => Err(Error::Refused { why: one_line(&why) }),
        Reply::Lost { why } => Err(Error::Lost { why: one_line(&why) }),
        reply => Ok(reply),
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        self.calls.0.lock().waiting.remove(&self.id);
    }
}
