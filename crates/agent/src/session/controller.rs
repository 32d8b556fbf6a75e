//! A controller's end of a session.

use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use parking_lot::Mutex;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use crate::session::calls::{CallTable, PendingReply};
use crate::session::child::Child;
use crate::session::connection::{OpeningResult, PARTING, PeerConnection, ReadHalf};
use crate::session::deploy::Deployment;
use crate::session::error::WAIT_LONGER;
use crate::session::frame::{FrameError, FrameReader, REPLY_LIMIT, REQUEST_LIMIT, SessionFrame};
use crate::session::pace::HostPace;
use crate::session::pump::{SessionEnd, beat_every, first_end, pump};
use crate::session::relay::{RelayFrame, RelayPlace};
use crate::session::wire::{DONE, MessageToController, OutgoingFrame, OutgoingRequest};
use crate::session::{AgentLaunch, Error, Hello, Invite, Options, Reply, Request, SshHost, Token};

/// The largest number of frames that may wait to be sent.
const UNSENT: usize = 64;

/// A session with one agent. Calls block. They may come from several threads, and several requests may be under way.
/// A separate thread does the input, output and beats.
///
/// Dropping a session closes it as [`Session::close`] does.
pub struct Session {
    name: String,
    peer: Hello,
    /// The least time limit of a call.
    call: Nanos,
    pace: HostPace,
    grace: Duration,
    calls: Arc<CallTable>,
    out: Sender<OutgoingFrame>,
    pub(crate) relay: Arc<RelayPlace>,
    closing: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    child: Option<Mutex<Child>>,
}

impl Session {
    /// Starts `command` and opens a session over its stdin and stdout. The command is an agent with `--stdio`, or a
    /// program that leads to one. Its stderr goes to [`Options::lines`]. Errors call the host `name`.
    ///
    /// Give the command its own process group. Ctrl-C then reaches only the controller, which ends the session in
    /// order.
    pub fn over_child(name: &str, command: Command, options: &Options) -> Result<Session, Error> {
        let (child, stdin, stdout) = Child::spawn(name, command, &options.lines)?;
        let (peer_name, lease, pace) = (name.to_owned(), options.lease, HostPace::default());
        let open = in_time(name, options, &pace, async move {
            let (reader, writer) = pipes(stdout, stdin)?;
            PeerConnection::new(&peer_name, reader, writer).opened(lease).await
        });
        Session::of_child(name, child, options, pace, open)
    }

    fn of_child(
        name: &str,
        child: Child,
        options: &Options,
        pace: HostPace,
        open: impl Future<Output = OpeningResult> + Send + 'static,
    ) -> Result<Session, Error> {
        match Session::open(name, options, pace, open) {
            Ok(mut session) => {
                session.child = Some(Mutex::new(child));
                Ok(session)
            }
            Err(error) => Err(child.explain(name, error)),
        }
    }

    /// Opens a session over a connected socket whose other end [`crate::session::serve_socket`] serves, in this
    /// process or in another.
    pub fn over_socket(name: &str, stream: UnixStream, options: &Options) -> Result<Session, Error> {
        let (peer_name, lease, pace) = (name.to_owned(), options.lease, HostPace::default());
        let open = in_time(name, options, &pace, async move {
            let (reader, writer) = crate::session::stdio::socket(stream.into())?.into_split();
            PeerConnection::new(&peer_name, reader, writer).opened(lease).await
        });
        Session::open(name, options, pace, open)
    }

    /// Starts an agent on `host` through the user's ssh and opens a session with it. Sends this landspeed to a host
    /// that has no landspeed of this build installed.
    pub fn over_ssh(host: &SshHost, launch: &AgentLaunch<'_>, options: &Options) -> Result<Session, Error> {
        let command = crate::session::ssh::ssh_command(host, options.handshake);
        Session::over_shell(command, host, launch, options)
    }

    /// Starts an agent on `host` through `command`, which must run /bin/sh there as ssh would, and opens a session with
    /// it. Sends this landspeed to a host that has no landspeed of this build installed.
    pub fn over_shell(
        command: Command,
        host: &SshHost,
        launch: &AgentLaunch<'_>,
        options: &Options,
    ) -> Result<Session, Error> {
        let mut options = options.clone();
        if host.may_ask() {
            options.handshake = options.handshake.max(Nanos::secs(120));
        }
        let (name, pace) = (host.destination(), HostPace::default());
        let (deployment, stderr) = Deployment::new(host, launch, &options, &pace);
        let (child, stdin, stdout) = Child::spawn(name, command, &stderr)?;
        let deployment = deployment.quoting(child.tail());
        let (peer_name, opening, login) = (name.to_owned(), options.clone(), pace.clone());
        let open = async move {
            let (reader, mut writer) = pipes(stdout, stdin)?;
            let reader = deployment.run(reader, &mut writer).await?;
            let opened = PeerConnection::new(&peer_name, reader, writer).opened(opening.lease);
            in_time(&peer_name, &opening, &login, opened).await
        };
        Session::of_child(name, child, &options, pace, open)
    }

