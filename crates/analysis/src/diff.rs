//! Two runs compared: what differs, and how surely.

use landspeed_record::{Arm, Cell, Estimate, Figures, Record, StepSummary, Trial};
use landspeed_stats::unpaired;
use serde::Serialize;

use crate::Metric;
use crate::series::CONFIDENCE;
use crate::summary::{steps, trials};

/// The second record against the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// The cells at the start, by the trials of the final check (all trials of a record that has none).
    pub start: FiguresDiff,
    #[serde(rename = "final")]
    pub final_: FiguresDiff,
    /// Steps of either record by knob and value, in the order of the first.
    pub steps: Vec<StepDiff>,
    /// Settings of the final cells that differ, as (where and knob, first, second); "-" is not in play.
    pub settings: Vec<(String, String, String)>,
    /// What the intervals do not hold.
    pub caveat: String,
}

/// The second record's figures over the first's, with Welch's interval on logs; `None` where either
/// record has fewer than two trials that measured it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct FiguresDiff {
    pub rate: Option<Estimate>,
    /// Bytes per CPU-second.
    pub cost: Option<Estimate>,
    /// Idle round trip (above one is slower).
    pub latency: Option<Estimate>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepDiff {
    /// "tso=on".
    pub step: String,
    /// The first record's last try.
    pub a: Option<StepSummary>,
    /// The second record's last try.
    pub b: Option<StepSummary>,
    /// Whether the answers differ, or a figure's intervals are disjoint.
    pub differs: bool,
}

pub fn diff(a: &Record, b: &Record) -> Diff {
    let arms = |record| (cell_trials(record, Arm::Incumbent), cell_trials(record, Arm::Candidate));
    let ((start_a, final_a), (start_b, final_b)) = (arms(a), arms(b));
    Diff {
        start: figures_diff(&start_a, &start_b),
        final_: figures_diff(&final_a, &final_b),
        steps: steps_diff(&steps(a), &steps(b)),
        settings: settings_diff(final_cell(a), final_cell(b)),
        caveat:
            "the two runs were not interleaved: whatever changed on the hosts between them is in the ratios \
                 and not in their intervals"
                .into(),
    }
}

fn is_final(trial: &Trial) -> bool {
    trial.step == "final" || trial.step.starts_with("final ")
}

/// Figures of one arm of the last final comparison; of every trial where a record has none.
fn cell_trials(record: &Record, arm: Arm) -> Vec<Figures> {
    let Some(last) = trials(record).filter(|t| is_final(t)).last() else {
        return trials(record).map(|t| t.figures).collect();
    };
    trials(record).filter(|t| t.step == last.step && t.arm == arm).map(|t| t.figures).collect()
}

fn final_cell(record: &Record) -> Option<&Cell> {
    trials(record).filter(|t| is_final(t) && t.arm == Arm::Candidate).last().map(|t| &t.cell)
}

fn figures_diff(a: &[Figures], b: &[Figures]) -> FiguresDiff {
    let of = |metric: Metric| {
        let values = |figures: &[Figures]| figures.iter().filter_map(|f| metric.of(f)).collect::<Vec<_>>();
        unpaired(&values(b), &values(a), CONFIDENCE)
    };
    FiguresDiff { rate: of(Metric::Rate), cost: of(Metric::Cost), latency: of(Metric::Latency) }
}

fn steps_diff(a: &[StepSummary], b: &[StepSummary]) -> Vec<StepDiff> {
    let name = |s: &StepSummary| format!("{}={}", s.knob, s.value);
    let mut names: Vec<String> = Vec::new();
    for step in a.iter().chain(b) {
        let name = name(step);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let last = |steps: &[StepSummary], wanted: &str| steps.iter().rev().find(|s| name(s) == wanted).cloned();
    let pair = |step: String| {
        let (a, b) = (last(a, &step), last(b, &step));
        let differs = step_differs(a.as_ref(), b.as_ref());
        StepDiff { step, a, b, differs }
    };
    names.into_iter().map(pair).collect()
}

fn step_differs(a: Option<&StepSummary>, b: Option<&StepSummary>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return true };
    let apart = |x: Option<Estimate>, y: Option<Estimate>| match (x, y) {
        (Some(x), Some(y)) => x.high < y.low || y.high < x.low,
        _ => false,
    };
    a.answer != b.answer
        || a.kept != b.kept
        || a.confirmed != b.confirmed
        || apart(a.rate, b.rate)
        || apart(a.cost, b.cost)
        || apart(a.latency, b.latency)
}

fn settings_diff(a: Option<&Cell>, b: Option<&Cell>) -> Vec<(String, String, String)> {
    let (Some(a), Some(b)) = (a, b) else { return Vec::new() };
    let parts = [("A", &a.a, &b.a), ("B", &a.b, &b.b), ("flow", &a.flow, &b.flow)];
    let mut differing = Vec::new();
    for (place, a, b) in parts {
        let knobs: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for knob in knobs.into_iter().filter(|k| a.get(*k) != b.get(*k)) {
            let word = |s: Option<&String>| s.map_or("-".to_owned(), Clone::clone);
            differing.push((format!("{place} {knob}"), word(a.get(knob)), word(b.get(knob))));
        }
    }
    differing
}
