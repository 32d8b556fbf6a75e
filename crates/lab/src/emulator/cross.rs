//! Cross traffic: packets of others that use the queue and the line of a direction, and reach no host.

use landspeed_record::units::Nanos;
use landspeed_stats::{TrafficCounts, TrafficProcess, TrafficSpec};

/// The longest idle time of a direction for which missed cross-traffic packets are caught up. A queue that was full
/// before such a time is mostly empty after it.
const LONGEST_GAP: Nanos = Nanos::millis(200);

/// The sources of one direction's cross traffic. Their clock runs only while segments arrive, and starts with the first
/// one, so that a link that is idle for an hour costs nothing.
#[derive(Debug, Clone)]
pub(super) struct CrossSources {
    sources: Vec<TrafficProcess>,
    /// The time of the direction at which the sources' own time is zero; `None` before the first segment.
    origin: Option<Nanos>,
    /// The time of the last look.
    last: Nanos,
    counts: TrafficCounts,
}

/// A packet of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CrossPacket {
    pub(super) at: Nanos,
    /// Length of its IP packet, in bytes.
    pub(super) size: u32,
}

impl CrossSources {
    pub(super) fn new(sources: &[TrafficSpec]) -> Self {
        CrossSources {
            sources: sources.iter().map(TrafficProcess::new).collect(),
            origin: None,
            last: Nanos(0),
            counts: TrafficCounts::default(),
        }
    }

    /// Moves the time of the sources on to `now`. Call it before the packets until then are taken.
    pub(super) fn advance(&mut self, now: Nanos) {
        let origin = self.origin.get_or_insert(now);
        let gap = now.saturating_sub(self.last);
        if self.last > Nanos(0) && gap > LONGEST_GAP {
            *origin += gap.saturating_sub(LONGEST_GAP);
        }
        self.last = now;
    }

    /// Returns the next packet that is due by `now`; `None` if there is none.
    pub(super) fn take(&mut self, now: Nanos) -> Option<CrossPacket> {
        let origin = self.origin?;
        loop {
            let next = self.sources.iter_mut().min_by_key(|source| source.next())?;
            let at = origin + next.next();
            if at > now {
                return None;
            }
            // None is the arrival of a short flow.
            if let Some(size) = next.take() {
                return Some(CrossPacket { at, size: size.into() });
            }
        }
    }

    /// Counts a packet, and whether the queue had room for it.
    pub(super) fn count(&mut self, packet: CrossPacket, had_room: bool) {
        self.counts.packets += 1;
        self.counts.bytes.0 += u64::from(packet.size);
        self.counts.no_room += u64::from(!had_room);
    }

    pub(super) fn counts(&self) -> TrafficCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;
    use landspeed_stats::{Random, TrafficMix};

    use super::*;

    fn mix(load_bps: f64) -> CrossSources {
        let mix = TrafficMix {
            load_bps: BitRate(load_bps),
            on_ns: Nanos::millis(10),
            off_ns: Nanos::millis(10),
            short: 0.0,
        };
        CrossSources::new(&mix.sources(&mut Random::new(7)))
    }

    /// Looks every millisecond from `from` on, and returns the packets.
    fn packets(cross: &mut CrossSources, from: u64, millis: u64) -> Vec<CrossPacket> {
        let mut all = Vec::new();
        for now in (0..millis).map(|millis| Nanos::millis(from + millis)) {
            cross.advance(now);
            all.extend(std::iter::from_fn(|| cross.take(now)));
        }
        all
    }

    #[test]
    fn packets_come_in_order_and_at_their_rate() {
        let seen = packets(&mut mix(1e8), 5000, 20_000);
        assert!(seen.is_sorted_by_key(|packet| packet.at) && seen[0].at >= Nanos::millis(5000));
        let rate = seen.iter().map(|packet| f64::from(packet.size)).sum::<f64>() * 8.0 / 20.0;
        // The times have heavy tails, so the mean of 20 s varies by much.
        assert!((0.6e8..1.4e8).contains(&rate), "{rate}");
        assert_eq!(seen, packets(&mut mix(1e8), 5000, 20_000), "the same seed sends the same packets");
    }

    #[test]
    fn an_hour_without_segments_is_not_made_up_for() {
        let mut cross = mix(1e8);
        packets(&mut cross, 1, 1000);
        let later = packets(&mut cross, 3_600_000, 1);
        // 100 Mb/s send 417 packets of 6000 bytes in 200 ms.
        assert!(later.len() < 2 * 417, "{}", later.len());
        assert!(later.iter().all(|packet| packet.at > Nanos::millis(3_599_000)), "{later:?}");
    }

    #[test]
    fn no_load_has_no_packets() {
        let mut random = Random::new(1);
        let none = TrafficMix { load_bps: BitRate(0.0), on_ns: Nanos(1), off_ns: Nanos(1), short: 0.5 };
        assert!(packets(&mut CrossSources::new(&none.sources(&mut random)), 0, 10).is_empty());
    }
}
