//! A proven UDP flow.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Details, SegmentationFallbacks, SettingMismatch, Settings};
use parking_lot::Mutex;
use rustix::net::SendFlags;
use socket2::Socket;

use super::counters::UdpCounters;
use super::identity::FlowIdentity;
use super::options::{OPTIONS, RECEIVE, UdpSettings};
use super::receive::UdpReceiver;
use super::send::UdpSender;
use super::wire::{CONTROL, DatagramFeedback, DatagramKind, ProofPass};
use crate::message::{self, ReceiveMode};
use crate::transport::{AckProgress, Flow, Receiver, Sender};
use crate::{DatagramTotals, Error, Patience, raw, shared_port};

/// The longest time that a call waits. After it, the caller can check whether to stop, and a receiver can send
/// feedback.
const LOOK: Duration = Duration::from_millis(50);
/// Feedback that arrives at least this long after the last send counts as complete: datagrams that it does not include
/// are lost. The time exceeds the round trips and queueing delays that this program measures.
const SETTLED: Duration = Duration::from_millis(400);
/// The most datagrams that one check for feedback receives.
const MOST_DRAINED: usize = 256;
/// The interval at which an end that has finished repeats its end message, which may get lost.
const AGAIN: Duration = Duration::from_millis(10);
/// The number of received datagrams after which UDP_GRO counts as without effect, if none of them were joined.
const MANY: u64 = 1000;
/// The number of final messages that an end sends when it knows that both ends have finished.
const FAREWELLS: u32 = 3;

pub(super) struct UdpFlow {
    pub(super) socket: Socket,
    pub(super) identity: FlowIdentity,
    pub(super) counters: UdpCounters,
    pub(super) parsed: UdpSettings,
    /// The number that the kernel gives the socket's next zero-copy send.
    pub(super) numbers: AtomicU32,
    number: u32,
    not_as_asked: Vec<SettingMismatch>,
    /// True if [`Flow::wake_receiver`] or [`Flow::abort`] was called, so that the receiver must stop.
    woken: AtomicBool,
    /// True while a receiver exists, which receives the peer's datagrams. Without a receiver, `progress` receives them.
    receiving: AtomicBool,
    reported: AtomicU64,
    /// True if the sender has changed from segments (UDP_SEGMENT) to single datagrams.
    segments_off: AtomicBool,
    feedback_state: Mutex<FeedbackState>,
}

/// The peer's latest feedback, and the number of datagrams that this end had sent at the last call of `progress`.
#[derive(Debug)]
struct FeedbackState {
    feedback: Option<DatagramFeedback>,
    feedback_at: Instant,
    sent: u64,
    sent_at: Instant,
}

impl UdpFlow {
    /// Creates a flow from its connected socket. Compares the socket's options with `settings`.
    pub(super) fn new(
        socket: Socket,
        number: u32,
        settings: &Settings,
        identity: FlowIdentity,
    ) -> io::Result<Self> {
        socket.set_read_timeout(Some(LOOK))?;
        socket.set_write_timeout(Some(LOOK))?;
        let not_as_asked = OPTIONS.read_back(&socket, settings);
        let now = Instant::now();
        let feedback_state = FeedbackState { feedback: None, feedback_at: now, sent: 0, sent_at: now };
        Ok(UdpFlow {
            socket,
            identity,
            counters: UdpCounters::default(),
            parsed: UdpSettings::of(settings),
            numbers: AtomicU32::new(0),
            number,
            not_as_asked,
            woken: AtomicBool::new(false),
            receiving: AtomicBool::new(false),
            reported: AtomicU64::new(0),
            segments_off: AtomicBool::new(false),
            feedback_state: Mutex::new(feedback_state),
        })
    }

    /// Returns true if UDP_GRO is on and [`MANY`] datagrams arrived, but none were joined.
    fn came_apart(&self) -> bool {
        self.parsed.receive == ReceiveMode::Gro
            && !self.counters.has_joined()
            && self.counters.datagrams().received >= MANY
    }

    /// Sends the welcome, the last pass of the proof, to the client. Does nothing at the client's end.
    pub(super) fn welcome(&self) {
        if let Some(welcome) = self.identity.welcome() {
            self.send_message(welcome);
        }
    }

    pub(super) fn report(&self, arrivals: &DatagramTotals) {
        self.report_as(DatagramKind::Feedback, arrivals);
    }

    fn report_as(&self, kind: DatagramKind, arrivals: &DatagramTotals) {
        let number = self.reported.fetch_add(1, Ordering::Relaxed) + 1;
        let (highest, received_bytes) = (arrivals.highest, arrivals.received_bytes.0);
        self.send_message(
            self.identity
                .feedback_datagram(&DatagramFeedback { kind, number, highest, received_bytes })
                .as_ref(),
        );
    }

