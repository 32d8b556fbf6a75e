//! A comparison of the gains that verdicts expected with the gains that the steps measured.

use landspeed_record::{PredictionAccuracy, StepAnswer, StepSummary};

/// Returns the comparison over all steps of a run that had `verdicts` verdicts; `None` if `verdicts` is zero.
pub(crate) fn expectations(steps: &[StepSummary], verdicts: u32) -> Option<PredictionAccuracy> {
    if verdicts == 0 {
        return None;
    }
    let mut sums = PredictionAccuracy { verdicts, ..PredictionAccuracy::default() };
    let mut ratios = Vec::new();
    for step in steps.iter().filter(|step| !step.placebo && step.blocks > 0) {
        let helped = u32::from(step.answer == StepAnswer::Helps);
        let Some(advised) = step.advised else {
            sums.others += 1;
            sums.others_helped += helped;
            continue;
        };
        sums.advised += 1;
        sums.advised_helped += helped;
        let expected = advised.expected_ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        let measured = step.rate.filter(|rate| rate.ratio.is_finite() && rate.ratio > 0.0);
        if let (Some(expected), Some(measured)) = (expected, measured) {
            sums.held += u32::from((measured.low..=measured.high).contains(&expected));
            ratios.push((measured.ratio / expected).ln());
        }
    }
    sums.compared = ratios.len() as u32;
    sums.measured_over_expected =
        (!ratios.is_empty()).then(|| (ratios.iter().sum::<f64>() / ratios.len() as f64).exp());
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::{Cause, Estimate, StepPrediction};

    fn step(answer: StepAnswer, expected: Option<Option<f64>>, ratio: f64) -> StepSummary {
        let advised = |expected_ratio| StepPrediction {
            verdict: 0,
            cause: Cause::OffloadsOff,
            weight: 0.5,
            expected_ratio,
        };
        StepSummary {
            knob: "tso".into(),
            answer,
            advised: expected.map(advised),
            rate: Some(Estimate { ratio, low: ratio * 0.9, high: ratio * 1.1 }),
            blocks: 5,
            ..StepSummary::default()
        }
    }

    #[test]
    fn expected_gains_are_compared_with_measured_ones() {
        let placebo = StepSummary { placebo: true, ..step(StepAnswer::NoEffect, None, 1.0) };
        let unmeasured =
            StepSummary { blocks: 0, rate: None, ..step(StepAnswer::NotTried, Some(Some(9.0)), 1.0) };
        let steps = [
            placebo,
            step(StepAnswer::Helps, Some(Some(2.0)), 2.0),
            step(StepAnswer::Helps, Some(Some(2.0)), 1.0),
            step(StepAnswer::NoEffect, Some(None), 1.0),
            step(StepAnswer::Harms, None, 0.8),
            unmeasured,
        ];
        let sums = expectations(&steps, 3).unwrap();
        assert_eq!((sums.advised, sums.advised_helped, sums.others, sums.others_helped), (3, 2, 1, 0));
        assert_eq!((sums.verdicts, sums.compared, sums.held), (3, 2, 1));
        let ratio = sums.measured_over_expected.unwrap();
        assert!((ratio - 0.5_f64.sqrt()).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn a_run_without_verdicts_has_no_comparison() {
        assert_eq!(expectations(&[step(StepAnswer::Helps, None, 2.0)], 0), None);
    }
}
