//! A UDT connection on its own socket, driven only by the threads that call it.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use landspeed_udt::{Connection, TransmitBatch, UdtEvent};
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use socket2::Socket;

use super::inbox::UdtInbox;
use super::options::UdtSettings;
use crate::message::{self, BATCH, ReceiveMode, SEGMENTS, SendMode};
use crate::{raw, shared_port, socket};

/// The longest sleep. After it, a thread checks if it must stop.
const LOOK: Duration = Duration::from_millis(50);
/// The most receive calls in a row, however much arrives.
const MOST_AT_ONCE: usize = 64;

pub(super) struct UdtChannel {
    pub(super) socket: Socket,
    parsed: UdtSettings,
    began: Instant,
    state: Mutex<UdtState>,
    /// The lock that a thread takes before it waits for the lock of `state`, so that threads get that lock in order.
    turn: Mutex<()>,
    /// An eventfd that wakes threads which sleep until something arrives.
    wake: OwnedFd,
    sleeping: AtomicU32,
    /// True if the kernel has refused to cut a send into datagrams on this path (UDP_SEGMENT).
    gso_refused: AtomicBool,
    /// True if ICMP has reported that no socket is bound to the peer's port.
    refused: AtomicBool,
}

pub(super) struct UdtState {
    pub(super) connection: Connection,
    inbox: UdtInbox,
}

impl UdtChannel {
    /// Returns a channel over a connected socket. `begin` creates the connection, given the channel's current time.
    pub(super) fn new(
        socket: Socket,
        parsed: UdtSettings,
        begin: impl FnOnce(Nanos) -> Connection,
    ) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let connection = begin(Nanos(0));
        socket.set_write_timeout(Some(LOOK))?;
        join_arrivals(&socket, parsed)?;
        Ok(UdtChannel {
            socket,
            parsed,
            began: Instant::now(),
            state: Mutex::new(UdtState { connection, inbox: UdtInbox::new() }),
            turn: Mutex::new(()),
            wake,
            sleeping: AtomicU32::new(0),
            gso_refused: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        })
    }

    /// Replaces the settings for sending and receiving by `parsed`.
    ///
    /// # Errors
    /// Returns an error if the kernel does not support the new settings.
    pub(super) fn adopt(&mut self, parsed: UdtSettings) -> io::Result<()> {
        self.parsed = parsed;
        join_arrivals(&self.socket, parsed)
    }

    pub(super) fn now(&self) -> Nanos {
        Nanos::from(self.began.elapsed())
    }

    /// Locks the state, in the order of the calls. Without that order, a thread that sends would take the lock again
    /// as soon as it has released it, and keep all others out.
    pub(super) fn lock(&self) -> MutexGuard<'_, UdtState> {
        let _turn = self.turn.lock();
        self.state.lock()
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Makes one receive call, runs expired timers, and sends what is due. Returns the number of the stream's bytes
    /// that were put into `into`, and true if anything arrived.
    pub(super) fn look(&self, state: &mut UdtState, into: &mut [u8]) -> (usize, bool) {
        let now = self.now();
        let UdtState { connection, inbox } = state;
        let took = inbox.take(self.socket.as_fd(), self.parsed.receive, connection, now, into);
        let arrived = took.as_ref().map_or_else(|error| error.kind() == ErrorKind::Interrupted, |_| true);
        self.note(took.as_ref().err());
        self.act(state);
        (took.unwrap_or(0), arrived)
    }

    /// Receives everything that has arrived, runs expired timers, and sends what is due. The stream's bytes stay in
    /// the connection.
    pub(super) fn catch_up(&self, state: &mut UdtState) {
        for _ in 0..MOST_AT_ONCE {
            if !self.look(state, &mut []).1 {
                break;
            }
        }
    }

    /// Runs expired timers and sends what is due. Wakes sleeping threads if the connection reports an event.
    pub(super) fn act(&self, state: &mut UdtState) {
        let now = self.now();
        state.connection.handle_timeout(now);
        while let Some(transmit) = state.connection.poll_transmit(now, SEGMENTS as u32) {
            self.send(transmit);
        }
        let mut concerned = false;
        while let Some(event) = state.connection.poll_event() {
            concerned |= !matches!(event, UdtEvent::Connected);
        }
        if concerned && self.sleeping.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        // A write to a full counter fails, but still wakes the threads.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Returns the time until a timer expires or a packet is due.
    pub(super) fn due(&self) -> Duration {
        self.due_of(&self.lock().connection)
    }

    fn due_of(&self, connection: &Connection) -> Duration {
        connection.next_timeout().map_or(LOOK, |due| Duration::from_nanos((due - self.now()).0))
    }

    /// Releases the lock, and sleeps until a datagram arrives or something is due, for at most `longest`. While
    /// pacing delays the next packet, arrivals do not end the sleep, because they are received at its end.
    pub(super) fn sleep(&self, state: MutexGuard<'_, UdtState>, longest: Duration) -> io::Result<()> {
        let due = self.due_of(&state.connection);
        let watched = if state.connection.is_pacing() { 1 } else { 2 };
        // Counts this thread as sleeping before it releases the lock, so that the next thread with the lock wakes it if
        // necessary.
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

    /// Passes datagrams to the kernel. Datagrams that the kernel refuses count as lost on the path, and are sent
    /// again later.
    fn send(&self, transmit: TransmitBatch<'_>) {
        let fd = self.socket.as_fd();
        let whole = [IoSlice::new(transmit.bytes)];
        let sent = if transmit.bytes.len() <= transmit.segment {
            message::send(fd, &whole, 0, None)
        } else if self.parsed.send == SendMode::Gso && !self.gso_refused.load(Ordering::Relaxed) {
            message::send(fd, &whole, 0, Some(transmit.segment as u16)).or_else(|error| {
                // The path's MTU has become smaller than a segment, or its device does not cut.
                let refuses = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO));
                self.gso_refused.fetch_or(refuses, Ordering::Relaxed);
                if refuses { self.send_apart(transmit) } else { Err(error) }
            })
        } else {
            self.send_apart(transmit)
        };
        self.note(sent.as_ref().err());
    }

    fn send_apart(&self, transmit: TransmitBatch<'_>) -> io::Result<()> {
        let fd = self.socket.as_fd();
        let mut parts = [IoSlice::new(&[]); SEGMENTS];
        let count = parts
            .iter_mut()
            .zip(transmit.datagrams())
            .map(|(part, bytes)| *part = IoSlice::new(bytes))
            .count();
        let each = if self.parsed.send == SendMode::Plain { 1 } else { BATCH };
        for parts in parts[..count].chunks(each) {
            let sent = match parts {
                [_] => message::send(fd, parts, 0, None).map(|()| 1),
                _ => message::send_many(fd, parts, 1, 0),
            };
            sent?;
        }
        Ok(())
    }

    /// Records if the error of a socket call means that ICMP refused an earlier datagram. Other errors only mean that
    /// a datagram is lost.
    fn note(&self, error: Option<&io::Error>) {
        if error.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            self.refused.store(true, Ordering::Relaxed);
        }
    }
}

/// Switches UDP_GRO, by which the kernel joins received datagrams, on or off, as the settings request.
fn join_arrivals(socket: &Socket, parsed: UdtSettings) -> io::Result<()> {
    raw::set(socket, libc::IPPROTO_UDP, libc::UDP_GRO, u32::from(parsed.receive == ReceiveMode::Gro))
}

impl Drop for UdtChannel {
    fn drop(&mut self) {
        let _ = shared_port::connect_to_itself(&self.socket);
    }
}
