//! A controller's end of a session.

use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landspeed_units::Nanos;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;

use crate::board::{Answer, Board};
use crate::child::Child;
use crate::link::{Link, PARTING};
use crate::wire::{Ask, DONE, Outgoing, Parcel, ToAgent};
use crate::worker::{Opened, Worker};
use crate::{Error, Hello, Invite, Options, Reply, Request, SshHost, Token};

/// Requests that may wait to be sent.
const UNSENT: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// The stdio of a child on this host.
    Child,
    Ssh,
    /// TLS to an agent started by hand.
    Tls,
    /// A connected socket.
    Socket,
}

/// A session with one agent. Calls block; they may come from several threads, and several requests may
/// be under way at once. A thread of its own does the input, output and beats.
///
/// Dropping it is [`Session::close`].
pub struct Session {
    name: String,
    transport: Transport,
    peer: Hello,
    call_limit: Nanos,
    grace: Duration,
    board: Arc<Board>,
    out: Sender<Parcel>,
    closing: Option<oneshot::Sender<()>>,
    worker: Option<JoinHandle<()>>,
    child: Option<Mutex<Child>>,
}

impl Session {
    /// Starts `command`, an agent with `--stdio` or what leads to one, and opens a session over its
    /// stdin and stdout. Its stderr goes to [`Options::lines`]. `name` is what errors call the host.
    ///
    /// Give the command its own process group, so that Ctrl-C reaches the controller, which then ends
    /// the session in order, and not the agent.
    pub fn over_child(name: &str, command: Command, options: &Options) -> Result<Session, Error> {
        let (child, stdin, stdout) = Child::spawn(name, command, &options.lines)?;
        let ours = Hello::ours(&options.features, options.lease);
        let link_name = name.to_owned();
        let open = async move {
            let reader = pipe::Receiver::from_owned_fd(stdout.into());
            let writer = pipe::Sender::from_owned_fd(stdin.into());
            let (reader, writer) =
                reader.and_then(|r| Ok((r, writer?))).map_err(Error::system("use the child's pipes"))?;
            let mut link = Link::new(&link_name, reader, writer);
            let peer = link.greet(&ours).await?;
            Ok((link, peer))
        };
        match Session::open(name, Transport::Child, options, open) {
            Ok(mut session) => {
                session.child = Some(Mutex::new(child));
                Ok(session)
            }
            Err(error) => Err(child.explain(name, error)),
        }
    }

    /// Opens a session over a connected socket, to an agent that [`crate::serve_socket`] serves at its other end, in this
    /// process or another.
    pub fn over_socket(name: &str, stream: UnixStream, options: &Options) -> Result<Session, Error> {
        let ours = Hello::ours(&options.features, options.lease);
        let link_name = name.to_owned();
        let open = async move {
            let (reader, writer) = crate::stdio::socket(stream.into())?.into_split();
            let mut link = Link::new(&link_name, reader, writer);
            let peer = link.greet(&ours).await?;
            Ok((link, peer))
        };
        Session::open(name, Transport::Socket, options, open)
    }

    /// Starts an agent on `host` through the user's ssh, see [`crate::ssh_command`], and opens a session
    /// with it.
    pub fn over_ssh(host: &SshHost, agent: &[&str], sudo: bool, options: &Options) -> Result<Session, Error> {
        let command = crate::ssh_command(host, agent, sudo)?;
        let mut options = options.clone();
        if host.may_ask() {
            options.handshake = options.handshake.max(Nanos::secs(120));
        }
        let mut session = Session::over_child(host.destination(), command, &options)?;
        session.transport = Transport::Ssh;
        Ok(session)
    }

    /// Connects to an agent that somebody started by hand; it must have the certificate that `invite`
    /// pins, and know `token`.
    pub fn over_tls(invite: &Invite, token: &Token, options: &Options) -> Result<Session, Error> {
        let ours = Hello::ours(&options.features, options.lease);
        let open = crate::connect::connect(*invite, token.clone(), ours);
        Session::open(&invite.address.to_string(), Transport::Tls, options, open)
    }

