//! The summary of a tuning run: what `landspeed tune --json` prints. Schema: docs/reference/json.md.

use crate::units::{BitRate, BytesPerCpuSecond, Nanos};
use serde::{Deserialize, Serialize};

use crate::{Cause, Cell, HostFacts, RestoreOutcome, Side, unknown};

pub const SUMMARY_FORMAT: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// Point estimate of the ratio; 1 means no change.
    pub ratio: f64,
    /// Low end of the ratio's interval; `None` if there are too few data to compute it.
    #[serde(with = "unknown::LowEnd")]
    pub low: f64,
    /// High end of the ratio's interval; `None` if there are too few data to compute it.
    #[serde(with = "unknown::HighEnd")]
    pub high: f64,
}

impl Estimate {
    /// Returns the estimate of the inverse ratio.
    pub fn inverse(self) -> Estimate {
        Estimate { ratio: 1.0 / self.ratio, low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// Returns true if the ratio and its interval are finite, positive and in order, so that they can be drawn and
    /// printed. A record may contain any numbers.
    pub fn is_plausible(&self) -> bool {
        [self.ratio, self.low, self.high].iter().all(|x| x.is_finite() && *x > 0.0)
            && self.low <= self.ratio
            && self.ratio <= self.high
    }
}

/// The deciding figure of a program in one trial, and its cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ProgramMetricValue {
    /// Value of the figure, in its own unit.
    pub value: f64,
    /// True if lower values of the figure are better.
    pub less_is_better: bool,
    /// Work per second of processor time over both hosts; `None` if it was not measured. The work is the figure itself
    /// if more of it is better. Otherwise it is the program's first figure of which more is better or, without such a
    /// figure, the number of runs.
    #[serde(with = "unknown::Measured::<f64>")]
    pub per_cpu_s: f64,
}

impl ProgramMetricValue {
    /// Returns the figure, or its reciprocal if lower values are better.
    pub fn better(&self) -> f64 {
        if self.less_is_better { 1.0 / self.value } else { self.value }
    }

