//! Medians, quantiles, means, and Student intervals for the mean of paired log ratios.

use std::borrow::Borrow;

use landspeed_record::Estimate;
use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};

use crate::mean_interval;

/// The largest log ratio that an estimate holds, ln(10^9). Larger log ratios are clamped to it, because the interval of
/// a single block is unbounded while the numbers of a record are finite.
const FARTHEST: f64 = 20.723_265_836_946_41;

/// Returns the median: the middle value, or the mean of the two middle ones. `None` for no values.
pub fn median(values: impl IntoIterator<Item: Borrow<f64>>) -> Option<f64> {
    quantile(values, 0.5)
}

/// Returns the `p` quantile of the values (`p` from 0 to 1), interpolated linearly between the two nearest; `None`
/// for no values.
pub fn quantile(values: impl IntoIterator<Item: Borrow<f64>>, p: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().map(|value| *value.borrow()).collect();
    sorted.sort_by(f64::total_cmp);
    let at = p * sorted.len().saturating_sub(1) as f64;
    let [below, above] = [at.floor(), at.ceil()].map(|at| sorted.get(at as usize).copied());
    let (below, above) = (below?, above?);
    Some(if below == above { below } else { below + (at - at.floor()) * (above - below) })
}

/// Returns the mean and the standard deviation (with n - 1) of `values`. For fewer than two values the deviation is
/// infinite, because their spread is unknown.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// Returns the mean of per-block log ratios as a ratio, with its two-sided Student interval at `confidence` (0.95,
/// say). The number of blocks must not depend on their values; for decisions that are made while blocks arrive, see
/// [`crate::judge`].
///
/// Both ends are finite, because JSON has no infinite numbers: an unbounded interval goes from 10^-9 to 10^9.
pub fn estimate(ln_ratios: &[f64], confidence: f64) -> Estimate {
    let (low, high) = mean_interval(ln_ratios, confidence).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    ratio_of(mean_and_deviation(ln_ratios).0, low, high)
}

/// Returns half the width, as a log, of Student's interval at `confidence` for the ratio of two cells that `blocks` blocks
/// measure once each, if a trial's log figure has the standard deviation `deviation`. Infinite for one block.
pub fn half_width(deviation: f64, blocks: u32, confidence: f64) -> f64 {
    match blocks {
        0 | 1 => f64::INFINITY,
        _ => {
            let n = f64::from(blocks);
            student_quantile(n - 1.0, 0.5 + confidence / 2.0) * deviation * (2.0 / n).sqrt()
        }
    }
}

/// Returns the lower bound, at the one-sided `confidence`, of a standard deviation that was measured as `deviation` with
/// `freedom` degrees of freedom.
pub fn deviation_at_least(deviation: f64, freedom: f64, confidence: f64) -> f64 {
    let most =
        ChiSquared::new(freedom.max(1.0)).map_or(f64::INFINITY, |squares| squares.inverse_cdf(confidence));
    deviation * (freedom.max(1.0) / most).sqrt()
}

/// Returns the weighted mean of `parts` as a ratio, with its two-sided Student interval at `confidence` (0.95, say).
/// Each part is a weight and a log ratio, and represents an unequal part of a whole. The interval is wider the fewer
/// parts carry most of the weight (Kish's effective number). Equal weights give the same interval as [`estimate`].
pub fn weighted_estimate(parts: &[(f64, f64)], confidence: f64) -> Estimate {
    let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
    let share = |weight: f64| if total > 0.0 { weight / total } else { 1.0 / parts.len() as f64 };
    let mean: f64 = parts.iter().map(|(weight, ln)| share(*weight) * ln).sum();
    let number = 1.0 / parts.iter().map(|(weight, _)| share(*weight).powi(2)).sum::<f64>();
    if parts.is_empty() || number < 1.0 + 1e-9 {
        return ratio_of(mean, f64::NEG_INFINITY, f64::INFINITY);
    }
    let squares: f64 = parts.iter().map(|(weight, ln)| (share(*weight) * (ln - mean)).powi(2)).sum();
    let half =
        student_quantile(number - 1.0, 0.5 + confidence / 2.0) * (squares * number / (number - 1.0)).sqrt();
    ratio_of(mean, mean - half, mean + half)
}

/// Returns an estimate as ratios, from the logs of its value and of its ends. Infinite ends become finite: 10^-9 and
/// 10^9.
pub fn ratio_of(mean: f64, low: f64, high: f64) -> Estimate {
    let ratio = |ln: f64| ln.clamp(-FARTHEST, FARTHEST).exp();
    Estimate { ratio: ratio(mean), low: ratio(low), high: ratio(high) }
}

/// Returns the quantile `p` of Student's distribution with `freedom` degrees of freedom.
pub(crate) fn student_quantile(freedom: f64, p: f64) -> f64 {
    student(freedom).inverse_cdf(p)
}

/// Returns Student's distribution with `freedom` > 0 degrees of freedom.
pub(crate) fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_middle_of_odd_and_even_sets() {
        assert_eq!(median(&[] as &[f64]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile([3.0, 1.0, 2.0], 1.0), Some(3.0));
        assert!((quantile([0.0, 1.0, 2.0, 3.0, 10.0], 0.9).unwrap() - 7.2).abs() < 1e-12);
        assert_eq!(quantile(&[] as &[f64], 0.9), None);
    }

    #[test]
    fn equal_weights_give_the_plain_interval_and_one_heavy_part_none() {
        let close = |a: Estimate, b: Estimate| {
            [(a.ratio, b.ratio), (a.low, b.low), (a.high, b.high)]
                .iter()
                .all(|(a, b)| (a / b - 1.0).abs() < 1e-9)
        };
        let lns = [0.1, 0.3, 0.2, 0.25];
        let alike = lns.map(|ln| (7.0, ln));
        assert!(close(weighted_estimate(&alike, 0.95), estimate(&lns, 0.95)));
        let one = weighted_estimate(&[(1.0, 0.2), (0.0, 9.0)], 0.95);
        assert!(close(one, estimate(&[0.2], 0.95)), "{one:?}");
        assert!(close(weighted_estimate(&[], 0.95), estimate(&[], 0.95)));
    }

    #[test]
    fn agrees_with_a_table_of_student() {
        // Mean 2, deviation 1, n 3: t(0.975, 2) = 4.3027, half width 2.4842.
        let e = estimate(&[1.0, 2.0, 3.0], 0.95);
        assert!((e.ratio.ln() - 2.0).abs() < 1e-9);
        assert!((e.low.ln() + 0.4842).abs() < 1e-3, "{e:?}");
        assert!((e.high.ln() - 4.4842).abs() < 1e-3, "{e:?}");
    }

    #[test]
    fn few_blocks_have_finite_ends() {
        for blocks in [&[][..], &[0.1][..]] {
            let e = estimate(blocks, 0.95);
            assert!(e.low == 1e-9_f64.max(e.low) && e.high.is_finite() && e.ratio >= 1.0, "{e:?}");
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_estimate_and_mirrors(xs in prop::collection::vec(-1.0..1.0f64, 2..20)) {
            let e = estimate(&xs, 0.95);
            prop_assert!(e.low <= e.ratio && e.ratio <= e.high);
            let mirrored = estimate(&xs.iter().map(|x| -x).collect::<Vec<_>>(), 0.95);
            prop_assert!((mirrored.low * e.high - 1.0).abs() < 1e-6);
        }
    }
}
