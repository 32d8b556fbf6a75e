//! The summary of a tuning run: what `landspeed tune --json` prints. Schema: docs/reference/json.md.

use landspeed_units::{BitRate, BytesPerCpuSecond, Nanos};
use serde::{Deserialize, Serialize};

use crate::{Cause, Cell, HostFacts, Side, unknown};

pub const SUMMARY_FORMAT: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// Point estimate; 1 is no change.
    pub ratio: f64,
    /// Low end of its interval; `None` where too little was measured for an end.
    #[serde(with = "unknown::low")]
    pub low: f64,
    /// High end of its interval; `None` where too little was measured for an end.
    #[serde(with = "unknown::high")]
    pub high: f64,
}

/// The figure of a program that decides, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramWork {
    /// In the figure's own unit.
    pub value: f64,
    /// Whether less of it is better.
    pub less_is_better: bool,
    /// The figure for a second of processor time over both hosts; where less is better, the first figure of which more is, or runs
    /// of the program. `None` where it was not measured.
    #[serde(with = "unknown::measured")]
    pub per_cpu_s: f64,
}

impl ProgramWork {
    /// The figure, or one over it where less is better.
    pub fn better(&self) -> f64 {
        if self.less_is_better { 1.0 / self.value } else { self.value }
    }

    /// What has this [`ProgramWork::better`].
    #[must_use]
    pub fn with_better(self, better: f64) -> Self {
        ProgramWork { value: if self.less_is_better { 1.0 / better } else { better }, ..self }
    }
}

/// The program that a run was about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramOf {
    /// "app:redis".
    pub workload: String,
    /// Name of the figure that decided: "requests".
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// Whether less of it is better.
    pub less_is_better: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Goodput at the receiver.
    pub rate_bps: BitRate,
    /// Payload per second of processor time over both hosts (each machine counted once); `None` where it was not measured.
    #[serde(with = "unknown::measured")]
    pub bytes_per_cpu_s: BytesPerCpuSecond,
    /// Median round trip of a 1-byte message on the otherwise idle path; `None` where it was not measured.
    #[serde(with = "unknown::measured")]
    pub latency_ns: Nanos,
    /// Median round trip of the stream's own flows while it runs, by the sender's TCP; `None` where none was sampled:
    /// another transport, an older record.
    pub loaded_latency_ns: Option<Nanos>,
    /// Share of the datagrams that did not arrive, 0 to 1; `None` of a transport that loses nothing, and in older records.
    #[serde(default)]
    pub lost: Option<f64>,
    /// What a program told of its run; `None` where it was landspeed's own workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramWork>,
    /// Share of processor time that the hypervisor took away meanwhile, 0 to 1; the worse machine's.
    pub steal: f64,
    /// Share of the window in which a processor quota or heat held the workload's processors back, 0 to 1; the worse
    /// host's.
    pub throttled: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The interval lies above the least effect of interest.
    Helps,
    /// The interval lies below one, or a guard was broken.
    Harms,
    /// The interval lies below the least effect of interest.
    NoEffect,
    /// The budget of blocks ended first.
    Undecided,
    /// The knob cannot be turned here.
    Skipped,
    /// No room in the budget, or cannot matter here.
    #[default]
    NotTried,
}

/// What a verdict said of a step before the step was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Advised {
    /// Number of the verdict: [`crate::VerdictLine::number`].
    pub verdict: u32,
    /// The cause that the step was to relieve.
    pub cause: Cause,
    /// Share of the flow's time that the cause was taken to cost, 0 to 1; 0 where it would bind only later.
    pub weight: f64,
    /// Expected goodput, candidate over incumbent; `None` where the verdict gave no figure for this step.
    #[serde(default)]
    pub expected_ratio: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StepSummary {
    /// Its name in the record; its trials carry it.
    pub id: String,
    /// Knob that was tried ("tso").
    pub knob: String,
    /// The value tried ("on").
    pub value: String,
    /// What stood where the step changes it: in the flow, on host A, or else on host B.
    pub from: String,
    /// What stood on host A; `None` where the step does not set the knob there.
    #[serde(default)]
    pub from_a: Option<String>,
    /// The same of host B.
    #[serde(default)]
    pub from_b: Option<String>,
    /// Other knobs that the step sets with it, as "knob=value".
    pub with: Vec<String>,
    /// What came out.
    pub answer: Answer,
    /// Whether it is part of the final setting.
    pub kept: bool,
    /// Whether this step was a placebo: it toggles between two equivalent values.
    pub placebo: bool,
    /// Whether this is a second try after another step was kept.
    pub reopened: bool,
    /// Why it was tried when it was, where a verdict brought it forward; `None` where its turn came by the order of
    /// the literature.
    #[serde(default)]
    pub advised: Option<Advised>,
    /// Goodput, candidate over incumbent, where measured.
    pub rate: Option<Estimate>,
    /// Bytes per CPU-second, candidate over incumbent, where measured.
    pub cost: Option<Estimate>,
    /// Idle round-trip time, candidate over incumbent (above one is slower), where measured.
    pub latency: Option<Estimate>,
    /// Fresh trials at the end: the final setting over the final setting without this step, in the
    /// primary statistic. Kept steps only.
    pub left_out: Option<Estimate>,
    /// Kept steps: whether the blocks that were spread over the rest of the run confirm it. `None` for a step that is
    /// not kept, and in older records.
    #[serde(default)]
    pub confirmed: Option<bool>,
    /// Blocks that counted.
    pub blocks: u32,
    /// Blocks discarded for steal far above the usual, blind to the arm. An answer holds without them and with them.
    pub discarded: u32,
    /// In words, one line: why this answer.
    pub reason: String,
}