    /// Returns a copy with the value for which [`ProgramMetricValue::better`] returns `better`.
    #[must_use]
    pub fn with_better(self, better: f64) -> Self {
        ProgramMetricValue { value: if self.less_is_better { 1.0 / better } else { better }, ..self }
    }
}

/// The program that a run measures, and the figure that decides whether a change helps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ProgramMetric {
    /// Name of the workload: "app:redis".
    pub workload: String,
    /// Name of the deciding figure: "requests".
    pub figure: String,
    /// Unit of the figure.
    pub unit: String,
    /// True if lower values of the figure are better.
    pub less_is_better: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct TrialFigures {
    /// Goodput at the receiver.
    pub rate_bps: BitRate,
    /// Payload per second of processor time over both hosts (each machine counted once); `None` if it was not
    /// measured.
    #[serde(with = "unknown::Measured::<BytesPerCpuSecond>")]
    pub bytes_per_cpu_s: BytesPerCpuSecond,
    /// Median round trip of a 1-byte message on the otherwise idle path; `None` if it was not measured.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub latency_ns: Nanos,
    /// Median round trip of the stream's own flows under load, from the sender's TCP; `None` if none was sampled, as
    /// with another transport or in an older record.
    pub loaded_latency_ns: Option<Nanos>,
    /// Share of the datagrams that did not arrive, 0 to 1; `None` for a transport that loses nothing, and in older
    /// records.
    #[serde(default)]
    pub lost: Option<f64>,
    /// Deciding figure of a program and its cost; `None` for landspeed's own workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramMetricValue>,
    /// Share of processor time that the hypervisor took away during the window, 0 to 1, on the machine with the
    /// larger share.
    pub steal: f64,
    /// Share of the window in which a processor quota or heat throttled the workload's processors, 0 to 1, on the
    /// host with the larger share.
    pub throttled: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepAnswer {
    /// The ratio's interval lies above the least effect of interest.
    Helps,
    /// The ratio's interval lies below one, or the change violated a guard.
    Harms,
    /// The ratio's interval lies below the least effect of interest.
    NoEffect,
    /// The step used up its budget of blocks without an answer.
    Undecided,
    /// The knob cannot be changed here.
    Skipped,
    /// The run's budget was too small for the step, or the change cannot matter here.
    #[default]
    NotTried,
}

/// The prediction that a verdict made for a step before it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepPrediction {
    /// Number of the verdict ([`crate::VerdictLine::number`]).
    pub verdict: u32,
    /// The cause that the step should relieve.
    pub cause: Cause,
    /// Estimated share of the flow's time that the cause costs, 0 to 1; 0 for a cause that will limit the flow only
    /// when others are removed.
    pub weight: f64,
    /// Expected ratio of goodput, candidate to incumbent; `None` if the verdict gave no figure for this step.
    #[serde(default)]
    pub expected_ratio: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepSummary {
    /// ID of the step in the record. Its trials have the same ID.
    pub id: String,
    /// Name of the knob, such as "tso".
    pub knob: String,
    /// The value that was tried, such as "on".
    pub value: String,
    /// The value before the step: of the flow or of host A, or of host B if the step changes the knob only there.
    pub from: String,
    /// The value on host A before the step; `None` if the step does not set the knob there.
    #[serde(default)]
    pub from_a: Option<String>,
    /// The value on host B before the step; `None` if the step does not set the knob there.
    #[serde(default)]
    pub from_b: Option<String>,
    /// Other knobs that the step sets together with this knob, as "knob=value".
    pub with: Vec<String>,
    /// The answer.
    pub answer: StepAnswer,
    /// True if the step is part of the final setting.
    pub kept: bool,
    /// True if the step was a placebo, which toggles between two equivalent values.
    pub placebo: bool,
    /// True if this was the second try of a change, after another step was kept.
    pub reopened: bool,
    /// The prediction of the verdict that brought the step forward; `None` if the step was tried in the order of the
    /// literature.
    #[serde(default)]
    pub advised: Option<StepPrediction>,
    /// Ratio of goodput, candidate to incumbent; `None` if it was not measured.
    pub rate: Option<Estimate>,
    /// Ratio of bytes per CPU-second, candidate to incumbent; `None` if it was not measured.
    pub cost: Option<Estimate>,
    /// Ratio of idle round-trip time, candidate to incumbent (above one is slower); `None` if it was not measured.
    pub latency: Option<Estimate>,
    /// For a kept step: the primary statistic of the last setting, divided by the primary statistic of the same setting
    /// without the step, from new trials after the step. `None` without such trials.
    pub left_out: Option<Estimate>,
    /// For a kept step: true if the blocks that were spread over the rest of the run confirm its answer. `None` for
    /// other steps, and in older records.
    #[serde(default)]
    pub confirmed: Option<bool>,
    /// Number of blocks that count for the answer.
    pub blocks: u32,
    /// Number of blocks that were discarded because the hypervisor took away far more processor time than usual. The
    /// choice does not depend on the arms. An answer must hold both without and with the discarded blocks.
    pub discarded: u32,
    /// The reason for the answer, in one line.
    pub reason: String,
}

/// Ratios of the final setting's figures to those of another setting, from new trials only. A figure that was not
/// measured is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Gain {
    /// Ratio of goodput.
    pub rate: Option<Estimate>,
    /// Ratio of bytes per CPU-second.
    pub cost: Option<Estimate>,
    /// Ratio of idle round-trip time (below one is faster).
    pub latency: Option<Estimate>,
    /// Ratio of round-trip time under load (below one is faster).
    pub loaded_latency: Option<Estimate>,
}

/// A repeated comparison of the final setting with the setting at the start, in blocks at growing intervals over a long
/// time after the run (`--confirm-for`).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ConfirmationReport {
    /// Time from the first block to the last.
    pub over_ns: Nanos,
    /// Number of blocks that count for the answer.
    pub blocks: u32,
    /// Number of blocks that were discarded because the hypervisor took away far more processor time than usual. The
    /// choice does not depend on the arms. An answer must hold both without and with the discarded blocks.
    pub discarded: u32,
    /// Ratios of the final setting's figures to the figures of the start, from these blocks alone. The weight of each
    /// block is the time that it represents. Intervals are Student's, at 95 %.
    pub gain: Gain,
    /// True if the interval of the primary statistic lies above the least effect of interest.
    pub holds: bool,
}

/// The predictions of verdicts compared with the measurements, over all steps of a run except placebos.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PredictionAccuracy {
    /// Number of verdicts.
    pub verdicts: u32,
    /// Measured steps that a verdict brought forward.
    pub advised: u32,
    /// Steps in `advised` that helped when they were tried.
    pub advised_helped: u32,
    /// Measured steps that were tried in the order of the literature.
    pub others: u32,
    /// Steps in `others` that helped when they were tried.
    pub others_helped: u32,
    /// Advised steps with both an expected and a measured ratio of goodput.
    pub compared: u32,
    /// Steps in `compared` whose measured interval contains the expected ratio.
    pub held: u32,
    /// Geometric mean of the measured ratio divided by the expected ratio, over the steps in `compared`; `None` without
    /// such steps.
    pub measured_over_expected: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TuneSummary {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    pub took_ns: Nanos,
    /// The primary statistic: "rate", "latency" or "cpu".
    pub goal: String,
    /// The program whose figure takes the place of goodput; `None` for landspeed's own stream.
    #[serde(default)]
    pub program: Option<ProgramMetric>,
    /// The baseline: "found" or "sc03".
    pub baseline: String,
    pub command: String,
    pub topology: String,
    pub host_a: HostFacts,
    pub host_b: HostFacts,
    /// Names of the further hosts of side A, for a run over more than two hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_a: Vec<String>,
    /// Names of the further hosts of side B, for a run over more than two hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_b: Vec<String>,
    /// Figures of the setting at the start: geometric means over its trials in the blocks from which `gain` is
    /// computed. The ratios in `gain` are therefore `final` divided by `start`.
    #[serde(with = "unknown::Measured::<TrialFigures>")]
    pub start: TrialFigures,
    /// Figures of the final setting: geometric means over its trials in the blocks from which `gain` is computed.
    #[serde(rename = "final", with = "unknown::Measured::<TrialFigures>")]
    pub final_: TrialFigures,
    /// Ratios of the final setting's figures to those of the start, from new interleaved trials at the end.
    pub gain: Gain,
    /// Ratios of the final setting's figures to those of the setting given with `--against`; `None` without that
    /// option.
    pub against: Option<Gain>,
    /// Later comparison of the final setting with the start (`--confirm-for`); `None` without that option.
    #[serde(default)]
    pub confirmation: Option<ConfirmationReport>,
    /// All candidates, in the order in which they were tried.
    pub steps: Vec<StepSummary>,
    /// The predictions of verdicts compared with the measurements; `None` for a run without verdicts.
    #[serde(default)]
    pub expectations: Option<PredictionAccuracy>,
    /// The setting at the start.
    pub start_cell: Cell,
    /// The setting at the end.
    pub final_cell: Cell,
    /// True if every value reads back as it was before the run.
    pub restored: bool,
    /// True if another program changed every setting that does not read back as before.
    #[serde(default)]
    pub left: bool,
    /// True if all hosts that are not known to be restored could not be asked, because their sessions ended.
    #[serde(default)]
    pub unknown: bool,
    /// True if the record ends before the settings were restored. The value of `restored` is then unknown.
    #[serde(default)]
    pub cut_off: bool,
    /// Settings that do not read back as before, and remarks on the restore, one line each.
    pub restored_notes: Vec<String>,
    /// Reason why the run does not count, such as a kept placebo or an early end; `None` for a valid run.
    pub void: Option<String>,
    /// Signs of noise in the run's own trials, and conditions that changed meanwhile, one sentence each. With such
    /// noise, the probability of keeping a useless step is not bounded (docs/results/decisions.md).
    #[serde(default)]
    pub doubts: Vec<String>,
    pub record: String,
}

