//! The sending half of a connection (draft-gg-udt-03 section 6.1), which decides what to send next, and when.

use std::ops::Range;

use landspeed_record::units::{BitRate, Bytes, Nanos};

use crate::history::{SYNC_INTERVAL, UdtPacketRate};
use crate::loss::{LossList, SeqRange};
use crate::packet::{FullAck, LossReport, PacketTime, RateEstimates};
use crate::rate::{PathState, RateControl};
use crate::round_trip::RoundTripEstimate;
use crate::send_buffer::SendBuffer;
use crate::seq::Seq;

/// A run of data packets to send next.
#[derive(Debug)]
pub(crate) struct PacketRun {
    /// The packets' bytes in the send buffer.
    pub(crate) bytes: Range<usize>,
    pub(crate) packets: u32,
    /// True if the packets were sent before.
    pub(crate) again: bool,
}

#[derive(Debug)]
pub(crate) struct SendHalf {
    pub(crate) buffer: SendBuffer,
    losses: LossList,
    /// Packets that were reported lost and are not acknowledged. Some were sent again since then, and the others are
    /// still in `losses`.
    reported: LossList,
    /// The first packet after those that were in flight at the last timeout; `None` once all of those are
    /// acknowledged.
    timed_out: Option<Seq>,
    /// The number of times that the first packet was sent again because no acknowledgement of it arrived; at most
    /// [`MAX_STUCK`].
    stuck: u32,
    control: Box<dyn RateControl>,
    /// The first packet that the last full acknowledgement did not cover.
    full_ack: Seq,
    /// The first packet for which the receiver has no room.
    window_end: Seq,
    path: PathState,
    round_trip: RoundTripEstimate,
    /// The time at which the next packet may leave.
    next_send: Nanos,
    /// The time at which packets last left.
    burst_at: Option<Nanos>,
    /// The time at which a burst was last split.
    split_at: Option<Nanos>,
    /// True if the last packet was the first of a pair, and the second could not leave in the same run. The second then
    /// leaves without waiting, and the sender waits for the packet periods of both after it.
    owes: bool,
    /// The packets that the current rate allows within this time leave in one burst.
    catch_up: Nanos,
    last_warning: Option<Nanos>,
    acked: AckedTotals,
}

/// The data that the peer has acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AckedTotals {
    pub(crate) packets: u64,
    pub(crate) bytes: Bytes,
}

/// The limits that both ends agreed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NegotiatedLimits {
    pub(crate) mss: u32,
    /// The number of packets that the peer has room for.
    pub(crate) peer_flight: u32,
    /// The round-trip time of the handshake, if it was measured.
    pub(crate) round_trip: Option<Nanos>,
}

impl SendHalf {
    pub(crate) fn new(
        buffer: SendBuffer,
        control: Box<dyn RateControl>,
        limits: NegotiatedLimits,
        catch_up: Nanos,
    ) -> Self {
        let (first, round_trip) = (buffer.first(), RoundTripEstimate::new(limits.round_trip));
        let path = PathState {
            round_trip: round_trip.round_trip(),
            arrival: UdtPacketRate(0.0),
            capacity: UdtPacketRate(0.0),
            last_sent: first.prev(),
            packet: Bytes(limits.mss.into()),
            max_window: limits.peer_flight,
        };
        SendHalf {
            buffer,
            losses: LossList::new(),
            reported: LossList::new(),
            timed_out: None,
            stuck: 0,
            control,
            full_ack: first,
            window_end: first.plus(limits.peer_flight.min(MAX_WINDOW)),
            path,
            round_trip,
            next_send: Nanos(0),
            burst_at: None,
            split_at: None,
            owes: false,
            catch_up,
            last_warning: None,
            acked: AckedTotals::default(),
        }
    }

    pub(crate) fn path(&self) -> &PathState {
        &self.path
    }

    pub(crate) fn acked(&self) -> AckedTotals {
        self.acked
    }

    /// Returns the time within which an acknowledgement should arrive.
    pub(crate) fn patience(&self) -> Nanos {
        self.round_trip.patience()
    }

    pub(crate) fn period(&self) -> Nanos {
        self.control.period()
    }

    pub(crate) fn window(&self) -> u32 {
        self.control.window()
    }

    pub(crate) fn is_waiting_for_ack(&self) -> bool {
        self.buffer.sent() > 0
    }