    /// Sends a message to the peer, without waiting. The message may get lost, so callers repeat important messages.
    fn send_message(&self, datagram: &[u8]) {
        let _ = rustix::net::send(&self.socket, datagram, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Processes a received datagram that carries no data: feedback, a pass of the proof, or a malformed datagram.
    pub(super) fn note(&self, datagram: &[u8]) {
        if let Some(feedback) = self.identity.parse_feedback(datagram) {
            let mut feedback_state = self.feedback_state.lock();
            if feedback_state.feedback.is_none_or(|last| feedback.number > last.number) {
                feedback_state.feedback = Some(feedback);
                feedback_state.feedback_at = Instant::now();
            }
        } else if self.identity.is_confirm(datagram) {
            self.welcome();
        } else if ProofPass::parse(datagram).is_none() {
            self.counters.count_malformed();
        }
    }

    /// Returns true if the receiver must stop.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Returns the number of buffers that the kernel dropped because the socket was full, from SO_MEMINFO
    /// (SK_MEMINFO_DROPS, include/uapi/linux/sock_diag.h); zero if the kernel does not report it.
    fn overflowed(&self) -> u64 {
        const DROPS: usize = 8;
        let drops = raw::get::<[u32; DROPS + 1]>(&self.socket, libc::SOL_SOCKET, libc::SO_MEMINFO);
        drops.map_or(0, |drops| drops[DROPS].into())
    }

    /// Returns the kind of the peer's latest feedback; `None` before the first.
    fn last_heard(&self) -> Option<DatagramKind> {
        let feedback_state = self.feedback_state.lock();
        feedback_state.feedback.map(|feedback| feedback.kind)
    }

    pub(super) fn peer_has_ended(&self) -> bool {
        matches!(self.last_heard(), Some(DatagramKind::End | DatagramKind::BothEnd))
    }

    /// Returns how many bytes of data the peer has reported as received.
    pub(super) fn arrived(&self) -> u64 {
        let feedback_state = self.feedback_state.lock();
        feedback_state.feedback.map_or(0, |feedback| feedback.received_bytes)
    }

    /// Records that the sender no longer uses UDP_SEGMENT, because segments no longer fit the path.
    pub(super) fn note_segments_off(&self) {
        self.segments_off.store(true, Ordering::Relaxed);
    }

    /// Records that the receiver has been dropped.
    pub(super) fn receiver_left(&self) {
        self.receiving.store(false, Ordering::Release);
    }

    /// Receives and processes the peer's messages that have arrived, without waiting. Returns the error of a receive
    /// call that failed, which is `WouldBlock` once no message is left.
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
        let _ = shared_port::connect_to_itself(&self.socket);
    }
}

impl Flow for UdpFlow {
    fn number(&self) -> u32 {
        self.number
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd()]
    }

    /// Returns zero, because UDP has no connection set-up.
    fn set_up(&self) -> Nanos {
        Nanos(0)
    }

    fn not_as_asked(&self) -> Vec<SettingMismatch> {
        let apart = self.came_apart().then(|| {
            SettingMismatch::of(
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
        self.parsed = UdpSettings::of(settings);
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

    fn progress(&self) -> io::Result<AckProgress> {
        if !self.receiving.load(Ordering::Acquire) {
            let _ = self.drain();
        }
        let sent = self.counters.sent();
        let mut feedback_state = self.feedback_state.lock();
        if feedback_state.sent != sent {
            feedback_state.sent = sent;
            feedback_state.sent_at = Instant::now();
        }
        let settled = feedback_state.feedback_at.saturating_duration_since(feedback_state.sent_at) >= SETTLED;
        Ok(AckProgress {
            acked: Bytes(feedback_state.feedback.map_or(0, |feedback| feedback.received_bytes)),
            outstanding: sent > feedback_state.feedback.map_or(0, |feedback| feedback.highest) && !settled,
            ..AckProgress::default()
        })
    }

    fn datagrams(&self) -> Option<DatagramTotals> {
        Some(DatagramTotals { overflowed: self.overflowed(), ..self.counters.datagrams() })
    }

    fn add_details(&self, details: &mut Details) {
        if self.segments_off.load(Ordering::Relaxed) {
            details.get_mut::<SegmentationFallbacks>().0 += 1;
        }
    }

    fn wake_receiver(&self) {
        self.woken.store(true, Ordering::Release);
        // shutdown(2) for reading wakes the thread that waits in a receive call on a datagram socket. The call then
        // returns zero bytes.
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    /// Repeats the end message, which may get lost, until the peer reports that both ends have finished. Then sends
    /// [`FAREWELLS`] last messages. Stops earlier if the peer has finished and has closed its socket.
    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error> {
        let refused = |why| Error::refused("finish", self.name(), io::Error::other(why));
        if self.is_woken() {
            return Err(refused("its receiver was woken before the end"));
        }
        let mut farewells = 0;
        while farewells < FAREWELLS {
            let has_left = self.drain().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
            let kind = if self.peer_has_ended() { DatagramKind::BothEnd } else { DatagramKind::End };
            farewells += u32::from(self.last_heard() == Some(DatagramKind::BothEnd));
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