impl TuneSummary {
    /// Returns true if landspeed created the hosts itself, as a lab. The first word of the topology is then "lab".
    pub fn is_lab(&self) -> bool {
        self.topology.split([':', ' ']).next() == Some("lab")
    }

    pub fn host(&self, side: Side) -> &HostFacts {
        match side {
            Side::A => &self.host_a,
            Side::B => &self.host_b,
        }
    }

    pub fn restore_outcome(&self) -> RestoreOutcome {
        let TuneSummary { restored, left, unknown, restored_notes, .. } = self;
        RestoreOutcome { restored: *restored, left: *left, unknown: *unknown, notes: restored_notes.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step as landspeed wrote it before runs had verdicts.
    const OLD: &str = r#"{"id":"02-tso=on","knob":"tso","value":"on","from":"off","with":[],"answer":"helps",
        "kept":true,"placebo":false,"reopened":false,"rate":{"ratio":2.0,"low":1.9,"high":2.1},"cost":null,
        "latency":null,"left_out":null,"blocks":5,"discarded":0,"reason":"helps"}"#;

    #[test]
    fn figures_and_steps_of_an_older_record_lack_what_was_not_measured_then() {
        let old = r#"{"rate_bps":1e9,"bytes_per_cpu_s":2e9,"latency_ns":50000,"steal":0.1}"#;
        let figures: TrialFigures = serde_json::from_str(old).unwrap();
        assert_eq!((figures.loaded_latency_ns, figures.throttled), (None, 0.0));
        let step: StepSummary = serde_json::from_str(OLD).unwrap();
        assert_eq!((step.confirmed, step.advised, step.blocks), (None, None, 5));
        assert_eq!((step.from.as_str(), step.from_a, step.from_b), ("off", None, None));
    }

    #[test]
    fn an_estimate_from_a_hostile_record_is_not_plausible() {
        let e = |ratio, low, high| Estimate { ratio, low, high };
        assert!(e(1.0, 0.9, 1.1).is_plausible());
        for bad in [e(f64::NAN, 0.9, 1.1), e(1.0, 0.0, 1.1), e(1.0, 0.9, f64::INFINITY), e(1.0, 1.2, 1.1)] {
            assert!(!bad.is_plausible(), "{bad:?}");
        }
    }

    #[test]
    fn unknown_figures_are_null_in_json_and_their_older_form_is_read() {
        let json = |of: &Estimate| serde_json::to_string(of).unwrap();
        let open = Estimate { ratio: 1.5, low: 1e-9, high: 1e9 };
        assert_eq!(json(&open), r#"{"ratio":1.5,"low":null,"high":null}"#);
        let known = Estimate { ratio: 1.5, low: 0.001, high: 1e8 };
        for (of, text) in [
            (open, json(&open)),
            (open, r#"{"ratio":1.5,"low":1e-9,"high":1e9}"#.to_owned()),
            (known, json(&known)),
        ] {
            assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap(), of, "{text}");
        }
        let none = serde_json::to_value(TrialFigures::default()).unwrap();
        assert!(none["latency_ns"].is_null() && none["bytes_per_cpu_s"].is_null(), "{none}");
        assert_eq!(none["rate_bps"], 0.0, "a path that was cut");
        assert_eq!(serde_json::from_value::<TrialFigures>(none).unwrap(), TrialFigures::default());
    }
}
