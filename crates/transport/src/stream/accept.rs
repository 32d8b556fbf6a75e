//! Accepting flows and turning strangers away.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_units::Nanos;
use rustix::event::{PollFd, PollFlags};
use socket2::Socket;

use super::Kind;
use super::flow::StreamFlow;
use crate::proof::{Greeting, Step};
use crate::transport::{Flow, Key, Listener};
use crate::{Error, Patience, socket};

/// How long a connection may take until it has said that it holds the key.
const PROOF_TIME: Duration = Duration::from_secs(1);
/// How long it may take from then on: its last word may get lost several times, and its client takes the flow for proven.
const LAST_WORD: Duration = Duration::from_secs(30);
/// Connections that may be at their proof at once; one more turns the oldest away that has not greeted yet.
const MOST_APPLICANTS: usize = 256;
/// The same for connections of one address: a trial opens 32 flows at a time.
const MOST_OF_ONE: usize = 64;
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
    applicants: VecDeque<Applicant>,
    proven: VecDeque<StreamFlow>,
    strangers: u64,
    /// What the kernel said when it had no room for a connection, the last time.
    no_room: Option<io::Error>,
}

/// A connection whose proof is under way. Non-blocking: none holds up another.
struct Applicant {
    socket: Socket,
    from: Option<IpAddr>,
    since: Instant,
    greeting: Greeting,
}

enum Standing {
    Waiting,
    Proven(u32),
    Stranger,
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
            applicants: VecDeque::new(),
            proven: VecDeque::new(),
            strangers: 0,
            no_room: None,
        })
    }

    /// Waits until something happens on any socket, at most `slice`.
    fn wait(&self, slice: Duration) -> Result<(), Error> {
        let sockets = std::iter::once(&self.socket).chain(self.applicants.iter().map(|a| &a.socket));
        let mut ready: Vec<PollFd<'_>> = sockets.map(|s| PollFd::new(s, PollFlags::IN)).collect();
        socket::wait(&mut ready, slice).map_err(|source| Error::refused("wait on", self.at, source))?;
        Ok(())
    }

    /// Takes the connections that the kernel holds, up to a number.
    fn take_in(&mut self) -> Result<(), Error> {
        for _ in 0..MOST_AT_ONCE {
            match self.socket.accept() {
                Ok((socket, from)) => self.admit(socket, from.as_socket().map(|from| from.ip()))?,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        self.no_room = Some(error);
                        std::thread::sleep(NO_ROOM);
                        return Ok(());
                    }
                    // accept(2): what befell the connection itself is no fault of the listener's.
                    Some(libc::ECONNABORTED | libc::EINTR | libc::EPROTO | libc::ENETDOWN) => {}
                    _ => return Err(Error::refused("accept on", self.at, error)),
                },
            }
        }
        Ok(())
    }

    fn admit(&mut self, socket: Socket, from: Option<IpAddr>) -> Result<(), Error> {
        socket.set_nonblocking(true).map_err(|source| Error::refused("accept on", self.at, source))?;
        self.make_room(from)?;
        let since = Instant::now();
        let applicant = Applicant { socket, from, since, greeting: Greeting::new() };
        let waiting = self.advance(applicant)?;
        self.applicants.extend(waiting);
        Ok(())
    }

    /// Turns applicants away until there is room for one more from `from`. One that has greeted holds the key, or heard
    /// a client that does: it is the last to go.
    fn make_room(&mut self, from: Option<IpAddr>) -> Result<(), Error> {
        while let Some(surplus) = self.surplus(from).and_then(|at| self.applicants.remove(at)) {
            let was_silent = !surplus.has_greeted();
            // Its hello may have come since it was last looked at.
            match self.advance(surplus)? {
                Some(applicant) if was_silent && applicant.has_greeted() => {
                    self.applicants.push_back(applicant);
                }
                Some(applicant) => self.turn_away(&applicant),
                None => {}
            }
        }
        Ok(())
    }

    /// The place of the applicant that has to go before another comes from `from`, if one has.
    fn surplus(&self, from: Option<IpAddr>) -> Option<usize> {
        let silent = || self.applicants.iter().enumerate().filter(|(_, applicant)| !applicant.has_greeted());
        let of_one = || silent().filter(|(_, applicant)| applicant.from == from);
        let oldest = if of_one().count() >= MOST_OF_ONE {
            of_one().next()
        } else if self.applicants.len() >= MOST_APPLICANTS {
            silent().next().or_else(|| self.applicants.iter().enumerate().next())
        } else {
            None
        };
        oldest.map(|(at, _)| at)
    }

    /// Closes by a reset, which tells a client that holds the key to come again.
    fn turn_away(&mut self, applicant: &Applicant) {
        self.strangers += 1;
        let _ = applicant.socket.set_linger(Some(Duration::ZERO));
    }

    /// Lets every applicant go on as far as it can.
    fn examine(&mut self) -> Result<(), Error> {
        for _ in 0..self.applicants.len() {
            let Some(applicant) = self.applicants.pop_front() else { break };
            let waiting = self.advance(applicant)?;
            self.applicants.extend(waiting);
        }
        Ok(())
    }

    /// Lets one go on as far as it can; `None` where it has come to an end.
    fn advance(&mut self, mut applicant: Applicant) -> Result<Option<Applicant>, Error> {
        match applicant.step(&self.key) {
            Standing::Waiting if applicant.is_in_time() => return Ok(Some(applicant)),
            Standing::Waiting => self.turn_away(&applicant),
            Standing::Stranger => {
                self.strangers += 1;
                // An end, not a reset: it lacks the key, and another try is no use.
                let _ = applicant.socket.set_linger(None);
            }
            Standing::Proven(number) => self.receive_as(number, applicant.socket)?,
        }
        Ok(None)
    }

    /// What kept flows from coming, where the kernel said it.
    fn why(&mut self, error: Error) -> Error {
        match (&error, self.no_room.take()) {
            (Error::NobodyCame { .. }, Some(source)) => Error::refused("accept on", self.at, source),
            _ => error,
        }
    }

    fn receive_as(&mut self, number: u32, socket: Socket) -> Result<(), Error> {
        let refused = |source| Error::refused("accept on", self.at, source);
        socket.set_nonblocking(false).map_err(refused)?;
        // Linger is inherited like the other options; what is not, is set once more.
        self.kind.options().set_accepted(&socket, &self.settings);
        self.proven.push_back(StreamFlow::new(self.kind, socket, number, (&self.settings, Nanos(0))));
        Ok(())
    }
}

impl Listener for StreamListener {
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        loop {
            if let Some(flow) = self.proven.pop_front() {
                return Ok(Box::new(flow));
            }
            let slice = patience.slice_at(self.at, self.strangers).map_err(|error| self.why(error))?;
            self.wait(slice)?;
            self.take_in()?;
            self.examine()?;
        }
    }

    fn strangers(&self) -> u64 {
        self.strangers
    }
}

impl Applicant {
    fn has_greeted(&self) -> bool {
        self.greeting.has_greeted()
    }

    fn is_in_time(&self) -> bool {
        let time = if self.has_greeted() { LAST_WORD } else { PROOF_TIME };
        self.since.elapsed() < time
    }

    /// Reads what has come and answers it.
    fn step(&mut self, key: &Key) -> Standing {
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