    /// Returns true if a full acknowledgement covers everything that was written. A light acknowledgement is not
    /// enough: when the connection is closed, libudt discards data that only a light one has acknowledged.
    pub(crate) fn is_all_delivered(&self) -> bool {
        self.buffer.is_empty() && self.full_ack == self.buffer.first()
    }

    /// Processes an acknowledgement of all packets before `next`. Returns the number of packets that it newly
    /// acknowledges. Returns `None` if `next` is outside of the packets in flight: a stranger sent the
    /// acknowledgement, or a later acknowledgement arrived first.
    pub(crate) fn acknowledge(&mut self, next: Seq) -> Option<u32> {
        let packets = u32::try_from(next.since(self.buffer.first())).ok()?;
        if packets > self.buffer.sent() {
            return None;
        }
        self.acked.packets += u64::from(packets);
        self.acked.bytes += Bytes(self.buffer.release(packets));
        self.losses.remove_before(next);
        self.reported.remove_before(next);
        if packets > 0 {
            self.stuck = 0;
        }
        self.timed_out = self.timed_out.filter(|end| next.is_before(*end));
        Some(packets)
    }

    /// Processes a full acknowledgement that [`acknowledge`](Self::acknowledge) has accepted: its window, and its
    /// estimates of the path.
    pub(crate) fn on_ack(&mut self, now: Nanos, ack: &FullAck) {
        self.full_ack = ack.next;
        self.window_end = ack.next.plus(ack.window.min(MAX_WINDOW));
        self.round_trip.reported(ack.rtt, ack.rtt_variance);
        self.path.round_trip = self.round_trip.round_trip();
        if let Some(RateEstimates { arrival, capacity }) = ack.rates {
            blend(&mut self.path.arrival, arrival);
            blend(&mut self.path.capacity, capacity);
        }
        self.control.on_ack(now, ack.next, &self.path);
    }

    /// Processes a loss report. Returns true if every packet that the report names was sent. A report that names
    /// other packets comes from a stranger and is ignored.
    pub(crate) fn on_nak(&mut self, now: Nanos, report: LossReport<'_>) -> bool {
        let (first, sent) = (self.buffer.first(), self.buffer.sent().cast_signed());
        let is_possible = |range: SeqRange| {
            range.last.since(first) < sent && range.packets() <= MAX_WINDOW && range.first.since(first) < sent
        };
        if !report.ranges().all(is_possible) {
            return false;
        }
        let mut begins = None;
        for range in report.ranges().filter(|range| !range.last.is_before(first)) {
            let live = if range.first.is_before(first) { first } else { range.first };
            begins = begins.or(Some(live));
            let lost = SeqRange { first: live, last: range.last };
            self.losses.insert(lost);
            self.reported.insert(lost);
        }
        if let Some(begins) = begins {
            self.control.on_loss(now, begins, &self.path);
        }
        true
    }

    /// Schedules packets to be sent again after a time without acknowledgements, unless some are already scheduled.
    /// The first timeout schedules the packets that were reported lost (libudt does not repeat a report), the first
    /// packet (its report may be lost), and the last one (when it arrives, the receiver reports all missing packets).
    /// If another timeout occurs before all packets that were in flight are acknowledged, it schedules all packets in
    /// flight.
    pub(crate) fn on_timeout(&mut self, now: Nanos) {
        let sent = self.buffer.sent();
        if self.losses.is_empty() && sent > 0 {
            let (first, last) = (self.buffer.first(), self.buffer.first().plus(sent - 1));
            if self.timed_out.replace(last.next()).is_none() {
                self.losses = self.reported.clone();
                self.losses.insert(SeqRange { first, last: first });
                self.losses.insert(SeqRange { first: last, last });
            } else {
                self.losses.insert(SeqRange { first, last });
            }
        }
        self.control.on_timeout(now, &self.path);
    }

    /// Returns the time at which the first packet is sent again although no report names it: the packet may have been
    /// lost again, which libudt does not report, or its report was lost. The EXP timer does not cover this case,
    /// because each report that arrives restarts it. Returns `None` if no packet is reported lost, or if the first
    /// packet is already scheduled.
    fn stuck_until(&self) -> Option<Nanos> {
        let waits = self.reported.is_empty() || self.losses.first() == Some(self.buffer.first());
        let patience = self.repeat_patience().times(u64::from(1 + self.stuck));
        (!waits).then(|| self.buffer.sent_at(0) + patience)
    }

