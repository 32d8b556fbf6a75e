//! What a receiver measures of the path (draft-gg-udt-03 section 6.2): how fast packets arrive, how fast the path could carry
//! them, and the round trip.

use std::fmt;

use landspeed_units::Nanos;

use crate::seq::Seq;

/// The synchronisation time: how often acknowledgements are sent and the rate changes (draft-gg-udt-03 section 4).
pub const SYN: Nanos = Nanos::millis(10);

/// Packets in a second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct PacketRate(pub f64);

impl PacketRate {
    /// One packet in each `period`; none where the period is zero.
    pub fn each(period: Nanos) -> Self {
        if period.0 == 0 { PacketRate(0.0) } else { PacketRate(1e9 / period.0 as f64) }
    }

    /// The whole number above it, as the wire has it.
    pub fn to_wire(self) -> u32 {
        self.0.ceil() as u32
    }
}

/// The last `N` intervals, with a filter against outliers.
#[derive(Debug, Clone)]
struct Intervals<const N: usize> {
    ring: [u64; N],
    seen: usize,
}

impl<const N: usize> Intervals<N> {
    fn new() -> Self {
        Intervals { ring: [0; N], seen: 0 }
    }

    fn push(&mut self, interval: Nanos) {
        self.ring[self.seen % N] = interval.0;
        self.seen += 1;
    }

    /// The shortest one, once all are known.
    fn shortest(&self) -> Option<Nanos> {
        let shortest = self.ring.iter().min().filter(|_| self.seen >= N)?;
        Some(Nanos(*shortest))
    }

    /// The mean of those between an eighth of the median and eight times it, and how many these are.
    fn filtered(&self) -> Option<(Nanos, usize)> {
        let known = &self.ring[..self.seen.min(N)];
        if known.is_empty() {
            return None;
        }
        let mut sorted = self.ring;
        let sorted = &mut sorted[..known.len()];
        let (_, median, _) = sorted.select_nth_unstable(known.len() / 2);
        let (low, high) = (*median / 8, median.saturating_mul(8));
        let kept = || known.iter().filter(|one| (low..=high).contains(*one));
        let count = kept().count();
        Some((Nanos(kept().sum::<u64>() / count.max(1) as u64), count))
    }
}

/// When packets arrived.
///
/// A socket can deliver many packets at once (UDP_GRO, recvmmsg), all at the same time as far as it says. The time since the
/// previous batch is then shared among that batch's packets.
#[derive(Debug, Clone)]
pub struct ArrivalHistory {
    arrivals: Intervals<16>,
    pairs: Intervals<64>,
    last: Option<Nanos>,
    /// Packets that arrived at `last`.
    together: u32,
    /// The first packet of a pair, and when it arrived.
    first_of_pair: Option<(Seq, Nanos)>,
}

impl Default for ArrivalHistory {
    fn default() -> Self {
        let (arrivals, pairs) = (Intervals::new(), Intervals::new());
        ArrivalHistory { arrivals, pairs, last: None, together: 0, first_of_pair: None }
    }
}

impl ArrivalHistory {
    /// A data packet arrived.
    pub fn arrived(&mut self, now: Nanos, seq: Seq) {
        match self.last {
            Some(last) if now > last => {
                let share = Nanos((now - last).0 / u64::from(self.together));
                (0..self.together.min(16)).for_each(|_| self.arrivals.push(share));
                self.together = 1;
            }
            Some(_) => self.together += 1,
            None => self.together = 1,
        }
        self.last = Some(self.last.map_or(now, |last| last.max(now)));
        self.pair(now, seq);
    }

    /// Packet 16n and the one after it are sent at once: the time between their arrivals is the bottleneck's for one packet
    /// (draft-gg-udt-03 section 6.1). Two packets of one batch say nothing.
    fn pair(&mut self, now: Nanos, seq: Seq) {
        if seq.to_wire().is_multiple_of(16) {
            self.first_of_pair = Some((seq, now));
        } else if let Some((first, then)) = self.first_of_pair
            && first.next() == seq
        {
            self.first_of_pair = None;
            if now > then {
                self.pairs.push(now - then);
            }
        }
    }

    /// How fast packets arrive; 0 where more than half of the intervals are outliers, or before there are sixteen.
    pub fn arrival_rate(&self) -> PacketRate {
        let enough = self.arrivals.seen >= 16;
        match self.arrivals.filtered() {
            Some((mean, kept)) if enough && kept > 8 => PacketRate::each(mean),
            _ => PacketRate(0.0),
        }
    }

    /// How fast the path could carry packets; 0 where nothing is known of that. Where all pairs came in batches, it is as fast as
    /// packets came in the fastest of the last batches.
    pub fn capacity(&self) -> PacketRate {
        match self.pairs.filtered() {
            Some((mean, _)) => PacketRate::each(mean),
            None => self.arrivals.shortest().map_or(PacketRate(0.0), PacketRate::each),
        }
    }
}

/// The round trip and its variance, as moving means (draft-gg-udt-03 section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// The mean.
    pub mean: Nanos,
    /// The mean deviation from it.
    pub variance: Nanos,
}

impl Default for RoundTrip {
    fn default() -> Self {
        RoundTrip { mean: SYN.times(10), variance: SYN.times(5) }
    }
}

impl RoundTrip {
    /// Takes in one more sample.
    pub fn sample(&mut self, sample: Nanos) {
        let deviation = Nanos(sample.0.abs_diff(self.mean.0));
        self.variance = Nanos((self.variance.times(3) + deviation).0 / 4);
        self.mean = Nanos((self.mean.times(7) + sample).0 / 8);
    }

