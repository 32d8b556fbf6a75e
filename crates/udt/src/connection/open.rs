//! An open connection: its sending and receiving half, and the state that both share.

use landspeed_record::units::Nanos;

use super::config::{ConnectionIdentity, UdtConfig};
use super::timers::ExpTimer;
use crate::history::SYNC_INTERVAL;
use crate::packet::{
    DataPacket, FullAck, HEADER, Handshake, HandshakeKind, LossReport, PacketBody, PacketTime, UDP_HEADERS,
};
use crate::receive_buffer::ReceiveBuffer;
use crate::receiver::{DataArrival, ReceiveHalf};
use crate::send_buffer::SendBuffer;
use crate::sender::{MAX_WINDOW, NegotiatedLimits, PacketRun, SendHalf};
use crate::seq::{Seq, UdtSocketId};

/// The difference between a packet's size in a handshake and its payload, in bytes: the headers of IPv4, UDP and UDT.
const HEADERS: usize = UDP_HEADERS + HEADER;

/// The parameters on which both ends agreed in the handshake.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandshakeAgreement {
    /// The peer's handshake, with the packet size that both ends agreed on.
    pub(super) peers: Handshake,
    /// The round-trip time of the handshake, if it was measured.
    pub(super) round_trip: Option<Nanos>,
}

/// Both halves of an open connection.
#[derive(Debug)]
pub(super) struct OpenConnection {
    pub(super) peer: UdtSocketId,
    /// The payload of a full data packet, in bytes.
    pub(super) payload: usize,
    /// The handshake with which an accepted connection answers each request; `None` at a connecting end.
    answer: Option<Handshake>,
    send_answer: bool,
    pub(super) sender: SendHalf,
    pub(super) receiver: ReceiveHalf,
    ack2: Option<u32>,
    last_ack2: Option<(u32, Nanos)>,
    keep_alive: bool,
    exp: ExpTimer,
}

impl OpenConnection {
    /// Creates both halves with the parameters that the two ends agreed on.
    pub(super) fn new(
        now: Nanos,
        config: &UdtConfig,
        identity: &ConnectionIdentity,
        agreement: &HandshakeAgreement,
    ) -> Self {
        let HandshakeAgreement { peers: agreed, round_trip } = *agreement;
        let (first, payload) = (identity.first_seq, agreed.mss as usize - HEADERS);
        let send = SendBuffer::new(config.send_buffer.clamp(2, MAX_WINDOW), payload, first, agreed.socket);
        let receive = ReceiveBuffer::new(config.receive_buffer.clamp(2, MAX_WINDOW), payload, first);
        let limits = NegotiatedLimits { mss: agreed.mss, peer_flight: agreed.flight, round_trip };
        let control = (config.control)(first, identity.seed);
        OpenConnection {
            peer: agreed.socket,
            payload,
            answer: None,
            send_answer: false,
            sender: SendHalf::new(send, control, limits, config.catch_up),
            receiver: ReceiveHalf::new(receive, first, round_trip),
            ack2: None,
            last_ack2: None,
            keep_alive: false,
            exp: ExpTimer::new(now),
        }
    }

    /// Returns the connection with the handshake that it sends first, and again as the answer to each repeated
    /// request.
    #[must_use]
    pub(super) fn with_answer(mut self, answer: Handshake) -> Self {
        self.answer = Some(answer);
        self.send_answer = true;
        self
    }

    /// Schedules the answer to a repeated request, because the peer has not received it. Returns false if the request
    /// is for another connection.
    pub(super) fn on_repeated_request(&mut self, request: &Handshake) -> bool {
        let is_ours = self.answer.is_some_and(|answer| {
            let is_request = request.kind == HandshakeKind::Connect && request.cookie == answer.cookie;
            is_request && request.socket == self.peer && request.first_seq == answer.first_seq
        });
        self.send_answer |= is_ours;
        is_ours
    }

