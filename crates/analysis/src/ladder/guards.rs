//! Guards of a step: the figures that a change must not harm.
//!
//! The guards hold if three things are shown: neither the mean of the blocks nor the ratio of totals is worse by the
//! margin, and no more of the candidate's trials are bad than of the incumbent's. The last needs the most trials: a
//! mishap in 6 % of the candidate's trials is absent from 44 of them in 6.6 % of cases. Two more things break a guard:
//! a round trip under load that is too long, and a loss that exceeds the margin when added to the losses of the kept
//! steps.
//!
//! Beside a large gain, the margin is wider: a loss may be [`BESIDE`] of the gain, both as logarithms. The candidate's
//! bad trials then count only if they are shown to be more (docs/decisions/0071-margins-beside-large-gains.md).
//!
//! `step.rs` calls [`all`] before it keeps a step. `check.rs` calls only [`judge`], to compare the final setting with
//! the start. [`Metric::guards`] says which figures are guarded, and `noninferiority.rs` of the crate `stats` has the
//! test. A figure that no trial has is not guarded.

use landspeed_record::Arm;
use landspeed_record::units::Nanos;
use landspeed_stats::{GuardVerdict, guard, guard_sums, proportion_interval};

use super::kept::KeptTotals;
use super::rules::LadderRules;
use super::run_state::RunState;
use super::{comparison::CellComparison, words};
use crate::Metric;
use crate::lost::{LOST_TIME_KINDS, LostTimeEffects};
use crate::series::BlockSeries;

/// The one-sided confidence of a guard.
const CONFIDENCE: f64 = 0.95;
/// The fewest trials of the candidate with which a guard holds.
const LEAST_TRIALS: usize = 44;
/// The smallest difference in lost processor time that is reported, as a share.
const LEAST_LOSS: f64 = 0.005;
/// A candidate's round trip under load breaks its guard if it exceeds the incumbent's by more than this factor and by
/// more than [`LOADED_MORE`].
const LOADED_FACTOR: f64 = 2.0;
/// The least by which the round trip under load must exceed the incumbent's to break its guard: doubling a queue of
/// microseconds does no harm.
const LOADED_MORE: Nanos = Nanos::millis(5);

/// The loss that a guard allows beside a gain, as a share of it, both as logarithms. A gain of 2.6 allows the usual
/// 10 %, a gain of 10 allows 26 %, a gain of 40 allows 45 %.
const BESIDE: f64 = 0.1;

