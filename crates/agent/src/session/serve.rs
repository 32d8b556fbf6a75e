//! An agent's end of a session.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use landspeed_record::TrialProgress;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Sender, channel};

use crate::session::connection::{PARTING, PeerConnection, ReadHalf};
use crate::session::frame::{FrameReader, SessionFrame};
use crate::session::pump::{SessionEnd, beat_every, first_end, pump};
use crate::session::relay::{RelayEnd, RelayMeter};
use crate::session::wire::{MessageToAgent, OutgoingFrame};
use crate::session::{Error, Hello, Reply, Request, ServeOptions, one_line};

/// The largest number of requests of one session that may be under way. A further one is refused.
const AT_ONCE: usize = 32;

/// A function that passes on the progress of a request.
pub type OnProgress<'a> = dyn Fn(TrialProgress) + Sync + 'a;

/// The work of an agent in a session: it answers requests, and cleans up at the end.
pub trait RequestHandler: Send + Sync + 'static {
    /// Answers one request. Each call runs in a new thread, so that thread settings such as the affinity end with the
    /// call. A panic is answered with [`Reply::Failed`].
    fn handle(&self, request: Request) -> Reply;

    /// Answers one request, and passes its progress to `on_progress`. A call of `on_progress` never waits: progress
    /// that the controller does not read in time is lost. By default, calls [`RequestHandler::handle`] and reports no
    /// progress.
    fn handle_with_progress(&self, request: Request, _on_progress: &OnProgress<'_>) -> Reply {
        self.handle(request)
    }

    /// Handles a sign of life from the controller: any message. Runs in a separate thread, so that it may wait for a
    /// lock. Messages that arrive during a call lead to one more call. The last call may come shortly after
    /// [`RequestHandler::gone`].
    fn heartbeat(&self) {}

    /// Returns this agent's end of a relay, always the same one. By default, returns one that relays nothing.
    fn relay(&self) -> Arc<RelayEnd> {
        Arc::default()
    }

    /// Stops traffic and restores everything, because the session ended for the reason `why`. Called once for each
    /// session that began, without delay, while requests may still be running. When this function returns, the
    /// controller learns that the agent is done.
    fn gone(&self, why: &str);
}

/// Returns an event loop for one end of a session. It has one thread, so that it takes at most one core from the
/// measured traffic.
pub(crate) fn event_loop() -> Result<Runtime, Error> {
    Builder::new_current_thread().enable_all().build().map_err(Error::system("start the event loop"))
}

/// Serves one session, after its handshake, to its end. Returns `Ok` if the controller said goodbye.
pub(crate) async fn attend(
    mut connection: PeerConnection,
    peer: Hello,
    handler: Arc<dyn RequestHandler>,
    options: &ServeOptions,
) -> Result<(), Error> {
    let (out, mut queue) = channel(AT_ONCE);
    let dispatcher = RequestDispatcher::open(&handler, &out)?;
    let relay = handler.relay();
    let mut relayed = relay.attach();
    connection.reader.silence = Some(options.silence(&peer).into());
    let end = {
        let mut hear = pin!(dispatcher.hear(&mut connection.reader, &relay));
        let (every, meter) = (beat_every(peer.lease_ns), RelayMeter::default());
        let mut talk = pin!(pump(&mut connection.writer, &mut queue, &mut relayed, every, &meter));
        let (end, talks) = first_end(hear.as_mut(), talk.as_mut(), PARTING).await;
        let mut restoring = pin!(restore(handler, end.why().to_owned()));
        if !talks {
            restoring.await;
        } else if let SessionEnd::Broken(why) = &end {
            // The queue is full only if the controller does not read. It would not read this last message either.
            let _ = out.try_send(OutgoingFrame::end(why));
            let _ = tokio::join!(tokio::time::timeout(PARTING, talk), restoring);
        } else {
            // Restoring may take longer than a lease, so the beats go on for a controller that waits.
            tokio::select! {
                biased;
                () = restoring.as_mut() => {}
                _ = talk => restoring.await,
            }
        }
        end
    };
    relay.detach();
    match end {
        SessionEnd::Done => {
            // Everything was read. The peer waits for the end of this stream, which ssh passes on only when this
            // process exits.
            connection.close().await;
            Ok(())
        }
        SessionEnd::Left(why) => Err(Error::Ended { why }),
        SessionEnd::Broken(why) => {
            connection.part().await;
            Err(Error::Ended { why })
        }
    }
}

