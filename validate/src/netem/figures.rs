//! What runs over a link amount to: losses, datagrams out of order, rate and one-way delay. Pure.

use std::collections::HashSet;

use landspeed_record::DirectionStats;
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_stats::quantile;
use serde::{Deserialize, Serialize};

use super::condition::{LinkKind, OfferedLoad, PACKET_BYTES};
use super::traffic::DatagramArrival;

/// One run over one link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LinkRun {
    pub(super) turn: u32,
    pub(super) link: LinkKind,
    pub(super) load: OfferedLoad,
    /// The number of datagrams that were sent.
    pub(super) sent: u32,
    /// The number of the first datagram that counts. Those before it fill the queue.
    pub(super) first: u32,
    pub(super) arrivals: Vec<DatagramArrival>,
    /// What the emulator counted; `None` for netem.
    pub(super) emulator: Option<DirectionStats>,
}

/// The figures of all runs over a link under one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LinkFigures {
    pub(super) link: LinkKind,
    pub(super) load: OfferedLoad,
    pub(super) sent: u64,
    pub(super) arrived: u64,
    /// Datagrams that would have to move for the others to be in order.
    pub(super) displaced: u64,
    /// The rate at which datagrams arrived, in bits of IP packets.
    pub(super) rate_bps: BitRate,
    pub(super) delay_median_ns: Nanos,
    pub(super) delay_p99_ns: Nanos,
    pub(super) delay_p999_ns: Nanos,
    pub(super) delay_max_ns: Nanos,
    /// Frames that the emulator failed to carry; 0 for netem.
    pub(super) faults: u64,
    /// The 99th percentile of the time by which the emulator was late, in the worst run; `None` for netem.
    pub(super) late_p99_ns: Option<Nanos>,
}

impl LinkFigures {
    pub(super) fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }

    /// Returns the figures of the runs over a link under a load; `None` if nothing arrived in them.
    pub(super) fn of(runs: &[LinkRun], link: LinkKind, load: OfferedLoad) -> Option<LinkFigures> {
        let runs: Vec<&LinkRun> = runs.iter().filter(|run| (run.link, run.load) == (link, load)).collect();
        let counted: Vec<Vec<DatagramArrival>> = runs.iter().map(|run| run.counted()).collect();
        let delays: Vec<f64> =
            counted.iter().flatten().map(|one| (one.arrived_ns - one.sent_ns).0 as f64).collect();
        let delay = |p: f64| quantile(&delays, p).map(|delay| Nanos(delay as u64));
        let emulators = || runs.iter().filter_map(|run| run.emulator.as_ref());
        Some(LinkFigures {
            link,
            load,
            sent: runs.iter().map(|run| u64::from(run.sent.saturating_sub(run.first))).sum(),
            arrived: counted.iter().map(|arrivals| arrivals.len() as u64).sum(),
            displaced: counted.iter().map(|arrivals| displaced(arrivals)).sum(),
            rate_bps: rate(&counted),
            delay_median_ns: delay(0.5)?,
            delay_p99_ns: delay(0.99)?,
            delay_p999_ns: delay(0.999)?,
            delay_max_ns: delay(1.0)?,
            faults: emulators().map(DirectionStats::faults).sum(),
            late_p99_ns: emulators().filter_map(|stats| stats.late_p99_ns).max(),
        })
    }
}

impl LinkRun {
    /// Returns the arrivals that count: the first one of each datagram after the start.
    fn counted(&self) -> Vec<DatagramArrival> {
        let mut seen = HashSet::new();
        let counts = |one: &&DatagramArrival| one.number >= self.first && seen.insert(one.number);
        self.arrivals.iter().filter(counts).copied().collect()
    }
}

/// Returns how many arrivals would have to move for the others to be in order: all but the longest ascending subsequence
/// of their numbers (Fredman, "On computing the length of longest increasing subsequences", 1975). A datagram that is held
/// back and one that overtakes others count alike, once each.
fn displaced(arrivals: &[DatagramArrival]) -> u64 {
    // The least number that ends an ascending subsequence of each length.
    let mut ends: Vec<u32> = Vec::new();
    for DatagramArrival { number, .. } in arrivals {
        let place = ends.partition_point(|end| end < number);
        match ends.get_mut(place) {
            Some(end) => *end = *number,
            None => ends.push(*number),
        }
    }
    (arrivals.len() - ends.len()) as u64
}

