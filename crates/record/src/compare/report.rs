//! The result of a study: what `landspeed compare --json` prints. Schema: docs/reference/json.md.

use crate::units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::study::Study;
use crate::{HostFacts, unknown};

pub const COMPARE_FORMAT: u32 = 1;

/// A figure over repeats: the mean, and its 95 % interval (Student's t). A single repeat gives no interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct MeanInterval {
    /// Mean over the repeats.
    pub mean: f64,
    /// Low end; `None` for one repeat.
    pub low: Option<f64>,
    /// High end; `None` for one repeat.
    pub high: Option<f64>,
}

/// Figures of one region of the schedule, in which the number of flows stays the same (cottrell-2005 section III.A).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RegionFigures {
    /// Number of the region, from 1.
    pub region: u16,
    /// Number of flows in the region.
    pub flows: u16,
    /// Goodput of all flows together, mean over repeats; `None` if nothing arrived.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub mean_bps: BitRate,
    /// Standard deviation of the aggregate goodput over the seconds of the region, mean over repeats; `None` if there
    /// is no spread.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub sd_bps: BitRate,
    /// Standard deviation of the aggregate goodput divided by its mean; `None` if nothing arrived.
    pub stability: Option<f64>,
    /// Jain's index of the flows' mean goodputs, mean over repeats; 1 with one flow, `None` if nothing arrived.
    pub fairness: Option<f64>,
}

/// Figures of one protocol under the schedule, as in a row of Tables 1 and 2 of cottrell-2005.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ContestFigures {
    /// Name of the congestion control in `landspeed cc list`.
    pub protocol: String,
    /// Name of the protocol in the literature: "H-TCP".
    pub title: String,
    /// Goodput of all flows together over all regions, mean over repeats; `None` if no run counts.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub mean_bps: BitRate,
    /// Standard deviation of the aggregate goodput over all seconds of a run, mean over repeats; `None` if no run
    /// counts.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub sd_bps: BitRate,
    /// `sd_bps / mean_bps`; a smaller value is steadier. `None` if nothing arrived, or if no run counts.
    pub stability: Option<f64>,
    /// Figures of each region. Regions without two samples are left out.
    pub fairness: Vec<RegionFigures>,
    /// Lowest Jain's index of the regions with several flows; `None` if no region has several.
    pub fairness_min: Option<f64>,
    /// Highest Jain's index of the regions with several flows; `None` if no region has several.
    pub fairness_max: Option<f64>,
    /// Processor time of the sender per elapsed time, in cores; `None` in the simulator.
    pub cpu: Option<f64>,
    /// Processor cycles of the sender per bit of payload (the paper's MHz per Mb/s); `None` if the clock is unknown.
    pub cycles_per_bit: Option<f64>,
    /// Mean of the probe's round trips; `None` if no probe came back.
    pub rtt_mean_s: Option<f64>,
    /// Standard deviation of the probe's round trips; `None` if no probe came back.
    pub rtt_sd_s: Option<f64>,
    /// Retransmitted segments per delivered segment; `None` if no segment was delivered.
    pub resent_share: Option<f64>,
    /// Time from a flow's entry until the mean of its goodput over 5 samples first stays within 20 % of its fair
    /// share; median over the flows that enter a path in use. `None` if less than half of them converged within their
    /// region.
    pub convergence_s: Option<f64>,
    /// Goodput of all flows together in the middle region, in which all flows run, over repeats; `None` if no run has
    /// a value.
    pub middle_bps: Option<MeanInterval>,
    /// Mean and interval of `mean_bps` over the repeats, one value for each run; `None` if no run has a value. The
    /// intervals of the `_over_repeats` figures show which differences are significant.
    pub mean_over_repeats_bps: Option<MeanInterval>,
    /// Mean and interval of `stability` over the repeats, one value for each run; `None` if no run has a value.
    pub stability_over_repeats: Option<MeanInterval>,
    /// Mean and interval of `fairness_min` over the repeats, one value for each run; `None` if no run has a value.
    pub fairness_over_repeats: Option<MeanInterval>,
    /// Mean and interval of `rtt_sd_s` over the repeats, one value for each run; `None` if no run has a value.
    pub rtt_sd_over_repeats_s: Option<MeanInterval>,
    /// Number of runs that count. Without any, every figure is `None`.
    pub runs: u32,
    /// Number of runs that do not count. No figure includes them.
    pub invalid: u32,
}

/// Figures of two protocols whose flows share one path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct MeetingFigures {
    /// Name of the first protocol, which has flows 1 and 3.
    pub first: String,
    /// Name of the second protocol, which has flows 2 and 4.
    pub second: String,
    /// Mean goodput of the first protocol's flows divided by the mean goodput of the second's, while all flows run;
    /// geometric mean over repeats. 1 is fair; `None` if nothing arrived.
    pub ratio: Option<MeanInterval>,
    /// Jain's index of all flows in the middle region; `None` if nothing arrived.
    pub fairness: Option<f64>,
    /// Goodput of all flows together in the middle region, mean over repeats; `None` if no run counts.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub mean_bps: BitRate,
    pub runs: u32,
    pub invalid: u32,
}

