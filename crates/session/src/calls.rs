//! Requests that wait for their answers.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use landspeed_record::Progress;

use crate::{Error, Reply, Request, one_line};

/// Words of how far a request has come that may wait to be read.
const UNREAD: usize = 16;

/// A reply, and when it came.
type Answer = (Instant, Reply);

/// Who waits for which answer, and whether the session is over.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    waiting: HashMap<u64, (SyncSender<Answer>, SyncSender<Progress>)>,
    /// Ids below this were given out.
    next: u64,
    over: Option<String>,
}

impl Calls {
    /// A place for the answer to one request and the request's id, or why there will be no answer.
    pub(crate) fn add(self: &Arc<Self>, request: &Request) -> Result<(u64, Pending), Error> {
        let mut inner = self.lock();
        if let Some(why) = &inner.over {
            return Err(Error::Ended { why: why.clone() });
        }
        let id = inner.next;
        inner.next += 1;
        let (sender, answer) = sync_channel(1);
        let (teller, progress) = sync_channel(UNREAD);
        inner.waiting.insert(id, (sender, teller));
        Ok((id, Pending { id, asked: request.name(), calls: Arc::clone(self), answer, progress }))
    }

    /// Hands an answer over; one that came too late is dropped. `false` where `id` was never asked.
    pub(crate) fn answer(&self, id: u64, reply: Reply) -> bool {
        let mut inner = self.lock();
        if let Some((caller, _)) = inner.waiting.remove(&id) {
            // The caller may be gone by now; the place holds one answer, so this never blocks.
            let _ = caller.try_send((Instant::now(), reply));
        }
        id < inner.next
    }

    /// Hands over how far a request has come; what is not read in time is dropped. `false` where `id` was never asked.
    pub(crate) fn progress(&self, id: u64, progress: Progress) -> bool {
        let inner = self.lock();
        if let Some((_, teller)) = inner.waiting.get(&id) {
            let _ = teller.try_send(progress);
        }
        id < inner.next
    }

    /// The session is over: all who wait, and all who come, are told the first reason.
    pub(crate) fn end(&self, why: &str) {
        let mut inner = self.lock();
        inner.over.get_or_insert_with(|| why.to_owned());
        inner.waiting.clear();
    }

    /// Each change of the inner state is one call, so a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way. Dropping it gives up the answer; the agent still does what was asked.
#[must_use]
pub struct Pending {
    id: u64,
    asked: &'static str,
    calls: Arc<Calls>,
    answer: Receiver<Answer>,
    progress: Receiver<Progress>,
}

impl Pending {
    /// How far it has come, each word once; `None` where nothing new was said.
    pub fn progress(&self) -> Option<Progress> {
        self.progress.try_recv().ok()
    }

    /// The answer, within `limit`. [`Reply::Failed`] is [`Error::Refused`].
    pub fn wait(self, limit: impl Into<Duration>) -> Result<Reply, Error> {
        let limit = limit.into();
        let answer = self.poll(limit).map(|(_, answer)| answer);
        answer.unwrap_or(Err(Error::TimedOut { asked: self.asked, limit: limit.into() }))
    }

    /// As [`Pending::wait`], with the time at which the answer came; `None` where it has not come within `wait`.
    pub fn poll(&self, wait: Duration) -> Option<(Instant, Result<Reply, Error>)> {
        match self.answer.recv_timeout(wait) {
            Ok((at, reply)) => Some((at, accepted(reply))),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let why = self.calls.lock().over.clone();
                let why = why.unwrap_or_else(|| "its thread panicked".to_owned());
                Some((Instant::now(), Err(Error::Ended { why })))
            }
        }
    }
}

/// What the agent refused is an error.
fn accepted(reply: Reply) -> Result<Reply, Error> {
    match reply {
        Reply::Failed { why } => Err(Error::Refused { why: one_line(&why) }),
        Reply::Lost { why } => Err(Error::Lost { why: one_line(&why) }),
        reply => Ok(reply),
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.calls.lock().waiting.remove(&self.id);
    }
}
