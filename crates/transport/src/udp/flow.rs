//! A proven UDP flow.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use landspeed_record::{Details, NotAsAsked, Parted, Settings};
use landspeed_units::{Bytes, Nanos};
use rustix::net::SendFlags;
use socket2::Socket;

use super::counters::Counters;
use super::identity::Identity;
use super::options::{OPTIONS, RECEIVE, Receive, Ways};
use super::receive::UdpReceiver;
use super::send::UdpSender;
use super::wire::{CONTROL, Feedback, Kind, Pass};
use crate::message;
use crate::transport::{Flow, Progress, Receiver, Sender};
use crate::{Datagrams, Error, Patience, raw, shared_port};

/// The longest that a call waits without its caller looking whether to stop, and without feedback.
const LOOK: Duration = Duration::from_millis(50);
/// Feedback that comes so long after the last datagram was sent speaks of all of them: what it does not
/// name is lost. Longer than the round trips and queues that this program measures.
const SETTLED: Duration = Duration::from_millis(400);
/// Datagrams that one look for feedback takes at most.
const MOST_DRAINED: usize = 256;
/// Time between two words of an end that has finished, each of which may get lost.
const AGAIN: Duration = Duration::from_millis(10);
/// Datagrams among which some would have been joined if the stack joined any.
const MANY: u64 = 1000;
/// How often an end that knows that both have finished says so before it leaves.
const FAREWELLS: u32 = 3;

pub(super) struct UdpFlow {
    pub(super) socket: Socket,
    pub(super) identity: Identity,
    pub(super) counters: Counters,
    pub(super) ways: Ways,
    /// Sends that the kernel numbered, because it was lent their memory.
    pub(super) numbers: AtomicU32,
    number: u32,
    not_as_asked: Vec<NotAsAsked>,
    /// Whether its receiver was woken to leave.
    woken: AtomicBool,
    /// Whether a receiver takes the peer's datagrams; else `progress` does.
    receiving: AtomicBool,
    reported: AtomicU64,
    /// Whether its segments went one by one in the end.
    parted: AtomicBool,
    heard: Mutex<Heard>,
}