    /// Runs `open` and then the session in a thread of its own.
    pub(crate) fn open(
        name: &str,
        transport: Transport,
        options: &Options,
        open: impl Future<Output = Opened> + Send + 'static,
    ) -> Result<Session, Error> {
        let board = Arc::new(Board::default());
        let (out, queue) = channel(UNSENT);
        let (closing, closed) = oneshot::channel();
        let grace = Duration::from(options.grace);
        let worker = Worker {
            board: Arc::clone(&board),
            out: out.clone(),
            queue,
            closing: closed,
            lease: options.lease,
            grace,
            stop: Arc::clone(&options.stop),
        };
        let (ready, opened) = std::sync::mpsc::sync_channel(1);
        let (limit, slow) = (options.handshake, name.to_owned());
        let open = async move {
            let opened = tokio::time::timeout(limit.into(), open).await;
            opened.unwrap_or(Err(Error::Slow { name: slow, limit }))
        };
        let thread = std::thread::Builder::new()
            .name("landspeed-session".to_owned())
            .spawn(move || worker.run(open, &ready))
            .map_err(Error::system("start a thread"))?;
        match opened.recv() {
            Ok(Ok(peer)) => {
                let (name, call_limit) = (name.to_owned(), options.call);
                let (worker, closing) = (Some(thread), Some(closing));
                Ok(Session {
                    name,
                    transport,
                    peer,
                    call_limit,
                    grace,
                    board,
                    out,
                    closing,
                    worker,
                    child: None,
                })
            }
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

    /// How long [`Session::call`] waits: [`Options::call`].
    pub fn call_limit(&self) -> Duration {
        self.call_limit.into()
    }

    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Asks and waits, at most [`Options::call`].
    pub fn call(&self, request: &Request) -> Result<Reply, Error> {
        self.start(request)?.wait(self.call_limit)
    }

    /// Asks; the answer is waited for by [`Pending::wait`].
    pub fn start(&self, request: &Request) -> Result<Pending, Error> {
        let (id, answer) = self.board.enroll()?;
        let pending = Pending { id, asked: request.name(), board: Arc::clone(&self.board), answer };
        let parcel = Parcel::new(&Ask::Ask { id, request }, ToAgent::LIMIT).map_err(Error::Unsendable)?;
        match self.out.try_send(parcel) {
            Err(TrySendError::Full(_)) => Err(Error::Refused {
                why: format!("{UNSENT} requests wait to be sent: the agent does not read"),
            }),
            // Where the worker is gone, the board has told or will tell the reason.
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(pending),
        }
    }

    /// Says goodbye and waits, at most [`Options::grace`], until the agent has put everything back; a
    /// child that has not ended by then is killed.
    pub fn close(self) {
        drop(self);
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Session");
        shown.field("name", &self.name).field("transport", &self.transport).finish_non_exhaustive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let deadline = Instant::now() + self.grace + 2 * PARTING;
        // Full only where the agent does not read: the grace ends it then.
        let _ = self.out.try_send(Parcel::end::<ToAgent>(DONE));
        drop(self.closing.take());
        if let Some(worker) = self.worker.take() {
            // A panic there has been reported on stderr, and the session is over either way.
            let _ = worker.join();
        }
        if let Some(child) = self.child.take() {
            child.into_inner().unwrap_or_else(PoisonError::into_inner).reap(deadline);
        }
    }
}

/// A request under way. Dropping it gives up the answer; the agent still does what was asked.
#[must_use]
pub struct Pending {
    id: u64,
    asked: &'static str,
    board: Arc<Board>,
    answer: Receiver<Answer>,
}

impl Pending {
    /// The answer, within `limit`. [`Reply::Failed`] is [`Error::Refused`].
    pub fn wait(self, limit: impl Into<Duration>) -> Result<Reply, Error> {
        let limit = limit.into();
        let answer = self.poll(limit).map(|(_, answer)| answer);
        answer.unwrap_or(Err(Error::TimedOut { asked: self.asked, limit: limit.into() }))
    }

    /// As [`Pending::wait`], with the time at which the answer came; `None` where it has not come within `wait`.
    pub fn poll(&self, wait: Duration) -> Option<(Instant, Result<Reply, Error>)> {
        let over = || self.board.over().unwrap_or_else(|| "its thread panicked".to_owned());
        let (at, answer) = match self.answer.recv_timeout(wait) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => (Instant::now(), Err(over())),
        };
        Some((
            at,
            match answer {
                Ok(Reply::Failed { why }) => Err(Error::Refused { why: crate::one_line(&why) }),
                Ok(Reply::Lost { why }) => Err(Error::Lost { why: crate::one_line(&why) }),
                Ok(reply) => Ok(reply),
                Err(why) => Err(Error::Ended { why }),
            },
        ))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.board.forget(self.id);
    }
}
