//! Sentences on the gains that verdicts predicted for steps, and on the measured gains.

use landspeed_analysis::verdict::{self, is_limit};
use landspeed_record::{Cause, PredictionAccuracy, StepPrediction, StepSummary, TuneSummary};

use crate::words::{counted, times};

/// Returns the measured steps that a verdict moved forward, in the order in which they were tried.
pub(crate) fn advised(summary: &TuneSummary) -> Vec<(&StepSummary, &StepPrediction)> {
    let measured = summary.steps.iter().filter(|step| step.blocks > 0);
    measured.filter_map(|step| Some((step, step.advised.as_ref()?))).collect()
}

/// Returns why a step was tried early: "explain: segmentation offloads that are off, 58 % of the time".
pub(crate) fn because(advised: &StepPrediction) -> String {
    format!("explain: {}", weighed(advised.cause, advised.weight))
}

/// Returns a cause in words, with the share of the flow's time that it takes. A limit has no share, because it remains
/// after all causes are fixed.
pub(crate) fn weighed(cause: Cause, weight: f64) -> String {
    let words = verdict::cause(cause);
    let share = weight * 100.0;
    match is_limit(cause) {
        true => words.to_owned(),
        // A cause without a share limits the flow only after the others are fixed.
        false if !(0.5..=100.0).contains(&share) => format!("{words}, next"),
        false => format!("{words}, {share:.0} % of the time"),
    }
}

/// Returns the expected ratio of goodput, or `None` if the advice has no plausible one.
pub(crate) fn expected(advised: &StepPrediction) -> Option<f64> {
    advised.expected_ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

pub(crate) fn sums(of: &PredictionAccuracy) -> String {
    let steps = |n: u32| counted(n as usize, "step");
    let mut text = format!(
        "explain put {} first, of which {} helped; of the {} others, tried in the order of the literature, {} helped",
        steps(of.advised),
        of.advised_helped,
        of.others,
        of.others_helped
    );
    if let Some(ratio) = of.measured_over_expected.filter(|ratio| ratio.is_finite() && *ratio > 0.0) {
        text += &format!(
            ". The gain was {} of the expected one on average of {}; the measured range of {} of them holds what was expected",
            times(ratio),
            steps(of.compared),
            of.held
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_said_with_its_share_where_it_has_one() {
        let advised = |cause, weight| StepPrediction { verdict: 0, cause, weight, expected_ratio: None };
        let said = because(&advised(Cause::OffloadsOff, 0.58));
        assert_eq!(said, "explain: segmentation offloads that are off, 58 % of the time");
        assert_eq!(because(&advised(Cause::CpuLimit, 0.97)), "explain: the processor");
        assert_eq!(because(&advised(Cause::RandomLoss, 0.0)), "explain: random loss, next");
        assert_eq!(because(&advised(Cause::RandomLoss, f64::NAN)), "explain: random loss, next");
    }

    #[test]
    fn no_figure_is_said_that_was_not_given() {
        let of = PredictionAccuracy { verdicts: 2, advised: 1, others: 3, ..PredictionAccuracy::default() };
        let said = sums(&of);
        assert_eq!(
            said,
            "explain put 1 step first, of which 0 helped; of the 3 others, tried in the order of the literature, 0 helped"
        );
        let compared = PredictionAccuracy { measured_over_expected: Some(0.8), compared: 2, held: 1, ..of };
        let said = sums(&compared);
        assert!(
            said.ends_with("was 0.80× of the expected one on average of 2 steps; the measured range of 1 of them holds what was expected"),
            "{said}"
        );
    }
}
