//! Measurements of the path at a receiver (draft-gg-udt-03 section 6.2): the arrival rate of packets, the path's
//! capacity, and the round trips of acknowledgements.

use std::fmt;

use landspeed_record::units::Nanos;

use crate::packet::PacketTime;
use crate::seq::Seq;

/// The synchronisation time (SYN in the draft): the interval of acknowledgements and of rate changes (draft-gg-udt-03
/// section 4).
pub(crate) const SYNC_INTERVAL: Nanos = Nanos::millis(10);

/// A rate in packets per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct UdtPacketRate(pub f64);

impl UdtPacketRate {
    /// Returns the rate of one packet per `period`; zero if the period is zero.
    pub(crate) fn each(period: Nanos) -> Self {
        if period.0 == 0 { UdtPacketRate(0.0) } else { UdtPacketRate(1e9 / period.0 as f64) }
    }

    /// Returns the rate in whole packets per second, rounded up, as it is sent on the wire.
    pub(crate) fn to_wire(self) -> u32 {
        self.0.ceil() as u32
    }
}

/// The least number of packets from which the arrival rate is estimated.
const ENOUGH: u64 = 16;

/// A number of packets, and the time within which they arrived.
#[derive(Debug, Clone, Copy, Default)]
struct ArrivalSpan {
    time: Nanos,
    packets: u32,
}

impl ArrivalSpan {
    /// Returns the mean time per packet, in nanoseconds.
    fn share(self) -> u64 {
        self.time.0 / u64::from(self.packets.max(1))
    }
}

/// The last `N` spans, with a filter against outliers.
#[derive(Debug, Clone)]
struct SpanRing<const N: usize> {
    ring: [ArrivalSpan; N],
    seen: usize,
}

impl<const N: usize> SpanRing<N> {
    fn new() -> Self {
        SpanRing { ring: [ArrivalSpan::default(); N], seen: 0 }
    }

    fn push(&mut self, span: ArrivalSpan) {
        self.ring[self.seen % N] = span;
        self.seen += 1;
    }

    fn known(&self) -> &[ArrivalSpan] {
        &self.ring[..self.seen.min(N)]
    }

    fn packets(&self) -> u64 {
        self.known().iter().map(|span| u64::from(span.packets)).sum()
    }

    /// Returns the median time per packet in nanoseconds, weighted by the number of packets in each span; `None`
    /// without packets.
    fn median(&self) -> Option<u64> {
        let mut known = self.ring;
        let known = &mut known[..self.known().len()];
        known.sort_unstable_by_key(|span| span.share());
        let (half, mut below) = (self.packets() / 2, 0);
        let middle = known.iter().find(|span| {
            below += u64::from(span.packets);
            below > half
        });
        middle.map(|span| span.share())
    }

    /// Returns the rate over the spans that are no outliers, and the number of these spans. A span is an outlier if
    /// its time per packet is less than an eighth of the median, or more than eight times the median.
    fn filtered(&self) -> Option<(UdtPacketRate, usize)> {
        let known = self.known();
        let median = self.median()?;
        let (low, high) = (median / 8, median.saturating_mul(8));
        let kept = || known.iter().filter(|span| (low..=high).contains(&span.share()));
        let time: u64 = kept().map(|span| span.time.0).sum();
        let packets: u64 = kept().map(|span| u64::from(span.packets)).sum();
        let rate = if time == 0 { 0.0 } else { packets as f64 * 1e9 / time as f64 };
        Some((UdtPacketRate(rate), kept().count()))
    }
}

/// The history of packet arrivals.
///
/// Packets leave and arrive in bursts of all sizes (UDP_SEGMENT, UDP_GRO, recvmmsg), so rates are computed from spans
/// of time that are longer than a burst. At low rates each span has one packet, as in the draft.
#[derive(Debug, Clone)]
pub(crate) struct ArrivalHistory {
    arrivals: SpanRing<16>,
    trains: SpanRing<64>,
    arriving: Option<OpenSpan>,
    train: Option<PacketTrain>,
}

/// The span of arrivals that has not ended yet.
#[derive(Debug, Clone, Copy)]
struct OpenSpan {
    since: Nanos,
    last: Nanos,
    packets: u32,
    /// The number of packets that arrived at `since`.
    first: u32,
}

