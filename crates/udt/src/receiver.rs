//! The receiving half of a connection (draft-gg-udt-03 section 6.2): the packets that have arrived, those that are
//! missing, and the reports to the sender.

use landspeed_record::units::Nanos;

use crate::history::{AckHistory, ArrivalHistory, SYNC_INTERVAL};
use crate::loss::{LossList, SeqRange};
use crate::packet::{DataPacket, FullAck, LossReport, PacketBody, PacketTime, RateEstimates};
use crate::receive_buffer::ReceiveBuffer;
use crate::round_trip::{RoundTrip, RoundTripEstimate};
use crate::seq::Seq;

/// The number of packets between two light acknowledgements.
const LIGHT_ACK: u32 = 64;
/// The least time between two light acknowledgements. A shorter time would wake the sender too often.
const LIGHT_ACK_PAUSE: Nanos = Nanos(SYNC_INTERVAL.0 / 64);
/// The smallest window that is announced, in packets, even if the buffer is full. By sending these packets, the
/// sender finds out when there is room again.
const MIN_WINDOW: u32 = 2;
/// The number of times that the interval between reports of the same missing packet may grow.
const MAX_REPEATS: u32 = 3;
/// The largest number of an acknowledgement, as in libudt: 31 bits.
const ACK_NUMBERS: u32 = i32::MAX.cast_unsigned();

/// The result of processing a data packet at the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataArrival {
    New,
    /// The packet had arrived before, or is before the window.
    Again,
    /// There is no room for the packet.
    Beyond,
}

#[derive(Debug)]
pub(crate) struct ReceiveHalf {
    pub(crate) buffer: ReceiveBuffer,
    history: ArrivalHistory,
    acks: AckHistory,
    round_trip: RoundTripEstimate,
    /// The highest sequence number that has arrived.
    largest: Seq,
    missing: LossList,
    /// Missing packets that were not reported yet.
    unreported: LossList,
    report_all: bool,
    nak_at: Option<Nanos>,
    /// The first packet of the last repeated report, and the number of consecutive repeated reports that began with
    /// it.
    repeated: (Seq, u32),
    ack_at: Option<Nanos>,
    /// True if an acknowledgement is due even if it repeats the last one.
    repeat_ack: bool,
    light_ack: bool,
    last_light_ack: Nanos,
    since_ack: u32,
    ack_number: u32,
    last_ack: Seq,
    last_ack_at: Option<Nanos>,
    last_rates_at: Option<Nanos>,
    /// The first packet after those that a confirmed acknowledgement covers. The sender confirms an acknowledgement
    /// with an ACK2.
    known_acked: Seq,
    /// The first packet after the window that was last announced to the sender.
    announced_end: Seq,
}

impl ReceiveHalf {
    /// Creates the receiver of a connection whose first packet is `first`. `round_trip` is the round-trip time of the
    /// handshake, if it was measured.
    pub(crate) fn new(buffer: ReceiveBuffer, first: Seq, round_trip: Option<Nanos>) -> Self {
        let announced_end = buffer.end();
        ReceiveHalf {
            buffer,
            history: ArrivalHistory::default(),
            acks: AckHistory::default(),
            round_trip: RoundTripEstimate::new(round_trip),
            largest: first.prev(),
            missing: LossList::new(),
            unreported: LossList::new(),
            report_all: false,
            nak_at: None,
            repeated: (first, 0),
            ack_at: None,
            repeat_ack: false,
            light_ack: false,
            last_light_ack: Nanos(0),
            since_ack: 0,
            ack_number: 0,
            last_ack: first,
            last_ack_at: None,
            last_rates_at: None,
            known_acked: first,
            announced_end,
        }
    }

    /// Returns the first packet that has not arrived.
    pub(crate) fn next(&self) -> Seq {
        self.missing.first().unwrap_or(self.largest.next())
    }

    pub(crate) fn missing(&self) -> u32 {
        self.missing.packets()
    }

