//! A proven UDP flow.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_units::{Bytes, Nanos};
use rustix::net::SendFlags;
use socket2::Socket;

use super::counters::{Arrivals, Counters};
use super::identity::Identity;
use super::message;
use super::options::{OPTIONS, Ways};
use super::receive::UdpReceiver;
use super::send::UdpSender;
use super::wire::{CONTROL, Feedback, Pass};
use crate::noun::{Flow, Progress, Receiver, Sender};
use crate::{Datagrams, Error};

/// The longest that a call waits without its caller looking whether to stop, and without feedback.
const LOOK: Duration = Duration::from_millis(50);
/// Feedback that comes so long after the last datagram was sent speaks of all of them: what it does not
/// name is lost. Longer than the round trips and queues that this program measures.
const SETTLED: Duration = Duration::from_millis(400);
/// Datagrams that one look for feedback takes at most.
const MOST_DRAINED: usize = 256;

/// A proven UDP flow.
pub(super) struct UdpFlow {
    pub(super) socket: Socket,
    pub(super) identity: Identity,
    pub(super) counters: Counters,
    pub(super) ways: Ways,
    number: u32,
    not_as_asked: Vec<String>,
    /// Whether whoever receives was woken to leave.
    woken: AtomicBool,
    /// Whether a receiver takes the peer's datagrams; else `progress` does.
    receiving: AtomicBool,
    reported: AtomicU64,
    heard: Mutex<Heard>,
}

/// What the peer has said, and what this end had sent when it was last asked.
#[derive(Debug)]
struct Heard {
    feedback: Feedback,
    feedback_at: Instant,
    sent: u64,
    sent_at: Instant,
}

impl UdpFlow {
    /// A flow from its connected socket, whose options are read back against `settings`.
    pub(super) fn new(
        socket: Socket,
        number: u32,
        settings: &Settings,
        identity: Identity,
    ) -> io::Result<Self> {
        socket.set_read_timeout(Some(LOOK))?;
        socket.set_write_timeout(Some(LOOK))?;
        let not_as_asked = OPTIONS.read_back(&socket, settings);
        let now = Instant::now();
        let heard = Heard { feedback: Feedback::default(), feedback_at: now, sent: 0, sent_at: now };
        Ok(UdpFlow {
            socket,
            identity,
            counters: Counters::new(),
            ways: Ways::of(settings),
            number,
            not_as_asked,
            woken: AtomicBool::new(false),
            receiving: AtomicBool::new(false),
            reported: AtomicU64::new(0),
            heard: Mutex::new(heard),
        })
    }

    /// Says to the client that it is proven.
    pub(super) fn welcome(&self) {
        if let Some(welcome) = self.identity.welcome() {
            self.tell(welcome);
        }
    }

    /// Tells the peer what came so far.
    pub(super) fn report(&self, arrivals: &Arrivals) {
        let number = self.reported.fetch_add(1, Ordering::Relaxed) + 1;
        let (highest, received_bytes) = (arrivals.highest, arrivals.received_bytes);
        self.tell(self.identity.tell(&Feedback { number, highest, received_bytes }).as_ref());
    }

    /// A word to the peer that may get lost: it is said again when it matters.
    fn tell(&self, datagram: &[u8]) {
        let _ = rustix::net::send(&self.socket, datagram, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Takes a datagram that is no data.
    pub(super) fn note(&self, datagram: &[u8]) {
        if let Some(feedback) = self.identity.told(datagram) {
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if feedback.number > heard.feedback.number {
                heard.feedback = feedback;
                heard.feedback_at = Instant::now();
            }
        } else if self.identity.is_confirm(datagram) {
            self.welcome();
        } else if Pass::parse(datagram).is_none() {
            self.counters.count_malformed();
        }
    }

    /// Whether whoever receives shall leave.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// There is no receiver any more.
    pub(super) fn receiver_left(&self) {
        self.receiving.store(false, Ordering::Release);
    }

    /// Takes what the peer has said, without waiting. Errors are left to whoever sends: the kernel tells
    /// them again.
    fn drain(&self) {
        let mut datagram = [0; CONTROL];
        for _ in 0..MOST_DRAINED {
            match message::receive(self.socket.as_fd(), &mut datagram, libc::MSG_DONTWAIT) {
                Ok(length) if length > 0 => self.note(datagram.get(..length).unwrap_or_default()),
                _ => return,
            }
        }
    }

    fn name(&self) -> String {
        format!("flow {}", self.number)
    }
}

impl Flow for UdpFlow {
    fn number(&self) -> u32 {
        self.number
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// UDP sets nothing up: all that happens is the proof.
    fn set_up(&self) -> Nanos {
        Nanos(0)
    }

    fn not_as_asked(&self) -> &[String] {
        &self.not_as_asked
    }

    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error> {
        let refused = |source| Error::refused("send by UDP_SEGMENT on", self.name(), source);
        Ok(Box::new(UdpSender::new(self).map_err(refused)?))
    }

    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error> {
        let refused = |source| Error::refused("receive by UDP_GRO on", self.name(), source);
        let receiver = UdpReceiver::new(self).map_err(refused)?;
        self.receiving.store(true, Ordering::Release);
        Ok(Box::new(receiver))
    }

    fn progress(&self) -> io::Result<Progress> {
        if !self.receiving.load(Ordering::Acquire) {
            self.drain();
        }
        let sent = self.counters.sent();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.sent != sent {
            heard.sent = sent;
            heard.sent_at = Instant::now();
        }
        let settled = heard.feedback_at.saturating_duration_since(heard.sent_at) >= SETTLED;
        Ok(Progress {
            acked: Bytes(heard.feedback.received_bytes),
            outstanding: sent > heard.feedback.highest && !settled,
            ..Progress::default()
        })
    }

    fn datagrams(&self) -> Option<Datagrams> {
        Some(self.counters.datagrams())
    }

    fn wake_receiver(&self) {
        self.woken.store(true, Ordering::Release);
        // A datagram socket that is shut for reading wakes whoever waits in it, empty-handed.
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    fn abort(&self) {
        self.woken.store(true, Ordering::Release);
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