/// Returns the rate between the first and the last arrival of each run, over all runs.
fn rate(runs: &[Vec<DatagramArrival>]) -> BitRate {
    let ends = runs.iter().filter_map(|run| Some((run.first()?, run.last()?, run.len() as u64 - 1)));
    let (packets, time) = ends.fold((0, Nanos(0)), |(packets, time), (first, last, more)| {
        (packets + more, time + (last.arrived_ns - first.arrived_ns))
    });
    Bytes(packets * u64::from(PACKET_BYTES)).per(time)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a link of the tests does otherwise than its settings say.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct MadeUpLink {
        pub(crate) link: LinkKind,
        /// One of every `lost_nth` datagrams is lost.
        pub(crate) lost_nth: u32,
        /// One of every `displaced_nth` datagrams is out of order.
        pub(crate) displaced_nth: u32,
        /// The time between two datagrams, and the delay of most.
        pub(crate) apart: Nanos,
        pub(crate) delay: Nanos,
    }

    impl MadeUpLink {
        /// Returns a link that keeps its settings.
        pub(crate) fn good(link: LinkKind) -> Self {
            let (apart, delay) = (Nanos::micros(625), Nanos::micros(20_500));
            MadeUpLink { link, lost_nth: 100, displaced_nth: 100, apart, delay }
        }

        /// Returns a run whose first 1000 datagrams do not count. As the two links do, the emulator holds datagrams back,
        /// and netem sends them at once.
        pub(crate) fn run(self, load: OfferedLoad, turn: u32) -> LinkRun {
            const SENT: u32 = 11_000;
            let moved = match self.link {
                LinkKind::Emulator => self.delay + Nanos::millis(5),
                LinkKind::Netem => Nanos::micros(50),
            };
            let arrival = |number: u32| {
                let delay = if number % self.displaced_nth == 1 { moved } else { self.delay };
                let sent_ns = self.apart.times(number.into());
                DatagramArrival { number, sent_ns, arrived_ns: sent_ns + delay }
            };
            let arrives = |number: &u32| number % self.lost_nth != 50;
            let mut arrivals: Vec<DatagramArrival> = (0..SENT).filter(arrives).map(arrival).collect();
            arrivals.sort_by_key(|one| one.arrived_ns);
            let emulator = (self.link == LinkKind::Emulator).then(DirectionStats::default);
            LinkRun { turn, link: self.link, load, sent: SENT, first: 1000, arrivals, emulator }
        }
    }

    #[test]
    fn both_ways_to_reorder_count_alike() {
        for link in [LinkKind::Emulator, LinkKind::Netem] {
            let run = MadeUpLink::good(link).run(OfferedLoad::Below, 0);
            let found = LinkFigures::of(&[run.clone(), run], link, OfferedLoad::Below).unwrap();
            assert_eq!((found.sent, found.lost(), found.displaced), (20_000, 200, 200), "{link}");
            assert_eq!(found.delay_median_ns, Nanos::micros(20_500));
            assert!((found.rate_bps.0 / (0.99 * 16e6) - 1.0).abs() < 0.01, "{}", found.rate_bps);
        }
    }

    #[test]
    fn the_start_and_second_arrivals_do_not_count() {
        let mut run = MadeUpLink::good(LinkKind::Netem).run(OfferedLoad::Below, 0);
        run.arrivals.insert(0, DatagramArrival { number: 3, sent_ns: Nanos(0), arrived_ns: Nanos(7) });
        let again = *run.arrivals.last().unwrap();
        run.arrivals.push(DatagramArrival { arrived_ns: again.arrived_ns + Nanos::secs(9), ..again });
        let found = LinkFigures::of(&[run], LinkKind::Netem, OfferedLoad::Below).unwrap();
        assert_eq!((found.sent, found.lost(), found.displaced), (10_000, 100, 100));
        assert!(found.delay_max_ns < Nanos::millis(21), "{}", found.delay_max_ns);
    }

    #[test]
    fn only_runs_of_the_link_and_the_load_count() {
        let runs = [MadeUpLink::good(LinkKind::Netem).run(OfferedLoad::Below, 0)];
        assert_eq!(LinkFigures::of(&runs, LinkKind::Emulator, OfferedLoad::Below), None);
        assert_eq!(LinkFigures::of(&runs, LinkKind::Netem, OfferedLoad::Above), None);
    }

    #[test]
    fn a_sequence_in_reverse_has_one_number_in_its_place() {
        let at = |number| DatagramArrival { number, sent_ns: Nanos(0), arrived_ns: Nanos(0) };
        assert_eq!(displaced(&[5, 4, 3, 2, 1].map(at)), 4);
        assert_eq!(displaced(&[1, 2, 9, 3, 4].map(at)), 1);
        assert_eq!(displaced(&[]), 0);
    }
}
