//! A protocol's figures in one engine, run by run, and whether two engines' are of one protocol.
//!
//! The rate of a full link is none of them: every control fills it. Two columns agree where each figure's means are no
//! further apart than two single runs are, 95 times in 100, by the spread of both columns' own repeats. Nothing in that
//! is set by hand, and none of it was chosen by what agrees: more repeats make the bound no narrower, so that it leaves
//! as much room for what the simulator leaves out as runs of one engine leave each other.

use landspeed_analysis::compare::RunFigures;
use landspeed_record::{Study, StudyRun};
use landspeed_stats::{Apart, apart, mean_and_deviation};
use serde::{Deserialize, Serialize};

const CONFIDENCE: f64 = 0.95;

/// What a run shows of its congestion control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    /// Aggregate of the middle region, Mb/s.
    pub(super) middle_mbps: f64,
    /// S over the whole run.
    pub(super) stability: f64,
    /// Least F over the regions with several flows.
    pub(super) fairness: f64,
    /// Congestion windows of all flows together, segments, mean over the middle region.
    pub(super) window_segments: f64,
    /// Standard deviation of that over time.
    pub(super) window_sd_segments: f64,
    /// Standard deviation of the probe's round trips.
    pub(super) rtt_sd_s: f64,
}

impl Run {
    /// The figures of a run that counts and has them all.
    pub(super) fn of(study: &Study, run: &StudyRun) -> Option<Run> {
        let figures = RunFigures::of(study, run).filter(|_| run.invalid.is_empty())?;
        let (window_segments, window_sd_segments) = windows(study, run)?;
        Some(Run {
            middle_mbps: figures.middle_bps()?.0 / 1e6,
            stability: figures.stability?,
            fairness: figures.fairness_min?,
            window_segments,
            window_sd_segments,
            rtt_sd_s: figures.rtt_sd_s?,
        })
    }
}

/// All flows' windows together while all are there: mean and deviation over the samples.
fn windows(study: &Study, run: &StudyRun) -> Option<(f64, f64)> {
    let (start, end, _) = study.regions().into_iter().max_by_key(|region| region.2)?;
    let of_flow = |flow: &landspeed_record::RunFlow| -> Vec<u32> {
        let within = flow.samples.iter().filter(|sample| sample.at_ns > start && sample.at_ns <= end);
        within.map(|sample| sample.cwnd_segments).collect()
    };
    let flows: Vec<Vec<u32>> = run.flows.iter().map(of_flow).collect();
    let looks = flows.iter().map(Vec::len).min().filter(|looks| *looks > 1)?;
    let sums = (0..looks).map(|look| flows.iter().map(|flow| f64::from(flow[look])).sum());
    Some(mean_and_deviation(&sums.collect::<Vec<f64>>()))
}

/// A figure by which columns are held against each other.
struct Figure {
    name: &'static str,
    /// Logarithms of what scales, so that a bound is a ratio.
    of: fn(&Run) -> f64,
}

const FIGURES: [Figure; 5] = [
    Figure { name: "S", of: |run| run.stability.ln() },
    Figure { name: "F", of: |run| run.fairness },
    Figure { name: "window", of: |run| run.window_segments.ln() },
    Figure { name: "window's deviation", of: |run| (run.window_sd_segments / run.window_segments).ln() },
    Figure { name: "round trip's deviation", of: |run| run.rtt_sd_s.ln() },
];

/// All runs of a protocol that count, in one engine over one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub(super) protocol: String,
    pub(super) runs: Vec<Run>,
}

impl Column {
    /// The figures in which it differs from another one, each with how many times the bound it is apart; `None` where
    /// either has too few runs to tell.
    pub(super) fn differs(&self, other: &Column) -> Option<Vec<(&'static str, f64)>> {
        let apart_in = |figure: &Figure| -> Option<(&'static str, Apart)> {
            let of = |column: &Column| column.runs.iter().map(figure.of).collect::<Vec<f64>>();
            Some((figure.name, apart(&of(self), &of(other), CONFIDENCE)?))
        };
        let all: Vec<(&str, Apart)> = FIGURES.iter().map(apart_in).collect::<Option<_>>()?;
        let beyond = all.into_iter().filter(|(_, apart)| !apart.is_within());
        Some(beyond.map(|(name, apart)| (name, apart.difference.abs() / apart.bound)).collect())
    }

    /// The mean of a figure over the runs.
    pub(super) fn mean(&self, of: fn(&Run) -> f64) -> f64 {
        self.runs.iter().map(of).sum::<f64>() / self.runs.len().max(1) as f64
    }
}

/// The columns of one path, in both engines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Path {
    pub(super) rtt_ms: u64,
    pub(super) kernel: Vec<Column>,
    pub(super) simulator: Vec<Column>,
}

impl Path {
    /// Whether the kernel's column of one protocol passes for the simulator's of another; `None` where either lacks runs.
    pub(super) fn passes(&self, kernel: &str, simulator: &str) -> Option<bool> {
        let find = |columns: &'_ [Column], name: &str| {
            columns.iter().find(|column| column.protocol == name).cloned()
        };
        let (kernel, simulator) = (find(&self.kernel, kernel)?, find(&self.simulator, simulator)?);
        Some(kernel.differs(&simulator)?.is_empty())
    }

    fn protocols(&self) -> impl Iterator<Item = &str> {
        self.simulator.iter().map(|column| column.protocol.as_str())
    }
}

