//! Accepts flows over stream sockets, and turns strangers away.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use landspeed_proof::{ServerProof, ServerProofStep};
use landspeed_record::Settings;
use landspeed_record::units::Nanos;
use rustix::event::{PollFd, PollFlags};
use socket2::Socket;

use super::StreamTransport;
use super::flow::StreamFlow;
use crate::admission::{Applicant, Applicants, ProofState, is_shortage};
use crate::transport::{Flow, Listener, ProofKey};
use crate::{Error, Patience, socket};

/// The most connections that are accepted before the listener checks its proofs and its deadline again.
const MOST_AT_ONCE: usize = 256;
/// The pause after a connection could not be accepted because file descriptors or memory ran out.
const NO_ROOM: Duration = Duration::from_millis(5);
/// The most connections that the kernel queues for the listener; the kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 1024;

pub(crate) struct StreamListener {
    kind: &'static dyn StreamTransport,
    socket: Socket,
    at: SocketAddr,
    settings: Settings,
    key: ProofKey,
    applicants: Applicants<StreamApplicant>,
    /// The latest error of accept(2) that means that file descriptors or memory ran out; `None` if there was none.
    no_room: Option<io::Error>,
}

/// A connection whose proof is under way, with a non-blocking socket.
struct StreamApplicant {
    socket: Socket,
    server_proof: ServerProof,
}

impl StreamListener {
    /// Opens a socket, sets the options that accepted flows inherit, and starts to listen at `at`.
    pub(crate) fn start(
        kind: &'static dyn StreamTransport,
        at: SocketAddr,
        settings: &Settings,
        key: &ProofKey,
    ) -> Result<Self, Error> {
        let socket = kind.bind(at, key)?;
        kind.options().set(&socket, settings);
        let refused = |source| Error::refused("listen on", at, source);
        socket.set_nonblocking(true).map_err(refused)?;
        socket.listen(BACKLOG).map_err(refused)?;
        Ok(StreamListener {
            kind,
            socket,
            at,
            settings: settings.clone(),
            key: *key,
            applicants: Applicants::new(),
            no_room: None,
        })
    }

    /// Waits for at most `slice` until there is a new connection, or a message on a connection whose proof is under
    /// way.
    fn wait(&self, slice: Duration) -> Result<(), Error> {
        let sockets = std::iter::once(&self.socket).chain(self.applicants.iter().map(|one| &one.socket));
        let mut ready: Vec<PollFd<'_>> = sockets.map(|s| PollFd::new(s, PollFlags::IN)).collect();
        socket::wait(&mut ready, slice).map_err(|source| Error::refused("wait on", self.at, source))?;
        Ok(())
    }

    /// Accepts the connections that the kernel has queued, up to a limit.
    fn take_in(&mut self) -> Result<(), Error> {
        for _ in 0..MOST_AT_ONCE {
            match self.socket.accept() {
                Ok((socket, from)) => {
                    socket
                        .set_nonblocking(true)
                        .map_err(|source| Error::refused("accept on", self.at, source))?;
                    let applicant = StreamApplicant { socket, server_proof: ServerProof::begin() };
                    self.applicants.admit(from.as_socket().map(|from| from.ip()), applicant, &self.key);
                }
                Err(error) if is_shortage(&error) => {
                    self.no_room = Some(error);
                    std::thread::sleep(NO_ROOM);
                    return Ok(());
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    // These are errors of the connection, not of the listener (accept(2)).
                    Some(libc::ECONNABORTED | libc::EINTR | libc::EPROTO | libc::ENETDOWN) => {}
                    _ => return Err(Error::refused("accept on", self.at, error)),
                },
            }
        }
        Ok(())
    }

    /// Returns the error to report for `error`: the kernel's error if no flow came because file descriptors or memory
    /// ran out, otherwise `error` itself.
    fn why(&mut self, error: Error) -> Error {
        match (&error, self.no_room.take()) {
            (Error::NobodyCame { .. }, Some(source)) => Error::refused("accept on", self.at, source),
            _ => error,
        }
    }

    fn flow(&self, number: u32, socket: Socket) -> Result<StreamFlow, Error> {
        let refused = |source| Error::refused("accept on", self.at, source);
        socket.set_nonblocking(false).map_err(refused)?;
        // The socket has inherited SO_LINGER and most other options from the listener's socket. Sets the options that
        // are not inherited.
        self.kind.options().set_accepted(&socket, &self.settings);
        Ok(StreamFlow::new(self.kind, socket, number, Nanos(0), &self.settings))
    }
}

impl Listener for StreamListener {
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        loop {
            if let Some((number, applicant)) = self.applicants.next_proven() {
                return Ok(Box::new(self.flow(number, applicant.socket)?));
            }
            let slice = patience.slice_at(self.at, self.strangers()).map_err(|error| self.why(error))?;
            self.wait(slice)?;
            self.take_in()?;
            self.applicants.advance_all(&self.key);
        }
    }

    fn strangers(&self) -> u64 {
        self.applicants.strangers()
    }
}

impl StreamApplicant {
    /// Reads the client's messages of the proof that have arrived, and answers them.
    fn read(&mut self, key: &ProofKey) -> ProofState {
        loop {
            let came = match (&self.socket).read(self.server_proof.room()) {
                Ok(0) => return ProofState::Stranger,
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return ProofState::Waiting,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return ProofState::Stranger,
            };
            match self.server_proof.came(key, came) {
                ServerProofStep::More => {}
                ServerProofStep::Answer(answer) if (&self.socket).write_all(&answer).is_ok() => {}
                ServerProofStep::Answer(_) | ServerProofStep::Stranger => return ProofState::Stranger,
                ServerProofStep::Proven(number) => return ProofState::Proven(number),
            }
        }
    }
}

impl Applicant for StreamApplicant {
    fn step(&mut self, key: &ProofKey) -> ProofState {
        let state = self.read(key);
        if state == ProofState::Stranger {
            // Makes the close orderly, without a reset, because a client that lacks the key should not try again.
            let _ = self.socket.set_linger(None);
        }
        state
    }

    fn has_greeted(&self) -> bool {
        self.server_proof.has_greeted()
    }

    /// Resets the connection, so that a client with the key tries again.
    fn turn_away(self) {
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }
}
