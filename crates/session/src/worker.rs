//! The thread behind a controller's session.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use landspeed_units::Nanos;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::oneshot;

use crate::board::Board;
use crate::frame::{FrameReader, REPLY_LIMIT};
use crate::link::{Link, PARTING, Reading};
use crate::pump::{Over, beat_every, first_over, pump};
use crate::wire::{Parcel, ToAgent, ToController};
use crate::{Error, Hello};

/// An opened link and who is at its other end, or why there is none.
pub(crate) type Opened = Result<(Link, Hello), Error>;

pub(crate) struct Worker {
    pub(crate) board: Arc<Board>,
    pub(crate) out: Sender<Parcel>,
    pub(crate) queue: Receiver<Parcel>,
    /// Resolves when the caller closes the session.
    pub(crate) closing: oneshot::Receiver<()>,
    /// Set once the user wants an end.
    pub(crate) stop: Arc<AtomicBool>,
    /// How long the agent may be silent.
    pub(crate) lease: Nanos,
    /// How long the agent may take to put everything back after our goodbye.
    pub(crate) grace: Duration,
}

impl Worker {
    /// Opens, says how that went through `ready`, and runs the session to its end.
    pub(crate) fn run(self, open: impl Future<Output = Opened>, ready: &SyncSender<Result<Hello, Error>>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime.map_err(Error::system("start the session's event loop")) {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error))),
        };
        runtime.block_on(async {
            match open.await {
                Ok((link, peer)) => {
                    let beats = beat_every(peer.lease_ns);
                    // The caller waits for exactly this one.
                    let _ = ready.send(Ok(peer));
                    self.converse(link, beats).await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
    }

    async fn converse(mut self, mut link: Link, beats: Duration) {
        link.reader.limit = REPLY_LIMIT;
        link.reader.silence = Some(self.lease.into());
        link.reader.stop = Arc::clone(&self.stop);
        let over = {
            let mut hear = pin!(hear(&mut link.reader, &self.board));
            let mut talk = pin!(pump::<ToAgent>(&mut link.writer, &mut self.queue, beats));
            let (over, talks) = tokio::select! {
                over = first_over(hear.as_mut(), talk.as_mut(), self.grace) => over,
                // An agent that beats but does not read must not keep the caller for ever.
                () = closed_for(self.closing, self.grace + PARTING) => (Over::Done, true),
            };
            if let (Over::Broken(why), true) = (&over, talks) {
                // Full only where the agent does not read: then it reads no last words either.
                let _ = self.out.try_send(Parcel::end::<ToAgent>(why));
                let _ = tokio::time::timeout(PARTING, talk).await;
            }
            over
        };
        self.board.end(over.why());
        if matches!(over, Over::Broken(_)) {
            link.part().await;
        }
    }
}

/// Returns `limit` after the caller began to close the session.
async fn closed_for(closing: oneshot::Receiver<()>, limit: Duration) {
    // An error says that the session was dropped, which is the same.
    let _ = closing.await;
    tokio::time::sleep(limit).await;
}

/// Hands answers over until the session ends.
async fn hear(reader: &mut FrameReader<Reading>, board: &Board) -> Over {
    loop {
        match reader.next::<ToController>().await {
            Ok(ToController::Answer { id, reply }) => {
                if !board.post(id, reply) {
                    return Over::Broken(format!("an answer to request {id}, which was never made"));
                }
            }
            Ok(ToController::Beat) => {}
            Ok(ToController::End(why)) => return Over::said("the agent", &why),
            Err(error) => return Over::failed(&error),
        }
    }
}