    /// Records that a plausible packet came from the peer.
    pub(super) fn heard(&mut self, now: Nanos) {
        self.exp.heard(now);
        if !self.sender.is_waiting_for_ack() {
            self.exp.restart(now);
        }
    }

    /// Processes a data packet that arrives `at`. The second value is true if there is new data to read.
    pub(super) fn on_data(&mut self, at: PacketTime, data: &DataPacket<'_>) -> (DataArrival, bool) {
        let before = self.receiver.next();
        let arrival = self.receiver.on_data(at, data, self.payload);
        (arrival, self.receiver.next() != before)
    }

    pub(super) fn on_light_ack(&mut self, now: Nanos, next: Seq) -> bool {
        let Some(released) = self.sender.acknowledge(next) else { return false };
        if released > 0 {
            self.exp.restart(now);
        }
        true
    }

    pub(super) fn on_ack(&mut self, now: Nanos, ack: &FullAck) -> bool {
        if !self.on_light_ack(now, ack.next) {
            return false;
        }
        self.sender.on_ack(now, ack);
        let is_due = |(number, at): (u32, Nanos)| number == ack.number || now - at >= SYNC_INTERVAL;
        if self.last_ack2.is_none_or(is_due) {
            self.ack2 = Some(ack.number);
            self.last_ack2 = Some((ack.number, now));
        }
        true
    }

    pub(super) fn on_nak(&mut self, now: Nanos, report: LossReport<'_>) -> bool {
        let is_believed = self.sender.on_nak(now, report);
        if is_believed {
            self.exp.restart(now);
        }
        is_believed
    }

    pub(super) fn is_silent(&self, now: Nanos, config: &UdtConfig) -> bool {
        self.exp.is_silent(now, self.sender.patience(), config.silence)
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        self.receiver.handle_timeout(now);
        self.sender.handle_timeout(now);
    }

    /// Handles the EXP timer: schedules unacknowledged packets to be sent again, or a keep-alive if there are none.
    /// Returns true if packets are sent again.
    pub(super) fn check_exp(&mut self, now: Nanos) -> bool {
        if !self.exp.goes_off(now, self.sender.patience()) {
            return false;
        }
        let is_waiting = self.sender.is_waiting_for_ack();
        if is_waiting {
            self.sender.on_timeout(now);
        } else {
            self.keep_alive = true;
        }
        is_waiting
    }

    /// Returns true if everything that was written has arrived, and no answer to a request waits to be sent.
    pub(super) fn is_all_delivered(&self) -> bool {
        self.sender.is_all_delivered() && !self.send_answer
    }

    /// Returns the next data packets to send, at most `most`.
    pub(super) fn poll_data(&mut self, at: PacketTime, most: u32) -> Option<PacketRun> {
        let was_idle = !self.sender.is_waiting_for_ack();
        let next = self.sender.poll(at, most)?;
        if was_idle {
            self.exp.restart(at.now);
        }
        Some(next)
    }

    pub(super) fn next_timeout(&self, config: &UdtConfig) -> Nanos {
        let is_due = self.send_answer || self.ack2.is_some() || self.keep_alive;
        let now = is_due.then_some(Nanos(0));
        let own = self.exp.next(self.sender.patience(), config.silence);
        let others = [now, self.receiver.next_timeout(), self.sender.next_timeout()];
        others.into_iter().flatten().fold(own, Nanos::min)
    }

    pub(super) fn poll_control<'a>(&mut self, now: Nanos, room: &'a mut [u8]) -> Option<PacketBody<'a>> {
        if std::mem::take(&mut self.send_answer)
            && let Some(answer) = self.answer
        {
            return Some(PacketBody::Handshake(answer));
        }
        if let Some(number) = self.ack2.take() {
            return Some(PacketBody::Ack2(number));
        }
        if std::mem::take(&mut self.keep_alive) {
            return Some(PacketBody::KeepAlive);
        }
        // A report must fit the packet size that both ends agreed on.
        let length = room.len().min(self.payload / 4 * 4);
        self.receiver.poll(now, &mut room[..length])
    }
}