/// Final against start, fresh trials only; `None` where a figure was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gain {
    /// Goodput.
    pub rate: Option<Estimate>,
    /// Bytes per CPU-second.
    pub cost: Option<Estimate>,
    /// Idle round-trip time (below one is faster).
    pub latency: Option<Estimate>,
    /// Round-trip time under load (below one is faster).
    pub loaded_latency: Option<Estimate>,
}

/// Final against start once more, in blocks at growing distances over a long time after the run (`--confirm-for`).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Confirmation {
    /// From the first block to the last.
    pub over_ns: Nanos,
    /// Blocks that counted.
    pub blocks: u32,
    /// Blocks discarded for steal far above the usual, blind to the arm. An answer holds without them and with them.
    pub discarded: u32,
    /// Final over start by these blocks alone, each weighted by the time around it; intervals are Student's, at 95 %.
    pub gain: Gain,
    /// Whether the primary statistic's interval lies above the least effect of interest.
    pub holds: bool,
}

/// What verdicts promised against what was measured, over all steps of a run. Placebos are left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Expectations {
    /// Verdicts given.
    pub verdicts: u32,
    /// Measured steps that a verdict brought forward.
    pub advised: u32,
    /// Those of them that helped when they were tried.
    pub advised_helped: u32,
    /// Measured steps that came by the order of the literature.
    pub others: u32,
    /// Those of them that helped when they were tried.
    pub others_helped: u32,
    /// Advised steps with an expected and a measured ratio of goodput.
    pub compared: u32,
    /// Those of them whose measured interval holds the expected ratio.
    pub held: u32,
    /// Measured over expected ratio, the geometric mean of those compared; `None` where none was.
    pub measured_over_expected: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneSummary {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    pub took_ns: Nanos,
    /// "rate", "latency" or "cpu": the primary statistic.
    pub goal: String,
    /// The program whose figure takes the place of the rate; `None` where landspeed's own stream ran.
    #[serde(default)]
    pub program: Option<ProgramOf>,
    /// The baseline: "found" or "sc03".
    pub baseline: String,
    pub command: String,
    pub topology: String,
    pub host_a: HostFacts,
    pub host_b: HostFacts,
    /// Geometric means of the start cell's trials in the blocks behind `gain`, so that `final` over `start` is its ratio.
    #[serde(with = "unknown::measured")]
    pub start: Figures,
    /// The same of the final cell's trials.
    #[serde(rename = "final", with = "unknown::measured")]
    pub final_: Figures,
    /// Final over start, by the fresh interleaved trials of the final check.
    pub gain: Gain,
    /// Final over the setting given with `--against`; `None` where none was given.
    pub against: Option<Gain>,
    /// Whether the gain lasted; `None` without `--confirm-for`.
    #[serde(default)]
    pub confirmation: Option<Confirmation>,
    /// All candidates, in the order in which they were tried.
    pub steps: Vec<StepSummary>,
    /// What verdicts promised against what was measured; `None` where the run looked at nothing.
    #[serde(default)]
    pub expectations: Option<Expectations>,
    /// The setting at the start.
    pub start_cell: Cell,
    /// The setting at the end.
    pub final_cell: Cell,
    /// Whether every value was read back as it was before the run.
    pub restored: bool,
    /// Whether all that differs is as another program set it.
    #[serde(default)]
    pub left: bool,
    /// Whether the record ends before the restore: then what `restored` says is not known.
    #[serde(default)]
    pub cut_off: bool,
    /// What differs, or what was noticed while restoring.
    pub restored_notes: Vec<String>,
    /// Set where a kept placebo voids the run, or it ended early: what happened.
    pub void: Option<String>,
    /// Signs in the run's own trials of noise under which a false keep is not bounded, in words (docs/results/decisions.md).
    #[serde(default)]
    pub doubts: Vec<String>,
    pub record: String,
}

impl TuneSummary {
    /// Whether landspeed made the hosts itself: names of labs begin so.
    pub fn is_lab(&self) -> bool {
        self.topology.split([':', ' ']).next() == Some("lab")
    }

    pub fn host(&self, side: Side) -> &HostFacts {
        match side {
            Side::A => &self.host_a,
            Side::B => &self.host_b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step as landspeed wrote it before runs asked for verdicts.
    const OLD: &str = r#"{"id":"02-tso=on","knob":"tso","value":"on","from":"off","with":[],"answer":"helps",
        "kept":true,"placebo":false,"reopened":false,"rate":{"ratio":2.0,"low":1.9,"high":2.1},"cost":null,
        "latency":null,"left_out":null,"blocks":5,"discarded":0,"reason":"helps"}"#;

    #[test]
    fn figures_and_steps_of_an_older_record_lack_what_was_not_measured_then() {
        let old = r#"{"rate_bps":1e9,"bytes_per_cpu_s":2e9,"latency_ns":50000,"steal":0.1}"#;
        let figures: Figures = serde_json::from_str(old).unwrap();
        assert_eq!((figures.loaded_latency_ns, figures.throttled), (None, 0.0));
        let step: StepSummary = serde_json::from_str(OLD).unwrap();
        assert_eq!((step.confirmed, step.advised, step.blocks), (None, None, 5));
        assert_eq!((step.from.as_str(), step.from_a, step.from_b), ("off", None, None));
    }

    #[test]
    fn what_is_not_known_is_null_in_json_and_older_figures_for_it_are_read() {
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
        let none = serde_json::to_value(Figures::default()).unwrap();
        assert!(none["latency_ns"].is_null() && none["bytes_per_cpu_s"].is_null(), "{none}");
        assert_eq!(none["rate_bps"], 0.0, "a path that was cut");
        assert_eq!(serde_json::from_value::<Figures>(none).unwrap(), Figures::default());
    }
}
