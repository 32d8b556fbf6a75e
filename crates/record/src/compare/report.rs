//! The result of a study: what `landspeed compare --json` prints. Schema: docs/reference/json.md.

use landspeed_units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::study::Study;
use crate::unknown;

pub const COMPARE_FORMAT: u32 = 1;

/// A figure over repeats: its mean, and the 95 % interval of that mean (Student's t). One repeat has no interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// Mean over the repeats.
    pub mean: f64,
    /// Low end; `None` for one repeat.
    pub low: Option<f64>,
    /// High end; `None` for one repeat.
    pub high: Option<f64>,
}

/// One region of the schedule: cottrell-2005 section III.A.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RegionFigures {
    /// Number, from 1.
    pub region: u16,
    /// Flows that run in it.
    pub flows: u16,
    /// Goodput of all flows together, mean over repeats; `None` where nothing arrived.
    #[serde(with = "unknown::measured")]
    pub mean_bps: BitRate,
    /// Standard deviation of the aggregate over the seconds of the region, mean over repeats; `None` where there is no
    /// spread.
    #[serde(with = "unknown::measured")]
    pub sd_bps: BitRate,
    /// `sd / mean` of the aggregate; `None` where nothing arrived.
    pub stability: Option<f64>,
    /// Jain's index of the flows' mean goodputs, mean over repeats; 1 with one flow, `None` where nothing arrived.
    pub fairness: Option<f64>,
}

/// One protocol under the schedule: a row of the paper's Tables 1 and 2.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContestFigures {
    /// Congestion control: its name in `landspeed cc list`.
    pub protocol: String,
    /// Its name in the literature: "H-TCP".
    pub title: String,
    /// Goodput of all flows together over all regions, mean over repeats; `None` where no run counts.
    #[serde(with = "unknown::measured")]
    pub mean_bps: BitRate,
    /// Standard deviation of the aggregate over all seconds of a run, mean over repeats; `None` where no run counts.
    #[serde(with = "unknown::measured")]
    pub sd_bps: BitRate,
    /// `sd_bps / mean_bps`: smaller is steadier. `None` where nothing arrived, or no run counts.
    pub stability: Option<f64>,
    /// Region by region; those without two samples are left out.
    pub fairness: Vec<RegionFigures>,
    /// Least of Jain's index over the regions with several flows; `None` where no region has them.
    pub fairness_min: Option<f64>,
    /// Greatest of it.
    pub fairness_max: Option<f64>,
    /// Processor time of the sender by elapsed time, 1 is one core; `None` in the simulator.
    pub cpu: Option<f64>,
    /// Processor cycles of the sender by bit of payload (the paper's MHz per Mb/s); `None` where the clock is unknown.
    pub cycles_per_bit: Option<f64>,
    /// Mean of the probe's round trips; `None` where none came back.
    pub rtt_mean_s: Option<f64>,
    /// Standard deviation of the probe's round trips; `None` where none came back.
    pub rtt_sd_s: Option<f64>,
    /// Retransmitted segments by segments delivered; `None` where nothing was.
    pub resent_share: Option<f64>,
    /// From a flow's entry until its goodput over 5 samples first stays within 20 % of its fair share; median over
    /// flows that enter a path in use, and `None` where less than half of them came so far within their region.
    pub convergence_s: Option<f64>,
    /// Aggregate of the middle region, with all flows: over repeats.
    pub middle_bps: Option<Interval>,
    /// Each run's own mean goodput, over repeats; tells with the next three which differences are real. `None` where no run
    /// has one.
    pub mean_over_repeats_bps: Option<Interval>,
    /// The same of `stability`.
    pub stability_over_repeats: Option<Interval>,
    /// The same of `fairness_min`.
    pub fairness_over_repeats: Option<Interval>,
    /// The same of `rtt_sd_s`.
    pub rtt_sd_over_repeats_s: Option<Interval>,
    /// Runs that count; where none does, every figure is `None`.
    pub runs: u32,
    /// Runs that do not: nothing of them is in any figure.
    pub invalid: u32,
}

/// Two protocols on one path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MeetingFigures {
    /// The first: flows 1 and 3.
    pub first: String,
    /// The second: flows 2 and 4.
    pub second: String,
    /// Mean goodput of the first's flows over that of the second's while all flows run: geometric mean over repeats.
    /// 1 is fair; `None` where neither moved anything.
    pub ratio: Option<Interval>,
    /// Jain's index of all flows in the middle region; `None` where nothing arrived.
    pub fairness: Option<f64>,
    /// Goodput of all flows together in the middle region, mean over repeats; `None` where no run counts.
    #[serde(with = "unknown::measured")]
    pub mean_bps: BitRate,
    pub runs: u32,
    pub invalid: u32,
}

