//! A comparison of two runs: the differences, and how certain they are.

use landspeed_record::{
    Arm, Cell, Estimate, Header, HostFacts, Line, ProgramMetric, Record, Side, StepSummary, Trial,
    TrialFigures,
};
use landspeed_stats::unpaired;
use serde::Serialize;

use crate::Metric;
use crate::series::CONFIDENCE;
use crate::summary::{steps, trials};

/// The second record compared with the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunDiff {
    /// The paths of both records, if they differ. The figures then compare two paths, so none shows the effect of a
    /// setting.
    pub paths: Option<[String; 2]>,
    /// The program's figure that both runs tuned for; `None` if they tuned for different figures, or at least one of
    /// them for landspeed's own stream.
    pub program: Option<ProgramMetric>,
    /// The figures of the start cells, from the trials of the final check (from all trials of a record without a final
    /// check).
    pub start: FiguresDiff,
    #[serde(rename = "final")]
    pub final_: FiguresDiff,
    /// The steps that both records measured, by knob and value, in the order of the first record.
    pub steps: Vec<StepDiff>,
    /// The number of steps that only the first record measured, and the number that only the second record measured.
    pub steps_of_one: [usize; 2],
    /// The settings in which the final cells differ, as (place and knob, first value, second value).
    pub settings: Vec<(String, String, String)>,
    /// The number of settings that only the first final cell has, and the number that only the second one has.
    pub settings_of_one: [usize; 2],
    /// A sentence on what the intervals do not cover.
    pub caveat: String,
    /// Other differences between the runs, in what was requested and in the hosts, as (what, first, second).
    pub unlike: Vec<(String, String, String)>,
}

/// The ratios of the second record's figures to the first's, with Welch's interval on logs. A ratio is `None` if either
/// record has fewer than two trials that measured the figure.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct FiguresDiff {
    pub rate: Option<Estimate>,
    /// The ratio of bytes per CPU-second.
    pub cost: Option<Estimate>,
    /// The ratio of idle round trips (above one is slower).
    pub latency: Option<Estimate>,
    /// The figures of each record.
    pub of: [FigureMeans; 2],
}

/// Geometric means of the trials of a cell. A figure is `None` if no trial measured it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct FigureMeans {
    /// Goodput in bits per second, or the figure of the program.
    pub rate: Option<f64>,
    /// Bytes per CPU-second, or the program's work per CPU-second.
    pub cost: Option<f64>,
    /// The idle round trip in nanoseconds.
    pub latency: Option<f64>,
}

/// A step that both records measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepDiff {
    /// The knob and value of the step, such as "tso=on".
    pub step: String,
    /// The last try in the first record.
    pub a: StepSummary,
    /// The last try in the second record.
    pub b: StepSummary,
    /// True if the answers differ, or the intervals of a figure are disjoint.
    pub differs: bool,
}

/// Compares record `b` with record `a`.
pub fn diff(a: &Record, b: &Record) -> RunDiff {
    let arms = |record| (cell_trials(record, Arm::Incumbent), cell_trials(record, Arm::Candidate));
    let ((start_a, final_a), (start_b, final_b)) = (arms(a), arms(b));
    let (steps, steps_of_one) = steps_diff(&steps(a), &steps(b));
    let (settings, settings_of_one) = settings_diff(final_cell(a), final_cell(b));
    let program = a.header.program.clone().filter(|one| b.header.program.as_ref() == Some(one));
    RunDiff {
        paths: paths(a, b),
        program,
        start: figures_diff(&start_a, &start_b),
        final_: figures_diff(&final_a, &final_b),
        steps,
        steps_of_one,
        settings,
        settings_of_one,
        unlike: unlike(a, b),
        caveat:
            "the two runs were not interleaved: whatever changed on the hosts between them is in the ratios \
                 and not in their intervals"
                .into(),
    }
}

fn is_final(trial: &Trial) -> bool {
    trial.step == "final" || trial.step.starts_with("final ")
}

/// Returns the figures of one arm's trials in the last final comparison, or of all trials if the record has no final
/// comparison.
fn cell_trials(record: &Record, arm: Arm) -> Vec<TrialFigures> {
    let Some(last) = trials(record).filter(|t| is_final(t)).last() else {
        return trials(record).map(|t| t.figures).collect();
    };
    trials(record).filter(|t| t.step == last.step && t.arm == arm).map(|t| t.figures).collect()
}

fn final_cell(record: &Record) -> Option<&Cell> {
    trials(record).filter(|t| is_final(t) && t.arm == Arm::Candidate).last().map(|t| &t.cell)
}