    /// Connects to an agent that a person started by hand. The agent must have the certificate that `invite` pins, and
    /// must know `token`.
    pub fn over_tls(invite: &Invite, token: &Token, options: &Options) -> Result<Session, Error> {
        let (name, pace) = (invite.address.to_string(), HostPace::default());
        let open = crate::session::connect::connect(*invite, token.clone(), Hello::ours(options.lease));
        let open = in_time(&name, options, &pace, open);
        Session::open(&name, options, pace, open)
    }

    /// Runs `open` and then the session in a separate thread.
    fn open(
        name: &str,
        options: &Options,
        pace: HostPace,
        open: impl Future<Output = OpeningResult> + Send + 'static,
    ) -> Result<Session, Error> {
        let calls = Arc::<CallTable>::default();
        let (out, queue) = channel(UNSENT);
        let (relay, relayed) = RelayPlace::open();
        let (closing, closed) = oneshot::channel();
        let grace = Duration::from(options.grace);
        let worker = SessionWorker {
            calls: Arc::clone(&calls),
            out: out.clone(),
            queue,
            relay: Arc::clone(&relay),
            relayed,
            closing: closed,
            lease: options.lease,
            pace: pace.clone(),
            grace,
            stop: Arc::clone(&options.stop),
        };
        let (ready, opened) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("landspeed-session".to_owned())
            .spawn(move || worker.run(open, &ready))
            .map_err(Error::system("start a thread"))?;
        match opened.recv() {
            Ok(Ok(peer)) => Ok(Session {
                name: name.to_owned(),
                peer,
                call: options.call,
                pace,
                grace,
                calls,
                out,
                relay,
                closing: Some(closing),
                thread: Some(thread),
                child: None,
            }),
            Ok(Err(error)) => {
                // The connection is closed once the thread has ended.
                let _ = thread.join();
                Err(error)
            }
            Err(_) => Err(Error::Ended { why: "its thread panicked".to_owned() }),
        }
    }