impl OpenSpan {
    /// Records the arrival of a packet. Returns the previous span if this packet ends it.
    fn arrived(&mut self, now: Nanos) -> Option<ArrivalSpan> {
        let before = *self;
        if now < before.since + SPAN {
            self.packets += 1;
            self.first += u32::from(now == before.since);
            self.last = before.last.max(now);
            return None;
        }
        *self = OpenSpan::begin(now);
        // A pause after a burst does not count: the span then covers only the burst, from its first to its last
        // arrival.
        let burst = ArrivalSpan { time: before.last - before.since, packets: before.packets - before.first };
        let is_pause = now - before.last > SPAN && burst.packets > 0;
        Some(if is_pause { burst } else { ArrivalSpan { time: now - before.since, packets: before.packets } })
    }

    fn begin(now: Nanos) -> Self {
        OpenSpan { since: now, last: now, packets: 1, first: 1 }
    }
}

/// The least duration of a span of arrivals.
const SPAN: Nanos = Nanos(SYNC_INTERVAL.0 / 10);

/// The longest time, in microseconds, between the departures of the two packets of a pair, which UDT sends back to
/// back.
const PAIR: u32 = 5;

/// The packets that left the sender together (a train), as far as they have arrived.
#[derive(Debug, Clone, Copy)]
struct PacketTrain {
    /// The last packet of the train that has arrived.
    seq: Seq,
    timestamp: u32,
    /// The arrival time of the train's first batch.
    first: Nanos,
    last: Nanos,
    /// The number of packets that arrived after the first batch.
    since_first: u32,
}

impl PacketTrain {
    /// Returns true if the next packet, whose header has `timestamp`, left the sender together with the last one.
    fn is_joined_by(&self, timestamp: u32) -> bool {
        let later = timestamp.wrapping_sub(self.timestamp);
        later == 0 || later <= PAIR && self.seq.to_wire().is_multiple_of(16)
    }
}

impl Default for ArrivalHistory {
    fn default() -> Self {
        let (arrivals, trains) = (SpanRing::new(), SpanRing::new());
        ArrivalHistory { arrivals, trains, arriving: None, train: None }
    }
}

impl ArrivalHistory {
    /// Records the arrival of data packet `seq`. `at` holds the time of arrival and the sender's timestamp.
    pub(crate) fn arrived(&mut self, at: PacketTime, seq: Seq) {
        let ended = match &mut self.arriving {
            Some(arriving) => arriving.arrived(at.now),
            none => {
                *none = Some(OpenSpan::begin(at.now));
                None
            }
        };
        if let Some(span) = ended {
            self.arrivals.push(span);
        }
        self.board(at, seq);
    }

    /// Adds a packet to the current train, or begins a new train. Packets that left the sender together arrive at the
    /// rate of the bottleneck. The draft's sender emits pairs: packet 16n and the next one (draft-gg-udt-03 section
    /// 6.1). A sender with batches emits longer trains, whose packets have one timestamp. The packets of a train's
    /// first batch are not counted.
    fn board(&mut self, PacketTime { now, timestamp }: PacketTime, seq: Seq) {
        if let Some(train) = &mut self.train
            && train.seq.next() == seq
            && train.is_joined_by(timestamp)
        {
            (train.seq, train.last) = (seq, now);
            train.since_first += u32::from(now > train.first);
            return;
        }
        if let Some(train) = self.train.filter(|train| train.since_first > 0) {
            self.trains.push(ArrivalSpan { time: train.last - train.first, packets: train.since_first });
        }
        self.train = Some(PacketTrain { seq, timestamp, first: now, last: now, since_first: 0 });
    }

    /// Returns the arrival rate; 0 before 16 packets have arrived, or if at least half of the spans are outliers.
    pub(crate) fn arrival_rate(&self) -> UdtPacketRate {
        let enough = self.arrivals.packets() >= ENOUGH;
        match self.arrivals.filtered() {
            Some((rate, kept)) if enough && 2 * kept > self.arrivals.known().len() => rate,
            _ => UdtPacketRate(0.0),
        }
    }

    /// Returns the path's capacity; 0 if no packets that left together have arrived at different times. The
    /// capacity is a median, because a batch that is received late makes one span longer and another one shorter.
    pub(crate) fn capacity(&self) -> UdtPacketRate {
        self.trains.median().map_or(UdtPacketRate(0.0), |share| UdtPacketRate::each(Nanos(share)))
    }
}