/// Two flows of one protocol, of which one has a longer round trip.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RoundTripFigures {
    pub protocol: String,
    /// Idle round trip of the first flow.
    pub short_rtt_ns: Nanos,
    /// Idle round trip of the second flow.
    pub long_rtt_ns: Nanos,
    /// Goodput of the flow with the short round trip over that of the other, both from start to end: geometric mean over
    /// repeats. 1 is fair; `None` where neither moved anything.
    pub ratio: Option<Interval>,
    /// `a` where goodput goes as `RTT^-a` (Lakshman & Madhow 1997, who find 1 to 2 for Reno): the logarithm of `ratio` by
    /// that of the round trips' ratio. 0 is fair; `None` where neither moved anything.
    pub bias: Option<f64>,
    /// Goodput of both together, mean over repeats; `None` where no run counts.
    #[serde(with = "unknown::measured")]
    pub mean_bps: BitRate,
    pub runs: u32,
    pub invalid: u32,
}

/// Short flows beside a long one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ShortFlowFigures {
    pub protocol: String,
    /// Short flows that came to their end within the run.
    pub completed: u32,
    /// Short flows that did not, within the run.
    pub unfinished: u32,
    /// Median completion time; `None` where none came to its end.
    pub median_s: Option<f64>,
    /// 90th percentile; `None` with fewer than 10 flows beyond it.
    pub p90_s: Option<f64>,
    /// Goodput of the long flow, mean over repeats; `None` where no run counts.
    #[serde(with = "unknown::measured")]
    pub long_bps: BitRate,
    pub runs: u32,
    pub invalid: u32,
}

/// Processor cost against the number of parallel streams: cottrell-2005 Figures 6 and 7.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuByStreams {
    /// Parallel streams.
    pub streams: u32,
    /// Window of each: the one of those tried with which they carried most.
    pub window_bytes: Bytes,
    /// Goodput of all streams together, mean over repeats; `None` where no run counts.
    #[serde(with = "unknown::measured")]
    pub rate_bps: BitRate,
    /// Sender's processor time by elapsed time; `None` in the simulator.
    pub cpu: Option<f64>,
    /// Cycles of the sender by bit (GHz per Gb/s); `None` where the clock is unknown.
    pub cycles_per_bit: Option<f64>,
    /// Runs that count, of this window.
    pub runs: u32,
    /// How many windows were tried.
    pub windows_tried: u32,
}

/// An order by one figure, best first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ranking {
    /// The figure: "throughput", "stability", "fairness", "effect on RTT", "convergence", "processor cost".
    pub by: String,
    /// Protocols in groups, best first: within a group no difference is real (Student's test of the paired differences
    /// over repeats, Holm's correction over all pairs, 5 % for the whole ranking).
    pub groups: Vec<Vec<String>>,
    /// How to read it, where there is something to say: too few repeats for any difference.
    pub note: Option<String>,
}

/// A value that the paper prints, and ours; only at scale 1.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PaperValue {
    pub protocol: String,
    /// "mean_bps", "sd_bps", "stability", "fairness_min", "fairness_max", "cycles_per_bit", "rtt_sd_s", and
    /// "stability_1" to "fairness_7" for the regions.
    pub figure: String,
    /// What the paper prints, in our unit.
    pub paper: f64,
    /// What this study has.
    pub ours: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PaperFinding {
    /// Where the paper says it: "section IV.A, Table 1".
    pub place: String,
    /// What the paper says.
    pub claim: String,
    /// Whether it shows here; `None` where this study cannot tell.
    pub reproduces: Option<bool>,
    /// Our figures that tell, in words.
    pub evidence: String,
    /// The likely reason where it does not.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CompareReport {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    /// From the first run's start to the last one's end; `None` in the simulator, where runs take no time of their own.
    #[serde(deserialize_with = "unknown::or_default")]
    pub took_ns: Option<Nanos>,
    pub command: String,
    /// What was to be run.
    pub study: Study,
    /// Each protocol under the schedule, in the study's order.
    pub protocols: Vec<ContestFigures>,
    /// Two protocols on one path.
    pub meetings: Vec<MeetingFigures>,
    /// Short flows beside a long one.
    pub short_flows: Vec<ShortFlowFigures>,
    /// Flows of one protocol with two round trips on one path.
    pub round_trips: Vec<RoundTripFigures>,
    /// Processor cost by the number of parallel streams.
    pub streams: Vec<CpuByStreams>,
    /// Orders of the protocols, and which differences are real.
    pub rankings: Vec<Ranking>,
    /// Beside the paper's own values, at full size only.
    pub paper: Vec<PaperValue>,
    /// What the paper found, and whether it shows here.
    pub findings: Vec<PaperFinding>,
    /// Runs that were to be made.
    pub runs_planned: u32,
    /// Runs that were made.
    pub runs: u32,
    /// Runs of them that do not count.
    pub invalid_runs: u32,
    /// Why the study fails as a whole: over a fifth of its runs do not count, or runs are missing. `None` for a
    /// valid study.
    pub void: Option<String>,
    pub notes: Vec<String>,
    pub record: Option<String>,
}