    /// Longer than all but a few round trips.
    pub fn timeout(self) -> Nanos {
        self.mean + self.variance.times(4)
    }
}

/// A round trip that is not known at first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Estimate {
    round_trip: RoundTrip,
    is_known: bool,
}

impl Estimate {
    /// With what the handshake has shown, if it has.
    pub(crate) fn new(first: Option<Nanos>) -> Self {
        let mut estimate = Estimate::default();
        first.into_iter().for_each(|first| estimate.sample(first));
        estimate
    }

    /// Takes in a sample; the first one counts whole (RFC 6298 section 2.2).
    pub(crate) fn sample(&mut self, sample: Nanos) {
        if self.is_known {
            self.round_trip.sample(sample);
        } else {
            self.round_trip = RoundTrip { mean: sample, variance: Nanos(sample.0 / 2) };
            self.is_known = true;
        }
    }

    /// What the peer reports. libudt reports its initial value until it has measured something, and then values on the way from there to
    /// the true one, with a variance of up to twice the mean.
    pub(crate) fn reported(&mut self, mean: Nanos, variance: Nanos) {
        let is_measured = mean.0 > 0 && RoundTrip { mean, variance } != RoundTrip::default();
        let is_settled = variance.0 <= mean.0 / 2;
        if is_measured && (is_settled || !self.is_known) {
            self.sample(mean);
        }
    }

    pub(crate) fn round_trip(&self) -> RoundTrip {
        self.round_trip
    }

    /// Longer than all but a few round trips; a second while none is known (RFC 6298 section 2.1).
    pub(crate) fn patience(&self) -> Nanos {
        if self.is_known { self.round_trip.timeout() } else { Nanos::secs(1) }
    }
}

const ACKS: usize = 1024;

/// The last acknowledgements that were sent, for the ACK2 that returns a number of them.
#[derive(Clone)]
pub struct AckHistory {
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
    /// Acknowledgement `number` was sent, which named `next`.
    pub fn sent(&mut self, now: Nanos, number: u32, next: Seq) {
        self.ring[number as usize % ACKS] = Some((number, next, now));
    }

    /// What an acknowledgement named, and how long ago it was sent. Each is answered once.
    pub fn answered(&mut self, now: Nanos, number: u32) -> Option<(Seq, Nanos)> {
        let place = &mut self.ring[number as usize % ACKS];
        let (_, next, then) = place.filter(|(known, ..)| *known == number)?;
        *place = None;
        Some((next, now - then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arrival_rate_leaves_out_a_pause() {
        let mut history = ArrivalHistory::default();
        let mut now = Nanos::secs(5);
        for n in 0..17 {
            history.arrived(now, Seq::new(n));
            now += if n == 9 { Nanos::millis(50) } else { Nanos::micros(100) };
        }
        assert_eq!(history.arrival_rate().to_wire(), 10_000);
    }

    #[test]
    fn a_batch_shares_the_time_since_the_last_one() {
        let mut history = ArrivalHistory::default();
        for n in 0..80 {
            history.arrived(Nanos::millis(u64::from(n / 8)), Seq::new(n));
        }
        assert_eq!(history.arrival_rate().to_wire(), 8_000);
    }

    #[test]
    fn without_pairs_the_fastest_batch_shows_the_capacity() {
        let mut history = ArrivalHistory::default();
        let mut now = Nanos::secs(1);
        for batch in 0..8u32 {
            now += if batch == 6 { Nanos::micros(500) } else { Nanos::millis(1) };
            assert_eq!(history.capacity(), PacketRate(if batch < 5 { 0.0 } else { 4_000.0 }), "{batch}");
            (0..4).for_each(|n| history.arrived(now, Seq::new(4 * batch + n)));
            if batch == 5 {
                break;
            }
        }
        (0..8u32).for_each(|n| history.arrived(now + Nanos::micros(500), Seq::new(100 + n)));
        history.arrived(now + Nanos::secs(1), Seq::new(200));
        assert_eq!(history.capacity().to_wire(), 8_000);
    }

    #[test]
    fn pairs_give_the_capacity() {
        let mut history = ArrivalHistory::default();
        for n in 0..40 {
            history.arrived(Nanos::micros(20 * n + 1), Seq::MAX.minus(15).plus(n as u32));
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

    #[test]
    fn the_first_sample_counts_whole_and_a_report_of_nothing_does_not() {
        let mut estimate = Estimate::new(None);
        assert_eq!(estimate.patience(), Nanos::secs(1));
        estimate.reported(Nanos::millis(100), Nanos::millis(50));
        assert_eq!(estimate.patience(), Nanos::secs(1));
        estimate.reported(Nanos::millis(400), Nanos::millis(10));
        assert_eq!(estimate.round_trip().mean, Nanos::millis(400));
        assert_eq!(estimate.patience(), Nanos::millis(1200));
        estimate.sample(Nanos::millis(480));
        assert_eq!(estimate.round_trip().mean, Nanos::millis(410));
        let mut estimate = Estimate::new(Some(Nanos::millis(40)));
        assert_eq!(estimate.patience(), Nanos::millis(120));
        estimate.reported(Nanos::millis(87), Nanos::millis(62));
        assert_eq!(estimate.round_trip().mean, Nanos::millis(40));
    }

    #[test]
    fn the_mean_moves_by_an_eighth() {
        let mut trip = RoundTrip { mean: Nanos::millis(80), variance: Nanos::millis(8) };
        trip.sample(Nanos::millis(160));
        assert_eq!(trip, RoundTrip { mean: Nanos::millis(90), variance: Nanos::millis(26) });
    }
}
