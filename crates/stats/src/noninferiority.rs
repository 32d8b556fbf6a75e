//! Guards: a figure that must not get worse by more than a margin.

use landspeed_record::Estimate;

use crate::estimate::student_quantile;
use crate::trimmed::{trimmed, trimmed_bound};
use crate::{mean_and_deviation, ratio_of};

/// What is known of a guarded figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Shown to be worse by less than the margin (non-inferior).
    Holds,
    /// Shown to be worse by more than the margin.
    Broken,
    /// The interval holds the margin.
    Unclear,
}

/// Fewest blocks that a guard is judged on: three or fewer have next to no idea of their deviation.
const FEWEST: usize = 4;

/// The non-inferiority test of a guarded figure at one-sided `confidence` (0.95: the lower end of the
/// two-sided 90 % interval against the margin; two one-sided tests, Schuirmann 1987). From eight blocks
/// on the mean is the trimmed one (see `trimmed`): a block far off says something about the machine.
///
/// `ln_ratios` are oriented so that above zero is better; `margin` is the share that may be lost: 0.1
/// allows a ratio of 1 / 1.1. The estimate's interval has both one-sided ends, in the orientation given.
///
/// A guard keeps nothing by itself, it only forbids; so it is asked at any look without correction.
pub fn guard(ln_ratios: &[f64], margin: f64, confidence: f64) -> (Guard, Estimate) {
    let (mean, deviation) = mean_and_deviation(ln_ratios);
    if ln_ratios.len() < FEWEST {
        return (Guard::Unclear, ratio_of(mean, f64::NEG_INFINITY, f64::INFINITY));
    }
    let n = ln_ratios.len() as f64;
    let at = ln_ratios.len() as u32;
    let bound = trimmed_bound(at, 1.0 - confidence);
    let (mean, half) = match trimmed(ln_ratios) {
        Some(center) if bound.is_finite() => (center.value, bound * center.error),
        _ => (mean, student_quantile(n - 1.0, confidence) * deviation / n.sqrt()),
    };
    let worst = -margin.ln_1p();
    let verdict = match () {
        () if mean - half >= worst => Guard::Holds,
        () if mean + half < worst => Guard::Broken,
        () => Guard::Unclear,
    };
    (verdict, ratio_of(mean, mean - half, mean + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_breaks_or_stays_unclear() {
        let about = |mean: f64, spread: f64| -> Vec<f64> {
            [1.0, -1.0, 1.0, -1.0, 1.0, -1.0].iter().map(|s| mean + s * spread).collect()
        };
        assert_eq!(guard(&about(0.0, 0.02), 0.1, 0.95).0, Guard::Holds);
        assert_eq!(guard(&about(-0.05, 0.02), 0.1, 0.95).0, Guard::Holds);
        assert_eq!(guard(&about(-0.2, 0.02), 0.1, 0.95).0, Guard::Broken);
        assert_eq!(guard(&about(-0.09, 0.1), 0.1, 0.95).0, Guard::Unclear);
        assert_eq!(guard(&[0.0; 3], 0.1, 0.95).0, Guard::Unclear);
        assert_eq!(guard(&[-0.5; 4], 0.1, 0.95).0, Guard::Broken);
    }
}
