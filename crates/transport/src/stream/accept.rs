//! Accepting flows and turning strangers away.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use landspeed_record::Settings;
use landspeed_units::Nanos;
use rustix::event::{PollFd, PollFlags};
use socket2::Socket;

use super::Kind;
use super::flow::StreamFlow;
use crate::admission::{Applicant, Applicants, Standing, is_shortage};
use crate::proof::{Greeting, Step};
use crate::transport::{Flow, Key, Listener};
use crate::{Error, Patience, socket};

/// Connections that are taken before proofs and patience are looked at again, however many come.
const MOST_AT_ONCE: usize = 256;
/// Pause where no more connections can be had: files or memory ran out.
const NO_ROOM: Duration = Duration::from_millis(5);
/// Connections that the kernel may hold for us; the kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 1024;

pub(crate) struct StreamListener {
    kind: &'static dyn Kind,
    socket: Socket,
    at: SocketAddr,
    settings: Settings,
    key: Key,
    applicants: Applicants<Connected>,
    /// What the kernel said when it had no room for a connection, the last time.
    no_room: Option<io::Error>,
}

/// A connection whose proof is under way. Its socket does not block.
struct Connected {
    socket: Socket,
    greeting: Greeting,
}

impl StreamListener {
    /// Starts to listen with the options that accepted flows inherit already set.
    pub(crate) fn start(
        kind: &'static dyn Kind,
        at: SocketAddr,
        (settings, key): (&Settings, &Key),
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

    /// Waits until something happens on any socket, at most `slice`.
    fn wait(&self, slice: Duration) -> Result<(), Error> {
        let sockets = std::iter::once(&self.socket).chain(self.applicants.iter().map(|one| &one.socket));
        let mut ready: Vec<PollFd<'_>> = sockets.map(|s| PollFd::new(s, PollFlags::IN)).collect();
        socket::wait(&mut ready, slice).map_err(|source| Error::refused("wait on", self.at, source))?;
        Ok(())
    }

    /// Takes the connections that the kernel holds, up to a number.
    fn take_in(&mut self) -> Result<(), Error> {
        for _ in 0..MOST_AT_ONCE {
            match self.socket.accept() {
                Ok((socket, from)) => {
                    socket
                        .set_nonblocking(true)
                        .map_err(|source| Error::refused("accept on", self.at, source))?;
                    let applicant = Connected { socket, greeting: Greeting::new() };
                    self.applicants.admit(from.as_socket().map(|from| from.ip()), applicant, &self.key);
                }
                Err(error) if is_shortage(&error) => {
                    self.no_room = Some(error);
                    std::thread::sleep(NO_ROOM);
                    return Ok(());
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    // accept(2): what befell the connection itself is no fault of the listener's.
                    Some(libc::ECONNABORTED | libc::EINTR | libc::EPROTO | libc::ENETDOWN) => {}
                    _ => return Err(Error::refused("accept on", self.at, error)),
                },
            }
        }
        Ok(())
    }

    /// What kept flows from coming, where the kernel said it.
    fn why(&mut self, error: Error) -> Error {
        match (&error, self.no_room.take()) {
            (Error::NobodyCame { .. }, Some(source)) => Error::refused("accept on", self.at, source),
            _ => error,
        }
    }

    fn flow(&self, number: u32, socket: Socket) -> Result<StreamFlow, Error> {
        let refused = |source| Error::refused("accept on", self.at, source);
        socket.set_nonblocking(false).map_err(refused)?;
        // Linger is inherited like the other options; what is not, is set once more.
        self.kind.options().set_accepted(&socket, &self.settings);
        Ok(StreamFlow::new(self.kind, socket, number, (&self.settings, Nanos(0))))
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

impl Connected {
    /// Reads what has come and answers it.
    fn read(&mut self, key: &Key) -> Standing {
        loop {
            let came = match (&self.socket).read(self.greeting.room()) {
                Ok(0) => return Standing::Stranger,
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Standing::Waiting,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Standing::Stranger,
            };
            match self.greeting.came(key, came) {
                Step::More => {}
                Step::Answer(answer) if (&self.socket).write_all(&answer).is_ok() => {}
                Step::Answer(_) | Step::Stranger => return Standing::Stranger,
                Step::Proven(number) => return Standing::Proven(number),
            }
        }
    }
}

impl Applicant for Connected {
    fn step(&mut self, key: &Key) -> Standing {
        let standing = self.read(key);
        if standing == Standing::Stranger {
            // An end, not a reset: it lacks the key, and another try is no use.
            let _ = self.socket.set_linger(None);
        }
        standing
    }

    fn has_greeted(&self) -> bool {
        self.greeting.has_greeted()
    }

    /// By a reset.
    fn turn_away(self) {
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }
}