    /// Returns the time for which a packet that was sent again may stay unacknowledged before it is considered lost.
    fn repeat_patience(&self) -> Nanos {
        self.round_trip.patience() + SYNC_INTERVAL.times(2)
    }

    pub(crate) fn handle_timeout(&mut self, now: Nanos) {
        if self.stuck_until().is_some_and(|until| now >= until) {
            let first = self.buffer.first();
            self.losses.insert(SeqRange { first, last: first });
            self.repeat_reported(now);
            self.stuck = (self.stuck + 1).min(MAX_STUCK);
        }
    }

    /// Schedules the reported packets that were sent again and should have been acknowledged by now, because packets
    /// that were lost in one burst are often lost again in one burst.
    fn repeat_reported(&mut self, now: Nanos) {
        let (start, patience) = (self.buffer.first(), self.repeat_patience());
        let packets =
            self.reported.ranges().flat_map(|range| (0..range.packets()).map(move |n| range.first.plus(n)));
        for seq in packets {
            let sent_at = self.buffer.sent_at(seq.since(start).cast_unsigned());
            if now >= sent_at + patience {
                self.losses.insert(SeqRange { first: seq, last: seq });
            }
        }
    }

    /// Processes a warning of congestion. Warnings within a round trip of the last one are ignored.
    pub(crate) fn on_warning(&mut self, now: Nanos) {
        if self.last_warning.is_none_or(|last| now - last >= self.path.round_trip.mean.max(SYNC_INTERVAL)) {
            self.last_warning = Some(now);
            self.control.on_warning(now, &self.path);
        }
    }

    /// Returns the number of new packets that may be sent within both windows, the peer's and the congestion window.
    fn room(&self) -> u32 {
        let flow = u32::try_from(self.window_end.since(self.buffer.next_seq())).unwrap_or(0);
        let window = self.control.window().clamp(1, self.most_in_flight());
        flow.min(window.saturating_sub(self.buffer.sent()))
    }

    /// Returns the largest number of packets in flight: the bandwidth-delay product of a path with the rate
    /// [`FASTEST`], but at least [`LEAST_IN_FLIGHT`]. UDT's own window allows 10 ms of packets beyond the round trip.
    /// More packets in flight would only wait at the receiver, and displace the data that it reads from the
    /// processor's cache.
    fn most_in_flight(&self) -> u32 {
        let holds = FASTEST.0 / 8.0 * self.path.round_trip.mean.as_secs_f64();
        let packets = LEAST_IN_FLIGHT.0.max(holds as u64) / self.path.packet.0.max(1);
        u32::try_from(packets).unwrap_or(u32::MAX)
    }

    fn has_new(&self) -> bool {
        self.buffer.has_new() && self.room() > 0
    }

    /// Returns true if packets could be sent, but must wait for their departure times.
    pub(crate) fn is_pacing(&self) -> bool {
        !self.losses.is_empty() || self.has_new()
    }