    /// Processes a data packet that arrives `at`. `full` is the payload of a full packet, in bytes.
    pub(crate) fn on_data(&mut self, at: PacketTime, data: &DataPacket<'_>, full: usize) -> DataArrival {
        let (begin, end, now) = (self.next(), self.buffer.end(), at.now);
        if data.seq.is_before(begin) || !data.seq.is_before(end) {
            self.repeat_ack |= data.seq.since(begin).abs() < self.buffer.capacity().cast_signed() * 2;
            self.acknowledge_by(now + SYNC_INTERVAL);
            return if data.seq.is_before(begin) { DataArrival::Again } else { DataArrival::Beyond };
        }
        self.history.arrived(at, data.seq);
        if !self.buffer.store(data) {
            return DataArrival::Again;
        }
        if data.seq.is_after(self.largest) {
            self.note_gap(now, data.seq);
            self.largest = data.seq;
        } else {
            self.found(SeqRange { first: data.seq, last: data.seq });
        }
        self.note_arrival(now, data.payload.len() < full);
        DataArrival::New
    }

    /// Processes packet `seq`, whose payload the reader already has and which did not pass through the buffer.
    /// `is_end` is true if the packet is not full. Returns false, and does nothing, if other packets must be read
    /// before it.
    pub(crate) fn on_delivery(&mut self, at: PacketTime, seq: Seq, is_end: bool) -> bool {
        if !self.missing.is_empty() || seq != self.largest.next() || !self.buffer.pass(seq) {
            return false;
        }
        self.history.arrived(at, seq);
        self.largest = seq;
        self.note_arrival(at.now, is_end);
        self.on_read();
        true
    }

    /// Schedules the acknowledgement of a packet. A packet that is not full is acknowledged immediately, because it
    /// often ends a message, for whose arrival the sender waits.
    fn note_arrival(&mut self, now: Nanos, is_end: bool) {
        self.acknowledge_by(if is_end { now } else { now + SYNC_INTERVAL });
        self.since_ack += 1;
        self.light_ack |= self.since_ack.is_multiple_of(LIGHT_ACK);
    }

    fn found(&mut self, packets: SeqRange) {
        self.missing.remove(packets);
        self.unreported.remove(packets);
        if self.missing.is_empty() {
            self.nak_at = None;
        }
    }

    fn note_gap(&mut self, now: Nanos, seq: Seq) {
        if seq == self.largest.next() {
            return;
        }
        let gap = SeqRange { first: self.largest.next(), last: seq.prev() };
        self.missing.insert(gap);
        self.unreported.insert(gap);
        self.nak_at.get_or_insert(now + self.nak_interval());
    }

    fn acknowledge_by(&mut self, at: Nanos) {
        self.ack_at = Some(self.ack_at.map_or(at, |known| known.min(at)));
    }

    /// Schedules an immediate acknowledgement if some packets are not acknowledged yet.
    pub(crate) fn acknowledge(&mut self) {
        if self.next() != self.last_ack {
            self.ack_at = Some(Nanos(0));
        }
    }

    /// Schedules an immediate acknowledgement of everything that has arrived, even if it repeats the last one.
    pub(crate) fn acknowledge_again(&mut self) {
        self.repeat_ack = true;
        self.ack_at = Some(Nanos(0));
    }

    /// Returns the time after which missing packets are reported again. It is a number of round-trip timeouts, one
    /// more each time that the same packet was reported in vain (draft-gg-udt-03 section 6.2), plus the time that the
    /// sender needs to send all missing packets.
    fn nak_interval(&self) -> Nanos {
        let rate = self.history.arrival_rate().0;
        let sending = if rate > 0.0 { f64::from(self.missing.packets()) * 1e9 / rate } else { 0.0 };
        let trip = self.round_trip.round_trip().timeout() + SYNC_INTERVAL;
        trip.times(u64::from(1 + self.repeated.1.min(MAX_REPEATS)))
            + Nanos(sending as u64).min(Nanos::secs(1))
    }

    /// Processes an ACK2, by which the sender confirms acknowledgement `number`. Returns false if no acknowledgement
    /// of this number waits for confirmation.
    pub(crate) fn on_ack2(&mut self, now: Nanos, number: u32) -> bool {
        let Some((next, sample)) = self.acks.answered(now, number) else { return false };
        self.round_trip.sample(sample);
        if next.is_after(self.known_acked) {
            self.known_acked = next;
        }
        true
    }