/// Figures of two flows of one protocol that share a path and have different round trips.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RoundTripFigures {
    pub protocol: String,
    /// Idle round trip of the first flow.
    pub short_rtt_ns: Nanos,
    /// Idle round trip of the second flow.
    pub long_rtt_ns: Nanos,
    /// Goodput of the flow with the shorter round trip divided by the goodput of the other flow, both over the whole
    /// run; geometric mean over repeats. 1 is fair; `None` if nothing arrived.
    pub ratio: Option<MeanInterval>,
    /// The exponent `a` if goodput is proportional to `RTT^-a` (Lakshman & Madhow 1997, who find 1 to 2 for Reno). It
    /// is the logarithm of `ratio`, divided by the logarithm of the ratio of the two round trips. 0 is fair; `None` if
    /// nothing arrived.
    pub bias: Option<f64>,
    /// Goodput of both flows together, mean over repeats; `None` if no run counts.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub mean_bps: BitRate,
    pub runs: u32,
    pub invalid: u32,
}

/// Figures of short flows beside a long flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ShortFlowFigures {
    pub protocol: String,
    /// Number of short flows that completed within the run.
    pub completed: u32,
    /// Number of short flows that did not complete within the run.
    pub unfinished: u32,
    /// Median completion time; `None` if no short flow completed.
    pub median_s: Option<f64>,
    /// 90th percentile of the completion time; `None` with fewer than 10 flows beyond it.
    pub p90_s: Option<f64>,
    /// Goodput of the long flow, mean over repeats; `None` if no run counts.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub long_bps: BitRate,
    pub runs: u32,
    pub invalid: u32,
}

/// Processor cost for one number of parallel streams (cottrell-2005 Figures 6 and 7).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ParallelStreamFigures {
    /// Number of parallel streams.
    pub streams: u32,
    /// Window of each stream: of the windows that were tried, the one with the highest goodput.
    pub window_bytes: Bytes,
    /// Goodput of all streams together, mean over repeats; `None` if no run counts.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub rate_bps: BitRate,
    /// Processor time of the sender per elapsed time, in cores; `None` in the simulator.
    pub cpu: Option<f64>,
    /// Processor cycles of the sender per bit (GHz per Gb/s); `None` if the clock is unknown.
    pub cycles_per_bit: Option<f64>,
    /// Number of runs with this window that count.
    pub runs: u32,
    /// Number of window sizes that were tried.
    pub windows_tried: u32,
}

/// The protocols, ranked by one figure, best first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Ranking {
    /// Name of the figure: "throughput", "stability", "fairness", "effect on RTT", "convergence", "processor cost".
    pub by: String,
    /// Groups of protocols, best first. Differences within a group are not significant (Student's test of the paired
    /// differences over repeats, Holm's correction over all pairs, 5 % for the whole ranking).
    pub groups: Vec<Vec<String>>,
    /// A remark on the ranking, for example that there are too few repeats to show a difference; `None` without a
    /// remark.
    pub note: Option<String>,
}

/// A value from the paper (cottrell-2005), and this study's value. It is given only for a study with the same size and
/// path as the paper's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PaperValue {
    pub protocol: String,
    /// Name of the figure: "mean_bps", "sd_bps", "stability", "fairness_min", "fairness_max", "cycles_per_bit",
    /// "rtt_sd_s", "cpu_of_a_flow" (Reno's share of a processor of the sender for each flow), "cpu_over_reno" (the sender's
    /// processor time over that of Reno), and "stability_1" to "fairness_7" for the regions.
    pub figure: String,
    /// The claim of the papers' ledger that has the paper's value, such as "cottrell.t1.reno.avg".
    pub claim: String,
    /// The paper's value, in landspeed's unit.
    pub paper: f64,
    /// The value of this study.
    pub ours: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PaperFinding {
    /// The place in the paper: "section IV.A, Table 1".
    pub place: String,
    /// The paper's claim.
    pub claim: String,
    /// The claims of the papers' ledger that the finding is about.
    pub claims: Vec<String>,
    /// True if the claim reproduces here; `None` if this study cannot decide.
    pub reproduces: Option<bool>,
    /// Figures of this study that decide the claim, in words.
    pub evidence: String,
    /// The likely reason if the claim does not reproduce.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CompareReport {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    /// Time from the start of the first run to the end of the last; `None` in the simulator, whose runs have no
    /// wall-clock time.
    #[serde(deserialize_with = "unknown::or_default")]
    pub took_ns: Option<Nanos>,
    pub command: String,
    /// Facts of the hosts A and B, when the study began. Empty in the simulator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostFacts>,
    /// The study as planned.
    pub study: Study,
    /// Figures of each protocol under the schedule, in the study's order.
    pub protocols: Vec<ContestFigures>,
    /// Figures of two protocols on one path.
    pub meetings: Vec<MeetingFigures>,
    /// Figures of short flows beside a long flow.
    pub short_flows: Vec<ShortFlowFigures>,
    /// Figures of flows of one protocol with two different round trips on one path.
    pub round_trips: Vec<RoundTripFigures>,
    /// Processor cost by number of parallel streams.
    pub streams: Vec<ParallelStreamFigures>,
    /// Rankings of the protocols, one for each figure.
    pub rankings: Vec<Ranking>,
    /// The paper's values, each with the value of this study. Empty unless the study has the same size and path as the
    /// paper's.
    pub paper: Vec<PaperValue>,
    /// The paper's findings, and whether they reproduce here.
    pub findings: Vec<PaperFinding>,
    /// Number of runs that were planned.
    pub runs_planned: u32,
    /// Number of runs that were made.
    pub runs: u32,
    /// Number of runs that were made and do not count.
    pub invalid_runs: u32,
    /// Reason why the study as a whole does not count: more than a fifth of its runs do not count, or runs are
    /// missing. `None` for a valid study.
    pub void: Option<String>,
    pub notes: Vec<String>,
    pub record: Option<String>,
}