    /// Returns the time of the next departure or repetition; `None` if there is nothing to send, or the windows are
    /// closed.
    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        let next = self.burst_due();
        let lost = (!self.losses.is_empty()).then_some(next);
        let new = self.has_new().then(|| next.max(self.control.frozen_until()));
        [lost, new, self.stuck_until()].into_iter().flatten().min()
    }

    /// Returns the time at which a whole burst is due. A single packet is due earlier, but the sender would have to
    /// sleep once for each packet if it sent each one as soon as it is due.
    fn burst_due(&self) -> Nanos {
        self.next_send + (self.catch_up - self.control.period())
    }

    /// Returns how many of the `wanted` packets may leave now. A system call costs about the same for few packets as
    /// for many, so packets leave in bursts. A burst begins once all wanted packets (at most a batch) are due, or once
    /// the packets that the rate allows within `catch_up` are due. A burst that has begun at `now` continues.
    fn due(&self, now: Nanos, wanted: u32) -> u32 {
        let period = self.control.period();
        if now < self.next_send {
            return 0;
        }
        if period.0 == 0 {
            return wanted;
        }
        let late = (now - self.next_send).min(self.catch_up.times(LATE));
        let due = u32::try_from(1 + late.0 / period.0).unwrap_or(u32::MAX);
        let goes_on = self.burst_at == Some(now);
        let is_worth_it = due >= wanted.min(self.buffer.batch()) || now >= self.burst_due();
        if is_worth_it || goes_on { due.min(wanted) } else { 0 }
    }

    fn spend(&mut self, now: Nanos, packets: u32) {
        let start = self.next_send.max(now - self.catch_up.times(LATE));
        self.next_send = start + self.control.period().times(packets.into());
        self.burst_at = Some(now);
    }

    /// Returns the next packets to send, at most `most`. All but the last are full. Lost packets come before new
    /// ones.
    pub(crate) fn poll(&mut self, at: PacketTime, most: u32) -> Option<PacketRun> {
        let lost = self.losses.ranges().next();
        let wanted = lost.map_or(self.buffer.waiting().min(self.room()), SeqRange::packets);
        let due = self.due(at.now, wanted);
        if due == 0 {
            return None;
        }
        if let Some(range) = lost {
            let offset = range.first.since(self.buffer.first()).cast_unsigned();
            let packets = self.buffer.run(offset, due.min(most));
            self.losses.take_first(packets);
            self.spend(at.now, packets);
            let bytes = self.buffer.take(offset, packets, at);
            return Some(PacketRun { bytes, packets, again: true });
        }
        let piece = self.piece(at.now, due).min(most);
        self.poll_new(at, piece)
    }

    fn poll_new(&mut self, at: PacketTime, due: u32) -> Option<PacketRun> {
        let (room, now) = (self.room(), at.now);
        if now < self.control.frozen_until() {
            return None;
        }
        let offset = self.buffer.sent();
        // Packet 16n and the next one leave together as a pair (draft-gg-udt-03 section 6.1). The second is in a run
        // of its own if the ring turns back after the first.
        let begins_pair = |last: Seq| last.to_wire().is_multiple_of(16);
        let more = u32::from(begins_pair(self.buffer.next_seq().plus(due - 1)));
        let packets = self.buffer.run(offset, (due + more).min(room));
        let parts_pair = packets < room && begins_pair(self.buffer.next_seq().plus(packets - 1));
        let owed = std::mem::replace(&mut self.owes, parts_pair);
        self.spend(now, packets + u32::from(owed) - u32::from(self.owes));
        let bytes = self.buffer.take(offset, packets, at);
        self.path.last_sent = self.buffer.next_seq().prev();
        self.control.on_sent(now, self.path.last_sent);
        Some(PacketRun { bytes, packets, again: false })
    }

    /// Returns the number of packets in the first piece of a burst of `due` packets. Once per [`PART_PAUSE`], a burst
    /// is sent in at least two pieces of similar length. The receiver measures the path's capacity by the time
    /// between pieces, because the packets of one piece arrive together.
    fn piece(&mut self, now: Nanos, due: u32) -> u32 {
        let parts_one = self.split_at.is_none_or(|last| now - last >= PART_PAUSE);
        if parts_one {
            self.split_at = Some(now);
        }
        let pieces = due.div_ceil(self.buffer.batch()).max(1 + u32::from(parts_one));
        due.div_ceil(pieces)
    }
}

/// The longest delay that the sender makes up for by sending more packets, as a multiple of `catch_up`. After a longer
/// sleep, the mean rate falls.
const LATE: u64 = 2;
/// The least time between two bursts that are split only for the measurement. More frequent splits would cost more
/// than the better measurement is worth.
const PART_PAUSE: Nanos = Nanos(SYNC_INTERVAL.0 / 16);
/// The rate of the fastest path for which the limit of packets in flight is high enough.
const FASTEST: BitRate = BitRate(100e9);
/// The data that may be in flight even on the shortest path.
const LEAST_IN_FLIGHT: Bytes = Bytes(4 << 20);
/// The number of times that the interval between repetitions of the first packet may grow.
const MAX_STUCK: u32 = 7;

/// The largest window, in packets. Distances between packets within a window of this size are never ambiguous.
pub(crate) const MAX_WINDOW: u32 = 1 << 28;

/// Updates a moving mean with `sample`. The first sample replaces the mean, and a sample of 0 is ignored.
fn blend(mean: &mut UdtPacketRate, sample: u32) {
    let sample = f64::from(sample);
    if sample > 0.0 {
        mean.0 = if mean.0 > 0.0 { (mean.0 * 7.0 + sample) / 8.0 } else { sample };
    }
}
