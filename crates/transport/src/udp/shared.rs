//! State that a flow, its sender and its receiver share: the socket, the settings, and the peer's reports.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_record::units::Bytes;
use parking_lot::Mutex;
use rustix::net::SendFlags;
use socket2::Socket;

use super::counters::UdpCounters;
use super::identity::FlowIdentity;
use super::options::UdpSettings;
use super::wire::{CONTROL, DatagramFeedback, DatagramKind, ProofPass};
use crate::transport::AckProgress;
use crate::{DatagramTotals, message};

/// The longest time that a call waits. After it, the caller can check whether to stop, and a receiver can send
/// feedback.
const LOOK: Duration = Duration::from_millis(50);
/// Feedback that arrives at least this long after the last send counts as complete: datagrams that it does not include
/// are lost. The time exceeds the round trips and queueing delays that this program measures.
const SETTLED: Duration = Duration::from_millis(400);
/// The most datagrams that one check for feedback receives.
const MOST_DRAINED: usize = 256;

/// The state that a flow, its sender and its receiver share.
pub(super) struct SharedFlow {
    pub(super) socket: Socket,
    pub(super) identity: FlowIdentity,
    pub(super) counters: UdpCounters,
    pub(super) parsed: UdpSettings,
    /// The number that the kernel gives the socket's next zero-copy send.
    pub(super) numbers: AtomicU32,
    /// True once the receiver must stop.
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

impl SharedFlow {
    pub(super) fn new(socket: Socket, settings: &Settings, identity: FlowIdentity) -> io::Result<Self> {
        socket.set_read_timeout(Some(LOOK))?;
        socket.set_write_timeout(Some(LOOK))?;
        let now = Instant::now();
        let feedback_state = FeedbackState { feedback: None, feedback_at: now, sent: 0, sent_at: now };
        Ok(SharedFlow {
            socket,
            identity,
            counters: UdpCounters::default(),
            parsed: UdpSettings::of(settings),
            numbers: AtomicU32::new(0),
            woken: AtomicBool::new(false),
            receiving: AtomicBool::new(false),
            reported: AtomicU64::new(0),
            segments_off: AtomicBool::new(false),
            feedback_state: Mutex::new(feedback_state),
        })
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

    pub(super) fn report_as(&self, kind: DatagramKind, arrivals: &DatagramTotals) {
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

    /// Makes the receiver stop, and shuts the socket down.
    pub(super) fn stop_receiver(&self, how: Shutdown) -> io::Result<()> {
        self.woken.store(true, Ordering::Release);
        self.socket.shutdown(how)
    }

    /// Returns true if the receiver must stop.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Returns the kind of the peer's latest feedback; `None` before the first.
    pub(super) fn last_heard(&self) -> Option<DatagramKind> {
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

    pub(super) fn are_segments_off(&self) -> bool {
        self.segments_off.load(Ordering::Relaxed)
    }

    /// Records whether a receiver exists.
    pub(super) fn set_receiving(&self, is_receiving: bool) {
        self.receiving.store(is_receiving, Ordering::Release);
    }

    /// Receives and processes the peer's messages that have arrived, without waiting. Returns the error of a receive
    /// call that failed, which is `WouldBlock` once no message is left.
    pub(super) fn drain(&self) -> io::Result<()> {
        let mut datagram = [0; CONTROL];
        for _ in 0..MOST_DRAINED {
            match message::receive(self.socket.as_fd(), &mut datagram, libc::MSG_DONTWAIT)? {
                0 => break,
                length => self.note(datagram.get(..length).unwrap_or_default()),
            }
        }
        Ok(())
    }

    /// Returns what the peer has reported, and whether datagrams may still be on their way to it.
    pub(super) fn progress(&self) -> AckProgress {
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
        AckProgress {
            acked: Bytes(feedback_state.feedback.map_or(0, |feedback| feedback.received_bytes)),
            outstanding: sent > feedback_state.feedback.map_or(0, |feedback| feedback.highest) && !settled,
            ..AckProgress::default()
        }
    }
}