const ACKS: usize = 1024;

/// The acknowledgements that were sent last, by number. An ACK2 is matched with one of them.
#[derive(Clone)]
pub(crate) struct AckHistory {
    ring: Box<[Option<(u32, Seq, Nanos)>]>,
}

impl Default for AckHistory {
    fn default() -> Self {
        AckHistory { ring: vec![None; ACKS].into() }
    }
}

impl fmt::Debug for AckHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AckHistory({} not answered)", self.ring.iter().flatten().count())
    }
}

impl AckHistory {
    /// Records that acknowledgement `number`, which acknowledges all packets before `next`, was sent.
    pub(crate) fn sent(&mut self, now: Nanos, number: u32, next: Seq) {
        self.ring[number as usize % ACKS] = Some((number, next, now));
    }

    /// Returns the first packet that acknowledgement `number` did not cover, and the time since the acknowledgement was
    /// sent. `None` if the acknowledgement was not sent, was sent too long ago, or was confirmed already.
    pub(crate) fn answered(&mut self, now: Nanos, number: u32) -> Option<(Seq, Nanos)> {
        let place = &mut self.ring[number as usize % ACKS];
        let (_, next, then) = place.filter(|(known, ..)| *known == number)?;
        *place = None;
        Some((next, now - then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(history: &mut ArrivalHistory, now: Nanos, seq: Seq, timestamp: u32) {
        history.arrived(PacketTime { now, timestamp }, seq);
    }

    #[test]
    fn the_arrival_rate_leaves_out_a_pause() {
        let mut history = ArrivalHistory::default();
        let mut now = Nanos::secs(5);
        for n in 0..81 {
            arrive(&mut history, now, Seq::new(n), n);
            now += if n == 39 { Nanos::millis(50) } else { Nanos::micros(100) };
        }
        assert_eq!(history.arrival_rate().to_wire(), 10_000);
    }

    #[test]
    fn the_arrival_rate_is_of_bursts_and_not_of_the_pauses_between() {
        let mut history = ArrivalHistory::default();
        for n in 0..200 {
            let (burst, place) = (n / 20, n % 20);
            let at = Nanos::millis(180 * burst) + Nanos::micros(10 * place);
            arrive(&mut history, at, Seq::new(n as u32), n as u32);
        }
        assert_eq!(history.arrival_rate().to_wire(), 100_000);
    }

    #[test]
    fn a_batch_shares_the_time_since_the_last_one() {
        let mut history = ArrivalHistory::default();
        for n in 0..80 {
            arrive(&mut history, Nanos::millis(u64::from(n / 8)), Seq::new(n), n / 8);
        }
        assert_eq!(history.arrival_rate().to_wire(), 8_000);
    }

    #[test]
    fn pairs_give_the_capacity() {
        let mut history = ArrivalHistory::default();
        for n in 0..40 {
            let seq = Seq::MAX.minus(15).plus(n as u32);
            arrive(&mut history, Nanos::micros(20 * n + 1), seq, n as u32);
        }
        assert_eq!(history.capacity().to_wire(), 50_000);
    }

    /// Ten packets leave together, and arrive in batches of four, four and two.
    #[test]
    fn a_train_gives_the_capacity_by_the_packets_after_its_first_batch() {
        let mut history = ArrivalHistory::default();
        for n in 0..40 {
            let (train, place) = (n / 10, n % 10);
            let at = Nanos::millis(u64::from(train)) + Nanos::micros(u64::from(place / 4) * 60);
            arrive(&mut history, at, Seq::new(n), train);
        }
        assert_eq!(history.capacity().to_wire(), 50_000);
    }

    #[test]
    fn the_round_trip_comes_from_the_answer() {
        let mut history = AckHistory::default();
        history.sent(Nanos::millis(5), 7, Seq::new(70));
        assert_eq!(history.answered(Nanos::millis(9), 7 + ACKS as u32), None);
        assert_eq!(history.answered(Nanos::millis(9), 7), Some((Seq::new(70), Nanos::millis(4))));
        assert_eq!(history.answered(Nanos::millis(9), 7), None);
    }
}