/// Returns the number of blocks that guards need if a block has `trials` trials, half of them the candidate's.
pub(crate) fn least_blocks(trials: usize) -> u32 {
    LEAST_TRIALS.div_ceil(trials / 2) as u32
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GuardReport {
    /// No guarded figure suffers.
    Hold,
    /// A guarded figure suffers. Holds its description.
    Broken(String),
    /// It is not shown yet that no guarded figure suffers. Holds the description of the figure in question.
    Unclear(String),
}

/// Judges `metric` by the mean and by the totals, beside a gain of which `gain` is the log ratio. Returns the worse
/// verdict, with the estimate in words.
pub(crate) fn judge(
    series: &BlockSeries,
    metric: Metric,
    gain: f64,
    run: &RunState,
) -> (GuardVerdict, String) {
    let (margin, toll) = (beside(gain, run).exp_m1(), &run.toll);
    let mean = guard(&series.contrasts(metric, toll), margin, CONFIDENCE);
    let totals = guard_sums(&series.sums(metric, toll), margin, CONFIDENCE);
    let (verdict, estimate, of) = match (mean, totals) {
        ((GuardVerdict::Broken, estimate), _) => (GuardVerdict::Broken, estimate, ""),
        (_, (GuardVerdict::Broken, estimate)) => (GuardVerdict::Broken, estimate, " in total"),
        ((GuardVerdict::Unclear, estimate), _) => (GuardVerdict::Unclear, estimate, ""),
        (_, (GuardVerdict::Unclear, estimate)) => (GuardVerdict::Unclear, estimate, " in total"),
        ((_, estimate), _) => (GuardVerdict::Holds, estimate, ""),
    };
    (verdict, format!("{}{of} {} (above 1 is better)", metric.row().name, words::interval(estimate)))
}

/// Judges all guards of a step. `gain` is the least ratio by which the step is shown to improve the goal's figure.
/// `totals` are the sums of the mean log ratios of the steps kept so far.
pub(crate) fn all(
    comparison: &CellComparison,
    gain: f64,
    totals: &KeptTotals,
    run: &RunState,
) -> GuardReport {
    let rules = &run.rules;
    // What all kept steps may cost together is small beside what they gain together.
    let most = beside(totals.with(rules.goal, gain.ln()), run);
    let series = &comparison.series;
    if let Some(said) = loaded(series) {
        return GuardReport::Broken(format!("in this step: {said}"));
    }
    let mut unclear = few(series).or_else(|| bad_beside(gain.ln(), series, run));
    for metric in rules.goal.guards() {
        let mean = comparison.mean_better(metric, &run.toll);
        if series.contrasts(metric, &run.toll).is_empty() {
            continue;
        }
        match judge(series, metric, gain.ln(), run) {
            (GuardVerdict::Broken, said) => return GuardReport::Broken(format!("in this step: {said}")),
            // Several small losses may add up: the sum is judged once this step's loss is known to be small.
            (GuardVerdict::Holds, said) if mean < 0.0 && totals.with(metric, mean) < -most => {
                return GuardReport::Broken(format!("against the start: {said}"));
            }
            (GuardVerdict::Holds, _) => {}
            (GuardVerdict::Unclear, said) => unclear = Some(said),
        }
    }
    unclear.map_or(GuardReport::Hold, GuardReport::Unclear)
}

/// Returns the share that a guarded figure may lose beside a gain that is shown to be `gain` at least, as a ratio. A share
/// of 0.1 allows a ratio of 1 / 1.1.
pub fn guard_margin(rules: &LadderRules, gain: f64) -> f64 {
    rules.guard.max(gain.powf(BESIDE) - 1.0)
}

/// Returns the loss that a guard allows beside `gain`, both as log ratios.
fn beside(gain: f64, run: &RunState) -> f64 {
    guard_margin(&run.rules, gain.exp()).ln_1p()
}

fn usual_loss(run: &RunState) -> f64 {
    run.rules.guard.ln_1p()
}

/// Says that the candidate has too few trials to show that mishaps are rare; `None` if it has enough.
fn few(series: &BlockSeries) -> Option<String> {
    let trials = series.trials(Arm::Candidate).count();
    (trials < LEAST_TRIALS).then(|| format!("{trials} trials of it, {LEAST_TRIALS} are needed"))
}

/// Describes the first figure for which more of the candidate's trials than of the incumbent's are over twice as bad as
/// the incumbent's median.
pub(crate) fn bad(series: &BlockSeries, toll: &LostTimeEffects) -> Option<String> {
    bad_where(|usual, own| own > usual, series, toll)
}

/// Describes bad trials like [`bad`], but beside a large `gain` only if the candidate is shown to have more of them. On
/// a noisy host a fifth of both arms' round trips may be bad, and which arm has more of them is chance.
fn bad_beside(gain: f64, series: &BlockSeries, run: &RunState) -> Option<String> {
    let large = beside(gain, run) > usual_loss(run);
    let counts = |usual, own| if large { shown_to_be_more(usual, own) } else { own > usual };
    bad_where(counts, series, &run.toll)
}

/// Returns true if as large a majority of `own` over `usual` has a chance of less than 2.5 % where both are as likely
/// (the sign test).
fn shown_to_be_more(usual: usize, own: usize) -> bool {
    proportion_interval(own as u64, (own + usual) as u64).0 > 0.5
}

fn bad_where(
    counts: impl Fn(usize, usize) -> bool,
    series: &BlockSeries,
    toll: &LostTimeEffects,
) -> Option<String> {
    Metric::ALL.into_iter().find_map(|metric| {
        let [usual, own] = series.bad_trials(metric, toll);
        let trials = series.trials(Arm::Candidate).count();
        counts(usual, own).then(|| {
            format!(
                "{} over twice as bad as usual in {own} of its {trials} trials, in {usual} of the others",
                metric.row().name
            )
        })
    })
}

/// Describes the round trip under load, if it is worse than its guard allows.
fn loaded(series: &BlockSeries) -> Option<String> {
    let mean = |arm| {
        let seen: Vec<f64> =
            series.trials(arm).filter_map(|trial| trial.loaded_latency_ns).map(|ns| ns.0 as f64).collect();
        (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
    };
    let (usual, own) = (mean(Arm::Incumbent)?, mean(Arm::Candidate)?);
    too_long_under_load(Nanos(usual as u64), Nanos(own as u64))
        .then(|| format!("round trip under load {} after {}", Nanos(own as u64), Nanos(usual as u64)))
}

/// Returns true if `own`, a candidate's mean round trip under load, is too long: more than twice the incumbent's,
/// `usual`, and more than 5 ms above it.
pub fn too_long_under_load(usual: Nanos, own: Nanos) -> bool {
    own.0 as f64 > LOADED_FACTOR * usual.0 as f64 && own > usual + LOADED_MORE
}

/// Describes the differences between the arms in the processor time that their trials lost, one line for each
/// [`LOST_TIME_KINDS`] that shows one.
pub(crate) fn lost(series: &BlockSeries) -> Vec<String> {
    let said = |way| {
        let loss = series.loss(way)?;
        let shown = [loss.low(1.0 - CONFIDENCE), -loss.high(1.0 - CONFIDENCE)];
        let word = if loss.value > 0.0 { "more" } else { "less" };
        (shown[0].max(shown[1]) > LEAST_LOSS).then(|| {
            format!(
                "its trials lose {:.1} points {word} of the processor time {}, which the interval allows for",
                100.0 * loss.value.abs(),
                way.whom
            )
        })
    };
    LOST_TIME_KINDS.iter().filter_map(said).collect()
}
