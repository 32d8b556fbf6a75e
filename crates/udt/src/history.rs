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

    /// How fast the path could carry packets; 0 before the first pair.
    pub fn capacity(&self) -> PacketRate {
        self.pairs.filtered().map_or(PacketRate(0.0), |(mean, _)| PacketRate::each(mean))
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
        assert_eq!(history.capacity(), PacketRate(0.0));
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
    fn the_mean_moves_by_an_eighth() {
        let mut trip = RoundTrip { mean: Nanos::millis(80), variance: Nanos::millis(8) };
        trip.sample(Nanos::millis(160));
        assert_eq!(trip, RoundTrip { mean: Nanos::millis(90), variance: Nanos::millis(26) });
    }
}
