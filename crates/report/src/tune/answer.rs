//! The answer of a tuning run in one line, which claims only what the final trials prove, and advice on how to prove
//! more.

use landspeed_analysis::Metric;
use landspeed_record::units::Nanos;
use landspeed_record::{Estimate, StepSummary, TuneSummary};

use super::figures::{WORTH_TELLING, percent_lost, span};
use crate::words::{self, StepOutcome, counted};

/// Share of the processor time that a hypervisor, a quota or heat takes, above which the advice mentions the loss.
const MUCH: f64 = 0.05;
/// Ratio of the trials that a proof needs to the measured trials, from which a longer run is no longer advised.
const TOO_MANY: f64 = 30.0;

/// Returns the answer: "2 settings proven to help; total gain 2.90× [2.10, 4.00]", or that no gain is proven.
pub(super) fn headline(summary: &TuneSummary) -> String {
    if let Some(gain) = proven(summary) {
        let what = match Metric::of_goal(&summary.goal) {
            Metric::Latency => "idle RTT",
            _ => "total gain",
        };
        return format!("{}; {what} {}", settings(summary), words::estimate(&gain));
    }
    if let Some([before, after]) = paced(summary) {
        let span = span(Metric::of_goal(&summary.goal), summary).map(|span| format!(" ({span})"));
        let span = span.unwrap_or_default();
        return format!("paced to the path: {before} -> {after} of the datagrams lost{span}");
    }
    let why = match (&summary.void, is_any_kept(summary)) {
        (Some(_), _) => ", the run does not count",
        (None, false) => ", nothing kept",
        (None, true) => "",
    };
    let Some(span) = span(Metric::of_goal(&summary.goal), summary) else {
        return format!("no gain proven{why} (no final figures)");
    };
    format!("no gain proven{why} ({span}; {})", noise(summary))
}

/// Returns the gain in the primary figure if it is proven. Its interval must lie above 1 and above the proven effect of
/// every placebo, the run must count, and a step must be kept.
pub(crate) fn proven(summary: &TuneSummary) -> Option<Estimate> {
    let primary = Metric::of_goal(&summary.goal);
    let gain = primary.of_gain(&summary.gain)?;
    let is_shown = primary.oriented(gain).low > placebos(summary).map(shown_by_nothing).fold(1.0, f64::max);
    (is_shown && summary.void.is_none() && is_any_kept(summary)).then_some(gain)
}

/// Returns the shares of datagrams lost before and after, if the run found the rate that the path carries and fresh
/// trials confirm that sending at that rate loses less.
fn paced(summary: &TuneSummary) -> Option<[String; 2]> {
    let is_bound = |step: &StepSummary| step.kept && step.blocks == 0 && step.confirmed == Some(true);
    let shares = [summary.start.lost?, summary.final_.lost?];
    let holds = summary.void.is_none() && summary.steps.iter().any(is_bound);
    (holds && shares[0] - shares[1] > WORTH_TELLING).then(|| shares.map(percent_lost))
}

/// Returns the least effect that a placebo is proven to have, as a ratio above 1. A value of 1 or less means that no
/// effect is proven.
fn shown_by_nothing(placebo: Estimate) -> f64 {
    placebo.low.max(1.0 / placebo.high)
}

/// Returns the estimates of the placebo steps, which change nothing.
pub(super) fn placebos(summary: &TuneSummary) -> impl Iterator<Item = Estimate> {
    words::measured(summary).into_iter().filter(|(step, _)| step.placebo).map(|(_, e)| e)
}

fn is_any_kept(summary: &TuneSummary) -> bool {
    summary.steps.iter().any(|step| StepOutcome::of(step).is_kept())
}

fn settings(summary: &TuneSummary) -> String {
    let (proven, open): (Vec<&StepSummary>, Vec<_>) = (summary.steps.iter())
        .filter(|step| StepOutcome::of(step).is_kept())
        .partition(|step| step.confirmed == Some(true));
    match (proven.len(), open.len()) {
        (0, open) => format!("{} kept, not confirmed", counted(open, "setting")),
        (proven, 0) => format!("{} proven to help", counted(proven, "setting")),
        (proven, open) => format!("{} proven, {open} not confirmed", counted(proven, "setting")),
    }
}

/// Describes the noise: how far apart two measurements of one setting are. The noise is the half width of the final
/// comparison's interval, or the greatest distance of a placebo's ratio from 1 if that is larger.
fn noise(summary: &TuneSummary) -> String {
    let half = Metric::of_goal(&summary.goal)
        .of_gain(&summary.gain)
        .map_or(f64::INFINITY, |e| (e.high / e.low).sqrt());
    let noise = placebos(summary).map(|e| e.ratio.max(1.0 / e.ratio)).fold(half, f64::max);
    match noise {
        x if x < 2.0 => format!("noise ±{:.0} %", (x - 1.0) * 100.0),
        x if x < 1_000.0 => format!("noise up to {}", words::times(x)),
        _ => "too few trials".to_owned(),
    }
}