/// What the peer has said last, and what this end had sent when it was last asked.
#[derive(Debug)]
struct Heard {
    feedback: Option<Feedback>,
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
        let heard = Heard { feedback: None, feedback_at: now, sent: 0, sent_at: now };
        Ok(UdpFlow {
            socket,
            identity,
            counters: Counters::default(),
            ways: Ways::of(settings),
            numbers: AtomicU32::new(0),
            number,
            not_as_asked,
            woken: AtomicBool::new(false),
            receiving: AtomicBool::new(false),
            reported: AtomicU64::new(0),
            parted: AtomicBool::new(false),
            heard: Mutex::new(heard),
        })
    }

    /// Whether datagrams were to be joined, came in numbers, and none was.
    fn came_apart(&self) -> bool {
        self.ways.receive == Receive::Gro
            && !self.counters.has_joined()
            && self.counters.datagrams().received >= MANY
    }

    /// Says to the client that it is proven.
    pub(super) fn welcome(&self) {
        if let Some(welcome) = self.identity.welcome() {
            self.tell(welcome);
        }
    }

    pub(super) fn report(&self, arrivals: &Datagrams) {
        self.report_as(Kind::Feedback, arrivals);
    }

    fn report_as(&self, kind: Kind, arrivals: &Datagrams) {
        let number = self.reported.fetch_add(1, Ordering::Relaxed) + 1;
        let (highest, received_bytes) = (arrivals.highest, arrivals.received_bytes.0);
        self.tell(self.identity.tell(&Feedback { kind, number, highest, received_bytes }).as_ref());
    }

    /// A word to the peer that may get lost: it is said again when it matters.
    fn tell(&self, datagram: &[u8]) {
        let _ = rustix::net::send(&self.socket, datagram, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Takes a datagram that is no data.
    pub(super) fn note(&self, datagram: &[u8]) {
        if let Some(feedback) = self.identity.told(datagram) {
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if heard.feedback.is_none_or(|last| feedback.number > last.number) {
                heard.feedback = Some(feedback);
                heard.feedback_at = Instant::now();
            }
        } else if self.identity.is_confirm(datagram) {
            self.welcome();
        } else if Pass::parse(datagram).is_none() {
            self.counters.count_malformed();
        }
    }

    /// Whether its receiver has to leave.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// What found no room in the socket, by SO_MEMINFO (SK_MEMINFO_DROPS, include/uapi/linux/sock_diag.h); nothing where the
    /// kernel does not tell.
    fn overflowed(&self) -> u64 {
        const DROPS: usize = 8;
        let told = raw::get::<[u32; DROPS + 1]>(&self.socket, libc::SOL_SOCKET, libc::SO_MEMINFO);
        told.map_or(0, |told| told[DROPS].into())
    }

    /// What the peer said last is of this kind.
    fn last_heard(&self) -> Option<Kind> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.feedback.map(|feedback| feedback.kind)
    }

    pub(super) fn peer_has_ended(&self) -> bool {
        matches!(self.last_heard(), Some(Kind::End | Kind::BothEnd))
    }

    /// Bytes that the peer said it has.
    pub(super) fn arrived(&self) -> u64 {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.feedback.map_or(0, |feedback| feedback.received_bytes)
    }

    /// Its segments do not fit the path any more.
    pub(super) fn was_parted(&self) {
        self.parted.store(true, Ordering::Relaxed);
    }

    /// There is no receiver any more.
    pub(super) fn receiver_left(&self) {
        self.receiving.store(false, Ordering::Release);
    }

    /// Takes what the peer has said, without waiting. Errors are left to the next send, which the
    /// kernel tells them again.
    fn drain(&self) -> io::Result<()> {
        let mut datagram = [0; CONTROL];
        for _ in 0..MOST_DRAINED {
            match message::receive(self.socket.as_fd(), &mut datagram, libc::MSG_DONTWAIT)? {
                0 => break,
                length => self.note(datagram.get(..length).unwrap_or_default()),
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        format!("flow {}", self.number)
    }
}

impl Drop for UdpFlow {
    fn drop(&mut self) {
        let _ = shared_port::deafen(&self.socket);
    }
}

impl Flow for UdpFlow {
    fn number(&self) -> u32 {
        self.number
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd()]
    }

    /// UDP sets nothing up: all that happens is the proof.
    fn set_up(&self) -> Nanos {
        Nanos(0)
    }

    fn not_as_asked(&self) -> Vec<NotAsAsked> {
        let apart = self.came_apart().then(|| {
            NotAsAsked::of(
                RECEIVE.name,
                "gro",
                "plain",
                "the stack joined no datagrams: each came in a call of its own",
            )
        });
        self.not_as_asked.iter().cloned().chain(apart).collect()
    }

    fn adopt(&mut self, settings: &Settings) {
        OPTIONS.set_accepted(&self.socket, settings);
        self.not_as_asked = OPTIONS.read_back(&self.socket, settings);
        self.ways = Ways::of(settings);
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
            let _ = self.drain();
        }
        let sent = self.counters.sent();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.sent != sent {
            heard.sent = sent;
            heard.sent_at = Instant::now();
        }
        let settled = heard.feedback_at.saturating_duration_since(heard.sent_at) >= SETTLED;
        Ok(Progress {
            acked: Bytes(heard.feedback.map_or(0, |feedback| feedback.received_bytes)),
            outstanding: sent > heard.feedback.map_or(0, |feedback| feedback.highest) && !settled,
            ..Progress::default()
        })
    }

    fn datagrams(&self) -> Option<Datagrams> {
        Some(Datagrams { overflowed: self.overflowed(), ..self.counters.datagrams() })
    }

    fn tell(&self, details: &mut Details) {
        if self.parted.load(Ordering::Relaxed) {
            details.get_mut::<Parted>().0 += 1;
        }
    }

    fn wake_receiver(&self) {
        self.woken.store(true, Ordering::Release);
        // A datagram socket that is shut for reading wakes the thread that waits in it, empty-handed.
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    /// Says so until the peer has said so too and knows of this end's: any word may get lost. The last words are said some times more, and
    /// a peer that has left after its own needs none.
    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error> {
        let refused = |why| Error::refused("finish", self.name(), io::Error::other(why));
        if self.is_woken() {
            return Err(refused("its receiver was woken before the end"));
        }
        let mut farewells = 0;
        while farewells < FAREWELLS {
            let has_left = self.drain().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
            let kind = if self.peer_has_ended() { Kind::BothEnd } else { Kind::End };
            farewells += u32::from(self.last_heard() == Some(Kind::BothEnd));
            self.report_as(kind, &self.counters.datagrams());
            if has_left && self.peer_has_ended() {
                return Ok(());
            }
            let slice = patience.slice()?.ok_or_else(|| refused("the peer did not finish in time"))?;
            std::thread::sleep(slice.min(AGAIN));
        }
        Ok(())
    }

    fn abort(&self) -> io::Result<()> {
        self.woken.store(true, Ordering::Release);
        self.socket.shutdown(Shutdown::Both)
    }
}