/// Starts to restore everything in a thread outside the event loop, and returns a future that waits for its end. The
/// future ignores a panic of the thread, because the panic has been printed and the guardian still has the journal.
fn restore(handler: Arc<dyn RequestHandler>, why: String) -> impl Future<Output = ()> {
    let work = tokio::task::spawn_blocking(move || handler.gone(&why));
    async { drop(work.await) }
}

struct RequestDispatcher {
    handler: Arc<dyn RequestHandler>,
    out: Sender<OutgoingFrame>,
    places: Arc<Semaphore>,
    /// Wakes the thread that calls [`RequestHandler::heartbeat`].
    alive: SyncSender<()>,
}

impl RequestDispatcher {
    fn open(
        handler: &Arc<dyn RequestHandler>,
        out: &Sender<OutgoingFrame>,
    ) -> Result<RequestDispatcher, Error> {
        let (alive, beats) = sync_channel(1);
        let renew = {
            let handler = Arc::clone(handler);
            move || beats.iter().for_each(|()| handler.heartbeat())
        };
        thread("landspeed-lease", renew).map_err(Error::system("start a thread"))?;
        let places = Arc::new(Semaphore::new(AT_ONCE));
        Ok(RequestDispatcher { handler: Arc::clone(handler), out: out.clone(), places, alive })
    }

    /// Receives requests and starts to answer them until the session ends.
    async fn hear(&self, reader: &mut FrameReader<ReadHalf>, relay: &Arc<RelayEnd>) -> SessionEnd {
        loop {
            let message = match reader.next_in_session::<MessageToAgent>().await {
                Ok(SessionFrame::Message(message)) => message,
                Ok(SessionFrame::Relayed(frame)) => match relay.take(frame) {
                    Ok(()) => continue,
                    Err(why) => return SessionEnd::Broken(why.to_owned()),
                },
                Err(error) => return SessionEnd::failed(&error),
            };
            // If the channel is full, the thread has yet to handle an earlier sign of life. One more adds nothing.
            let _ = self.alive.try_send(());
            let taken = match message {
                MessageToAgent::Ask { id, request } => self.take(id, *request),
                MessageToAgent::Beat => Ok(()),
                MessageToAgent::End(why) => return SessionEnd::said("the controller", &why),
            };
            if taken.is_err() {
                return SessionEnd::Broken("the controller asks and does not read the answers".to_owned());
            }
        }
    }

    fn take(&self, id: u64, request: Request) -> Result<(), ReplyBacklog> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return self.refuse(id, format!("{AT_ONCE} requests are under way already: wait for one to end"));
        };
        let (handler, out) = (Arc::clone(&self.handler), self.out.clone());
        let work = move || {
            let on_progress = |progress| drop(out.try_send(OutgoingFrame::progress(id, progress)));
            let frame = OutgoingFrame::answer(id, answer(&*handler, request, &on_progress));
            // If the session is over, no one waits for the answer.
            let _ = out.blocking_send(frame);
            drop(place);
        };
        match thread("landspeed-request", work) {
            Ok(()) => Ok(()),
            Err(error) => self.refuse(id, format!("the agent cannot start a thread: {error}")),
        }
    }

    /// Refuses request `id`. Does not wait: returns an error if the controller does not read its answers.
    fn refuse(&self, id: u64, why: String) -> Result<(), ReplyBacklog> {
        self.out.try_send(OutgoingFrame::answer(id, Reply::Failed { why })).map_err(|_| ReplyBacklog)
    }
}

/// The error for a controller that does not read its answers, so that they pile up.
struct ReplyBacklog;

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Returns the handler's answer. A panic becomes a refusal, so that the agent survives it. The handler itself must
/// guard against state that a panic leaves half done.
fn answer(handler: &dyn RequestHandler, request: Request, on_progress: &OnProgress<'_>) -> Reply {
    let asked = request.name();
    catch_unwind(AssertUnwindSafe(|| handler.handle_with_progress(request, on_progress))).unwrap_or_else(
        |panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Reply::Failed {
                why: format!("the agent panicked at {asked}, a bug in landspeed: {}", one_line(text)),
            }
        },
    )
}