    /// Records that bytes were read. An acknowledgement becomes due immediately if the sender may have stopped for
    /// want of room.
    pub(crate) fn on_read(&mut self) {
        let half = self.buffer.capacity().cast_signed() / 2;
        let opened = self.buffer.end().since(self.announced_end);
        let left = self.announced_end.since(self.largest);
        if opened >= half.max(1) && left <= half {
            self.acknowledge_again();
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        let waits = !self.unreported.is_empty() || self.report_all;
        let now = waits.then_some(Nanos(0));
        let light_ack = self.light_ack.then(|| self.last_light_ack + LIGHT_ACK_PAUSE);
        let nak_at = self.nak_at.filter(|_| !self.missing.is_empty());
        [now, light_ack, self.ack_at, nak_at].into_iter().flatten().min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Nanos) {
        if self.nak_at.is_some_and(|at| now >= at)
            && let Some(first) = self.missing.first()
        {
            let (last, times) = self.repeated;
            self.repeated = (first, if first == last { times + 1 } else { 1 });
            self.report_all = true;
            self.nak_at = Some(now + self.nak_interval());
        }
    }

    /// Returns the next control packet that is due, if any. `room` is the memory for a loss report.
    pub(crate) fn poll<'a>(&mut self, now: Nanos, room: &'a mut [u8]) -> Option<PacketBody<'a>> {
        if let Some(ack) = self.poll_ack(now) {
            return Some(ack);
        }
        if self.report_all {
            self.report_all = false;
            self.unreported.clear();
            return Some(PacketBody::Nak(LossReport::write(self.missing.ranges(), room)));
        }
        if !self.unreported.is_empty() {
            let report = LossReport::write(self.unreported.ranges(), room);
            self.unreported.clear();
            return Some(PacketBody::Nak(report));
        }
        None
    }

    /// Returns the acknowledgement that is due, if any.
    pub(crate) fn poll_ack(&mut self, now: Nanos) -> Option<PacketBody<'static>> {
        if self.ack_at.is_some_and(|at| now >= at) {
            self.ack_at = None;
            return self.full_ack(now).map(PacketBody::Ack);
        }
        if now < self.last_light_ack + LIGHT_ACK_PAUSE || !std::mem::take(&mut self.light_ack) {
            return None;
        }
        self.last_light_ack = now;
        self.next().is_after(self.last_ack).then(|| PacketBody::LightAck(self.next()))
    }

    /// Returns a full acknowledgement if it acknowledges something new, if a repetition was requested, or if the
    /// sender has not confirmed the last one within a round trip.
    fn full_ack(&mut self, now: Nanos) -> Option<FullAck> {
        let next = self.next();
        let timeout = self.round_trip.round_trip().timeout();
        let repeat_at = self.last_ack_at.map_or(now, |last| last + timeout);
        let is_known = !next.is_after(self.known_acked);
        if !std::mem::take(&mut self.repeat_ack) && next == self.last_ack {
            if is_known {
                return None;
            }
            if now < repeat_at {
                self.acknowledge_by(repeat_at);
                return None;
            }
        }
        if !is_known {
            self.acknowledge_by(now + timeout);
        }
        self.ack_number = if self.ack_number == ACK_NUMBERS { 0 } else { self.ack_number + 1 };
        self.acks.sent(now, self.ack_number, next);
        (self.last_ack, self.last_ack_at) = (next, Some(now));
        (self.since_ack, self.light_ack) = (0, false);
        self.announced_end = self.buffer.end();
        let RoundTrip { mean: rtt, variance: rtt_variance } = self.round_trip.round_trip();
        let window = self.buffer.end().since(next).max(0).cast_unsigned().max(MIN_WINDOW);
        Some(FullAck { number: self.ack_number, next, rtt, rtt_variance, window, rates: self.rates(now) })
    }

    fn rates(&mut self, now: Nanos) -> Option<RateEstimates> {
        if self.last_rates_at.is_some_and(|last| now - last < SYNC_INTERVAL) {
            return None;
        }
        self.last_rates_at = Some(now);
        let (arrival, capacity) = (self.history.arrival_rate(), self.history.capacity());
        Some(RateEstimates { arrival: arrival.to_wire(), capacity: capacity.to_wire() })
    }
}
