//! A connection on a socket of its own. Nothing happens in it but what a thread does that calls it: there is no other one.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use landspeed_udt::{Connection, Event, Transmit};
use landspeed_units::Nanos;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use socket2::Socket;

use super::inbox::Inbox;
use super::options::{Receive, Send, Ways};
use crate::message::{self, BATCH, SEGMENTS};
use crate::{raw, shared_port, socket};

/// The longest sleep, after which a thread looks whether it is to leave.
const LOOK: Duration = Duration::from_millis(50);
/// Calls that one look makes at most to take in what has arrived, however much comes.
const MOST_AT_ONCE: usize = 64;

pub(super) struct Channel {
    pub(super) socket: Socket,
    ways: Ways,
    began: Instant,
    state: Mutex<State>,
    /// Held by the thread that has the lock of the state next.
    turn: Mutex<()>,
    /// Wakes threads that sleep until something arrives.
    wake: OwnedFd,
    sleeping: AtomicU32,
    /// The kernel cuts no datagrams of this size on this path.
    uncut: AtomicBool,
    /// Nothing has the peer's port any more, as ICMP says.
    refused: AtomicBool,
}

pub(super) struct State {
    pub(super) connection: Connection,
    inbox: Inbox,
}

impl Channel {
    /// For a connected socket, and the connection that `begin` makes for the time of now.
    pub(super) fn new(
        socket: Socket,
        ways: Ways,
        begin: impl FnOnce(Nanos) -> Connection,
    ) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let connection = begin(Nanos(0));
        socket.set_write_timeout(Some(LOOK))?;
        join_arrivals(&socket, ways)?;
        Ok(Channel {
            socket,
            ways,
            began: Instant::now(),
            state: Mutex::new(State { connection, inbox: Inbox::new() }),
            turn: Mutex::new(()),
            wake,
            sleeping: AtomicU32::new(0),
            uncut: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        })
    }

    /// Other ways from now on.
    ///
    /// # Errors
    /// Where the kernel does not have them.
    pub(super) fn adopt(&mut self, ways: Ways) -> io::Result<()> {
        self.ways = ways;
        join_arrivals(&self.socket, ways)
    }

    pub(super) fn now(&self) -> Nanos {
        Nanos::from(self.began.elapsed())
    }

    /// In turn: a thread that sends takes the lock again as soon as it has let go, and would keep all others out.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes in what one call brings, and does what is due. How many bytes of the stream came to lie in `into`, and whether anything
    /// arrived.
    pub(super) fn look(&self, state: &mut State, into: &mut [u8]) -> (usize, bool) {
        let now = self.now();
        let State { connection, inbox } = state;
        let took = inbox.take((self.socket.as_fd(), self.ways.receive), (connection, now), into);
        let arrived = took.as_ref().map_or_else(|error| error.kind() == ErrorKind::Interrupted, |_| true);
        self.note(took.as_ref().err());
        self.act(state);
        (took.unwrap_or(0), arrived)
    }

    /// Takes in all that has arrived, and does what is due. What comes of the stream waits in the connection.
    pub(super) fn catch_up(&self, state: &mut State) {
        for _ in 0..MOST_AT_ONCE {
            if !self.look(state, &mut []).1 {
                break;
            }
        }
    }

    /// Does what is due: timers, and what is to be sent. Wakes others whom that concerns.
    pub(super) fn act(&self, state: &mut State) {
        let now = self.now();
        state.connection.handle_timeout(now);
        while let Some(transmit) = state.connection.poll_transmit(now, SEGMENTS as u32) {
            self.send(transmit);
        }
        let mut concerned = false;
        while let Some(event) = state.connection.poll_event() {
            concerned |= !matches!(event, Event::Connected);
        }
        if concerned && self.sleeping.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        // A full counter wakes as well.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// How long until something is due.
    pub(super) fn due(&self) -> Duration {
        self.due_of(&self.lock().connection)
    }

    fn due_of(&self, connection: &Connection) -> Duration {
        connection.next_timeout().map_or(LOOK, |due| Duration::from_nanos((due - self.now()).0))
    }

    /// Sleeps until something arrives or is due, or `longest` is over; the lock is given back meanwhile. A sender that only waits for
    /// its pace takes in what arrives when that is over.
    pub(super) fn sleep(&self, state: MutexGuard<'_, State>, longest: Duration) -> io::Result<()> {
        let due = self.due_of(&state.connection);
        let watched = if state.connection.is_pacing() { 1 } else { 2 };
        // Before the lock is free: who takes it next knows that this thread sleeps.
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        drop(state);
        let mut ready = [PollFd::new(&self.wake, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
        let slept = socket::wait(&mut ready[..watched], due.min(longest).min(LOOK));
        self.sleeping.fetch_sub(1, Ordering::Relaxed);
        if !ready[0].revents().is_empty() {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        slept.map(drop)
    }

    /// Hands datagrams to the kernel. What it does not take is lost, as it may be on any path, and goes again.
    fn send(&self, transmit: Transmit<'_>) {
        let fd = self.socket.as_fd();
        let whole = [IoSlice::new(transmit.bytes)];
        let sent = if transmit.bytes.len() <= transmit.segment {
            message::send(fd, &whole, (0, None))
        } else if self.ways.send == Send::Gso && !self.uncut.load(Ordering::Relaxed) {
            message::send(fd, &whole, (0, Some(transmit.segment as u16))).or_else(|error| {
                // The path's MTU has become smaller than a segment, or its device cuts none.
                let refuses = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO));
                self.uncut.fetch_or(refuses, Ordering::Relaxed);
                if refuses { self.send_apart(transmit) } else { Err(error) }
            })
        } else {
            self.send_apart(transmit)
        };
        self.note(sent.as_ref().err());
    }

    fn send_apart(&self, transmit: Transmit<'_>) -> io::Result<()> {
        let fd = self.socket.as_fd();
        let mut parts = [IoSlice::new(&[]); SEGMENTS];
        let count = parts
            .iter_mut()
            .zip(transmit.datagrams())
            .map(|(part, bytes)| *part = IoSlice::new(bytes))
            .count();
        let each = if self.ways.send == Send::Plain { 1 } else { BATCH };
        for parts in parts[..count].chunks(each) {
            let sent = match parts {
                [_] => message::send(fd, parts, (0, None)).map(|()| 1),
                _ => message::send_many(fd, (parts, 1), 0),
            };
            sent?;
        }
        Ok(())
    }

    /// Keeps in mind what ICMP said of an earlier datagram; other errors are of one that is lost.
    fn note(&self, error: Option<&io::Error>) {
        if error.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            self.refused.store(true, Ordering::Relaxed);
        }
    }
}

/// Lets the kernel join datagrams where they are taken joined.
fn join_arrivals(socket: &Socket, ways: Ways) -> io::Result<()> {
    raw::set(socket, libc::IPPROTO_UDP, libc::UDP_GRO, u32::from(ways.receive == Receive::Gro))
}

impl Drop for Channel {
    fn drop(&mut self) {
        let _ = shared_port::deafen(&self.socket);
    }
}