    pub fn peer(&self) -> &Hello {
        &self.peer
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the longest time that [`Session::call`] waits for an answer: [`Options::call`], or more if the agent has
    /// been slow so far.
    pub fn call_limit(&self) -> Duration {
        self.limit(self.least_call_limit())
    }

    /// Returns the least value of [`Session::call_limit`]: [`Options::call`].
    pub fn least_call_limit(&self) -> Duration {
        self.call.into()
    }

    /// Returns the time limit of a wait for this agent: `least`, or more if the agent has been slow so far.
    pub fn limit(&self, least: Duration) -> Duration {
        self.pace.limit(least.into()).into()
    }

    /// Sends a request that takes no time of its own, and waits for its answer, for at most [`Session::call_limit`].
    pub fn call(&self, request: &Request) -> Result<Reply, Error> {
        let begun = Instant::now();
        let reply = self.start(request)?.wait(self.call_limit())?;
        self.pace.took(begun.elapsed());
        Ok(reply)
    }

    /// Sends a request without waiting for its answer; [`PendingReply::wait`] does that.
    pub fn start(&self, request: &Request) -> Result<PendingReply, Error> {
        let (id, pending) = self.calls.add(request)?;
        let frame = OutgoingFrame::new(&OutgoingRequest::Ask { id, request }, REQUEST_LIMIT)
            .map_err(Error::Unsendable)?;
        match self.out.try_send(frame) {
            Err(TrySendError::Full(_)) => Err(Error::Refused {
                why: format!("{UNSENT} requests wait to be sent: the agent does not read"),
            }),
            // If the session's thread is gone, it has left the reason in `calls`.
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(pending),
        }
    }

    /// Says goodbye and waits, at most [`Options::grace`], until the agent has restored everything. A child that has
    /// not ended by then is killed.
    pub fn close(self) {
        drop(self);
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let deadline = Instant::now() + self.grace + 2 * PARTING;
        // The queue is full only if the agent does not read; then the grace period ends the session.
        let _ = self.out.try_send(OutgoingFrame::end(DONE));
        drop(self.closing.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been printed on stderr, and the session is over either way.
            let _ = thread.join();
        }
        if let Some(child) = self.child.take() {
            child.into_inner().reap(deadline);
        }
    }
}

/// Runs `open` for at most [`Options::handshake`], or longer for a host that has been slow so far; after that time the
/// result is [`Error::Slow`].
fn in_time<O: Future<Output = OpeningResult>>(
    name: &str,
    options: &Options,
    pace: &HostPace,
    open: O,
) -> impl Future<Output = OpeningResult> + use<O> {
    let (limit, name, pace) = (pace.limit(options.handshake), name.to_owned(), pace.clone());
    async move {
        let begun = Instant::now();
        let opened = tokio::time::timeout(limit.into(), open).await;
        pace.took(begun.elapsed());
        opened.unwrap_or(Err(Error::Slow { name, limit, awaited: "a session", remedy: WAIT_LONGER }))
    }
}

/// Returns the child's stdout for reading and its stdin for writing.
fn pipes(stdout: ChildStdout, stdin: ChildStdin) -> Result<(pipe::Receiver, pipe::Sender), Error> {
    let reader = pipe::Receiver::from_owned_fd(stdout.into());
    let writer = pipe::Sender::from_owned_fd(stdin.into());
    reader.and_then(|reader| Ok((reader, writer?))).map_err(Error::system("use the child's pipes"))
}

/// The part of a session that runs in its thread.
struct SessionWorker {
    calls: Arc<CallTable>,
    out: Sender<OutgoingFrame>,
    queue: Receiver<OutgoingFrame>,
    relay: Arc<RelayPlace>,
    /// Frames that other sessions relay to this agent.
    relayed: Receiver<RelayFrame>,
    /// Resolves when the caller closes the session.
    closing: oneshot::Receiver<()>,
    /// Set once the user wants to stop.
    stop: Arc<AtomicBool>,
    /// The longest silence of the agent before the session ends, if the agent has not been slow so far.
    lease: Nanos,
    pace: HostPace,
    /// How long the agent may take to restore everything after our goodbye.
    grace: Duration,
}

impl SessionWorker {
    /// Opens the connection, reports the outcome through `ready`, and runs the session to its end.
    fn run(self, open: impl Future<Output = OpeningResult>, ready: &SyncSender<Result<Hello, Error>>) {
        let runtime = match crate::session::serve::event_loop() {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error))),
        };
        runtime.block_on(async {
            match open.await {
                Ok((connection, peer)) => {
                    let beats = beat_every(peer.lease_ns);
                    // The caller waits for this message before it does anything else.
                    let _ = ready.send(Ok(peer));
                    self.converse(connection, beats).await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
    }

    async fn converse(mut self, mut connection: PeerConnection, beats: Duration) {
        connection.reader.limit = REPLY_LIMIT;
        // An agent that may change settings has a fixed lease, as its guardian does, regardless of this end's patience.
        connection.reader.silence = Some(self.pace.limit(self.lease).into());
        connection.reader.stop = Arc::clone(&self.stop);
        let end = {
            let mut hear = pin!(hear(&mut connection.reader, &self.calls, &self.relay));
            let (queue, relayed, meter) = (&mut self.queue, &mut self.relayed, &self.relay.meter);
            let mut talk = pin!(pump(&mut connection.writer, queue, relayed, beats, meter));
            let (end, talks) = tokio::select! {
                end = first_end(hear.as_mut(), talk.as_mut(), self.grace) => end,
                // An agent that sends beats but does not read must not keep the caller for ever.
                () = closed_for(self.closing, self.grace + PARTING) => (SessionEnd::Done, true),
            };
            if let (SessionEnd::Broken(why), true) = (&end, talks) {
                // The queue is full only if the agent does not read. It would not read this last message either.
                let _ = self.out.try_send(OutgoingFrame::end(why));
                let _ = tokio::time::timeout(PARTING, talk).await;
            }
            end
        };
        self.calls.end(end.why());
        if matches!(end, SessionEnd::Broken(_)) {
            connection.part().await;
        }
    }
}

/// Waits until the caller begins to close the session, and then for `limit`.
async fn closed_for(closing: oneshot::Receiver<()>, limit: Duration) {
    // An error means that the session was dropped, which closes it too.
    let _ = closing.await;
    tokio::time::sleep(limit).await;
}

/// Passes answers and progress messages to their callers, and relayed frames to the other session, until the session
/// ends.
async fn hear(reader: &mut FrameReader<ReadHalf>, calls: &CallTable, relay: &RelayPlace) -> SessionEnd {
    loop {
        let message = match reader.next_in_session::<MessageToController>().await {
            Ok(SessionFrame::Message(message)) => Ok(message),
            Ok(SessionFrame::Relayed(frame)) => match relay.pass(frame) {
                Ok(()) => continue,
                Err(why) => return SessionEnd::Broken(why.to_owned()),
            },
            Err(error) => Err(error),
        };
        match message {
            Ok(MessageToController::Answer { id, reply }) => {
                if !calls.answer(id, reply) {
                    return SessionEnd::Broken(format!("an answer to request {id}, which was never made"));
                }
            }
            Ok(MessageToController::Progress { id, progress }) => {
                if !calls.progress(id, progress) {
                    return SessionEnd::Broken(format!("progress of request {id}, which was never made"));
                }
            }
            Ok(MessageToController::Beat) => {}
            Ok(MessageToController::End(why)) => return SessionEnd::said("the agent", &why),
            Err(error @ FrameError::Silent(_)) => return SessionEnd::Broken(format!("{error}{WAIT_LONGER}")),
            Err(error) => return SessionEnd::failed(&error),
        }
    }
}