fn figures_diff(a: &[TrialFigures], b: &[TrialFigures]) -> FiguresDiff {
    let of = |metric: Metric| {
        let values =
            |figures: &[TrialFigures]| figures.iter().filter_map(|f| metric.of(f)).collect::<Vec<_>>();
        unpaired(&values(b), &values(a), CONFIDENCE)
    };
    FiguresDiff {
        rate: of(Metric::Rate),
        cost: of(Metric::Cost),
        latency: of(Metric::Latency),
        of: [means(a), means(b)],
    }
}

fn means(figures: &[TrialFigures]) -> FigureMeans {
    let of = |metric: Metric| {
        let logs: Vec<f64> = figures
            .iter()
            .filter_map(|one| metric.of_figures(one))
            .map(f64::ln)
            .filter(|ln| ln.is_finite())
            .collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    };
    FigureMeans { rate: of(Metric::Rate), cost: of(Metric::Cost), latency: of(Metric::Latency) }
}

/// Returns the paths of both records, with the names of their hosts, if they differ.
fn paths(a: &Record, b: &Record) -> Option<[String; 2]> {
    let path = |record: &Record| {
        let [a, b] = Side::BOTH.map(|side| host(record, side).hostname);
        format!("{} ({a} to {b})", record.header.topology)
    };
    let both = [path(a), path(b)];
    (both[0] != both[1]).then_some(both)
}

fn host(record: &Record, wanted: Side) -> HostFacts {
    lines_of!(record, Line::Host { side, facts } if *side == wanted => (**facts).clone())
        .next()
        .unwrap_or_default()
}

/// Returns the steps that both records measured, and the numbers of steps that only `a` and only `b` measured.
fn steps_diff(a: &[StepSummary], b: &[StepSummary]) -> (Vec<StepDiff>, [usize; 2]) {
    let (a, b) = (measured(a), measured(b));
    let both = a.iter().filter_map(|(step, a)| {
        let b = b.iter().find(|(name, _)| name == step)?.1;
        Some(StepDiff { step: step.clone(), a: (*a).clone(), b: b.clone(), differs: step_differs(a, b) })
    });
    let both: Vec<StepDiff> = both.collect();
    let of_one = [a.len() - both.len(), b.len() - both.len()];
    (both, of_one)
}

/// Returns the last try of each measured step, named by knob and value, in the order of the steps' first tries.
fn measured(steps: &[StepSummary]) -> Vec<(String, &StepSummary)> {
    let mut last: Vec<(String, &StepSummary)> = Vec::new();
    for step in steps.iter().filter(|step| step.blocks > 0) {
        let name = format!("{}={}", step.knob, step.value);
        match last.iter_mut().find(|(known, _)| *known == name) {
            Some((_, earlier)) => *earlier = step,
            None => last.push((name, step)),
        }
    }
    last
}

fn step_differs(a: &StepSummary, b: &StepSummary) -> bool {
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

fn settings_diff(a: Option<&Cell>, b: Option<&Cell>) -> (Vec<(String, String, String)>, [usize; 2]) {
    let (Some(a), Some(b)) = (a, b) else { return Default::default() };
    let (mut differing, mut of_one) = (Vec::new(), [0, 0]);
    for (place, a, b) in [("A", &a.a, &b.a), ("B", &a.b, &b.b), ("flow", &a.flow, &b.flow)] {
        for (knob, value) in a {
            match b.get(knob) {
                Some(other) if other == value => {}
                Some(other) => differing.push((format!("{place} {knob}"), value.clone(), other.clone())),
                None => of_one[0] += 1,
            }
        }
        of_one[1] += b.keys().filter(|knob| !a.contains_key(*knob)).count();
    }
    (differing, of_one)
}

/// Returns the differences between the runs in what was requested and in their hosts, as (what, first, second).
fn unlike(a: &Record, b: &Record) -> Vec<(String, String, String)> {
    let asked = |header: &Header| {
        let Header { topology, goal, baseline, landspeed, program, .. } = header.clone();
        let measured = program.map_or_else(
            || "landspeed's own stream".to_owned(),
            |one| format!("{} of {}", one.figure, one.workload),
        );
        [
            ("path", topology),
            ("goal", goal),
            ("baseline", baseline),
            ("landspeed", landspeed),
            ("measured", measured),
        ]
    };
    let mut pairs: Vec<(String, String, String)> = Vec::new();
    for ((what, a), (_, b)) in asked(&a.header).into_iter().zip(asked(&b.header)) {
        pairs.push((what.to_owned(), a, b));
    }
    for side in Side::BOTH {
        let (a, b) = (host(a, side), host(b, side));
        pairs.push((format!("host {side}"), a.hostname, b.hostname));
        pairs.push((format!("kernel of {side}"), a.kernel, b.kernel));
    }
    pairs.retain(|(_, a, b)| a != b);
    pairs
}