/// What pairing each protocol's kernel columns with every other protocol's simulation gave.
pub(super) struct Pairings {
    /// Wrong pairings that pass, of all that were judged: one path each.
    pub(super) passed: usize,
    pub(super) judged: usize,
    pub(super) protocols: Vec<Paired>,
}

/// What one protocol's kernel columns are taken for.
#[derive(Debug, PartialEq)]
pub(super) struct Paired {
    pub(super) protocol: String,
    /// Whether its own simulation passes for it over a path at least: what is refused by all is not told from any.
    pub(super) is_itself: bool,
    /// Others whose simulation passes for it over every path.
    pub(super) taken_for: Vec<String>,
}

impl Pairings {
    pub(super) fn of(paths: &[Path]) -> Pairings {
        let mut pairings = Pairings { passed: 0, judged: 0, protocols: Vec::new() };
        for name in paths.first().into_iter().flat_map(Path::protocols) {
            pairings.add(paths, name);
        }
        pairings
    }

    fn add(&mut self, paths: &[Path], name: &str) {
        let mut taken_for = Vec::new();
        for other in paths[0].protocols().filter(|other| *other != name) {
            let passes: Vec<bool> = paths.iter().filter_map(|path| path.passes(name, other)).collect();
            self.judged += passes.len();
            self.passed += passes.iter().filter(|passes| **passes).count();
            // What could not be judged anywhere is not told apart.
            if passes.iter().all(|passes| *passes) {
                taken_for.push(other.to_owned());
            }
        }
        let is_itself = paths.iter().any(|path| path.passes(name, name) == Some(true));
        self.protocols.push(Paired { protocol: name.to_owned(), is_itself, taken_for });
    }

    /// Protocols that are taken for themselves and for no other.
    pub(super) fn told_apart(&self) -> usize {
        self.protocols.iter().filter(|paired| paired.is_itself && paired.taken_for.is_empty()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both engines over 100 Mb/s, 80 and 10 ms, half a bandwidth-delay product of queue, regions of 3 s: four kernel runs of
    /// each protocol on 23 November 2026 (Linux 6.18, 2 cores, builds beside them), of which those count whose link was on
    /// time, and twelve simulated ones. Written by `agree --records ... --write`.
    fn recorded() -> Vec<Path> {
        serde_json::from_str(include_str!("recorded.json")).unwrap()
    }

    #[test]
    fn wrong_pairings_fail_for_at_least_eight_of_ten_controls() {
        let pairings = Pairings::of(&recorded());
        assert_eq!(pairings.protocols.len(), 10);
        assert!(pairings.judged >= 162, "of 180: {}", pairings.judged);
        assert!(pairings.told_apart() >= 8, "{:?}", pairings.protocols);
    }

    /// The rule is of use only where it lets right pairings pass.
    #[test]
    fn right_pairings_pass_for_at_least_eight_of_ten_controls() {
        let paths = recorded();
        assert_eq!(paths.len(), 2);
        for path in paths {
            let passed = path.protocols().filter(|name| path.passes(name, name) == Some(true)).count();
            assert!(passed >= 8, "{passed} over {} ms", path.rtt_ms);
        }
    }

    fn column(protocol: &str, windows: &[f64]) -> Column {
        let run = |window: &f64| Run {
            middle_mbps: 96.5,
            stability: 0.1,
            fairness: 0.9,
            window_segments: *window,
            window_sd_segments: 0.1 * window,
            rtt_sd_s: 0.002,
        };
        Column { protocol: protocol.to_owned(), runs: windows.iter().map(run).collect() }
    }

    #[test]
    fn a_full_link_makes_no_two_protocols_alike() {
        let path = Path {
            rtt_ms: 10,
            kernel: vec![column("reno", &[100.0, 101.0, 102.0]), column("bic", &[200.0, 202.0, 204.0])],
            simulator: vec![column("reno", &[100.0, 102.0, 104.0]), column("bic", &[201.0, 203.0, 205.0])],
        };
        assert_eq!((path.passes("reno", "reno"), path.passes("reno", "bic")), (Some(true), Some(false)));
        let differs = path.kernel[0].differs(&path.simulator[1]).unwrap();
        assert_eq!(differs.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["window"]);
        let pairings = Pairings::of(&[path]);
        assert_eq!((pairings.passed, pairings.judged, pairings.told_apart()), (0, 2, 2));
    }

    #[test]
    fn what_could_not_be_judged_is_not_told_apart() {
        let path = Path {
            rtt_ms: 10,
            kernel: vec![column("reno", &[100.0]), column("bic", &[200.0, 202.0])],
            simulator: vec![column("reno", &[100.0, 102.0]), column("bic", &[201.0, 203.0])],
        };
        let pairings = Pairings::of(&[path]);
        assert_eq!((pairings.judged, pairings.told_apart()), (1, 1));
        assert_eq!(pairings.protocols[0].taken_for, ["bic"]);
    }

    #[test]
    fn what_agrees_with_nothing_is_not_told_apart() {
        let path = Path {
            rtt_ms: 10,
            kernel: vec![column("reno", &[500.0, 501.0]), column("bic", &[200.0, 202.0])],
            simulator: vec![column("reno", &[100.0, 102.0]), column("bic", &[201.0, 203.0])],
        };
        assert_eq!(Pairings::of(&[path]).told_apart(), 1);
    }
}