/// Returns advice on how to prove a gain, depending on what this run lacked, or `None` if a gain is proven.
pub(super) fn help(summary: &TuneSummary, budget: Nanos) -> Option<String> {
    if proven(summary).is_some() || paced(summary).is_some() {
        return None;
    }
    let lost = lost(summary);
    let more = match (&summary.void, is_any_kept(summary)) {
        (Some(_), _) if summary.steps.iter().any(|step| step.placebo && step.kept) => {
            "a quieter machine: on this one, changing nothing looks like a gain".to_owned()
        }
        (Some(_), _) => format!("a run that comes to its end: its budget is {}", words::duration(budget)),
        (None, false) => untried(summary, budget),
        (None, true) => wider(summary, budget),
    };
    Some(format!("Try {}.", lost.unwrap_or(more)))
}

fn lost(summary: &TuneSummary) -> Option<String> {
    let [steal, throttled] =
        [(summary.start.steal, summary.final_.steal), (summary.start.throttled, summary.final_.throttled)]
            .map(|(start, last)| start.max(last));
    let said = |share: f64, whom: &str, cure: &str| {
        (share > MUCH).then(|| format!("{cure}: {whom} took {:.0} % of the processor time", share * 100.0))
    };
    said(steal, "the hypervisor", "a host of its own")
        .or_else(|| said(throttled, "a quota or heat", "no quota and no heat"))
}

/// Returns advice for a run that kept no step.
fn untried(summary: &TuneSummary, budget: Nanos) -> String {
    let outcomes = || summary.steps.iter().map(StepOutcome::of);
    if summary.steps.iter().any(|step| step.reason == landspeed_analysis::PATH_LIMITS) {
        return "a faster path; `--for latency` and `--for cpu` look for what still helps on this one"
            .to_owned();
    }
    let undecided = outcomes().filter(|outcome| *outcome == StepOutcome::Undecided).count();
    let waiting = without_time(summary);
    let longer = match longer(summary, budget) {
        Some(budget) => format!("--budget {budget}"),
        None => format!("a longer --budget than {}", words::duration(budget)),
    };
    let settings = |count: usize| counted(count, "setting");
    match (undecided, waiting) {
        (0, 0) => "`landspeed explain`, which says what holds the path back: no setting here does".to_owned(),
        (0, waiting) => format!("{longer}: there was no time for {}", settings(waiting)),
        (open, 0) => format!("{longer}, or a quieter machine: {} had no clear answer", settings(open)),
        (open, waiting) => format!(
            "{longer}: {} had no clear answer, and there was no time for {waiting} more",
            settings(open)
        ),
    }
}

/// Returns advice for a run that kept steps and whose final comparison shows no gain.
fn wider(summary: &TuneSummary, budget: Nanos) -> String {
    let primary = Metric::of_goal(&summary.goal);
    let Some(gain) = primary.of_gain(&summary.gain).map(|gain| primary.oriented(gain)) else {
        return format!(
            "a longer --budget than {}: the final check measured nothing",
            words::duration(budget)
        );
    };
    if gain.low > 1.0 {
        return "a quieter machine: on this one, changing nothing does as much".to_owned();
    }
    // The width of an interval is inversely proportional to the square root of the number of trials.
    let times = (gain.low.ln() / gain.ratio.ln() - 1.0).powi(2);
    match times {
        _ if gain.ratio <= 1.0 => format!(
            "another run with a longer --budget than {}: in the last trials the final setting was no better than the start",
            words::duration(budget)
        ),
        times if times < TOO_MANY => format!(
            "--budget {}, for about {:.0} times the trials, or a quieter machine",
            rounded(budget.0 as f64 * times.max(2.0)),
            times.max(2.0)
        ),
        _ => "a quieter machine: no longer --budget tells a difference this small from this noise".to_owned(),
    }
}

pub(super) fn without_time(summary: &TuneSummary) -> usize {
    let is_waiting = |step: &&StepSummary| {
        StepOutcome::of(step) == StepOutcome::NotTried && step.reason == landspeed_analysis::NO_ROOM
    };
    summary.steps.iter().filter(is_waiting).count()
}

/// Returns the budget that would also suffice for the settings that had no time, if each takes as long as a measured
/// one. Returns `None` if no setting was measured or the budget is unknown.
pub(super) fn longer(summary: &TuneSummary, budget: Nanos) -> Option<String> {
    let measured = words::measured(summary).len();
    let wanted = (measured + without_time(summary)) as f64 / measured as f64;
    (measured > 0 && budget.0 > 0).then(|| rounded(budget.0 as f64 * wanted))
}

/// Rounds a budget of `nanos` nanoseconds up to a usual length, and formats it: "90s", "15m", "2h".
fn rounded(nanos: f64) -> String {
    let minutes = nanos / 60e9;
    let up = |value: f64, step: f64| (value / step).ceil() * step;
    match minutes {
        m if m <= 2.0 => format!("{:.0}s", up(m * 60.0, 30.0)),
        m if m <= 10.0 => format!("{:.0}m", m.ceil()),
        m if m <= 120.0 => format!("{:.0}m", up(m, 5.0)),
        m => format!("{:.0}h", (m / 60.0).ceil()),
    }
}
