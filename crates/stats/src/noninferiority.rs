//! Guards: tests that a figure did not get worse by more than a margin.

use landspeed_record::Estimate;

use crate::contrast::{BlockContrast, MeanLogRatio};
use crate::ratio_of;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardVerdict {
    /// The figure is shown to be worse by less than the margin (non-inferior), or not worse.
    Holds,
    /// The figure is shown to be worse by more than the margin.
    Broken,
    /// The interval includes the margin.
    Unclear,
}

/// Tests at one-sided `confidence` (0.95, say) that a guarded figure did not get worse by more than `margin`, by the
/// plain mean of the blocks that count. At 0.95 this compares the lower end of the two-sided 90 % interval with the
/// margin (two one-sided tests, Schuirmann 1987).
///
/// The blocks' log ratios must be oriented so that above zero is better. `margin` is the loss that is allowed: 0.1
/// allows a ratio of 1 / 1.1. The returned estimate has the same orientation, and both of its ends are one-sided.
///
/// A guard can only forbid a step and never keeps one, so it is tested at every look without correction. The guard
/// holds if the interval of the mean, without the effect of lost processor time, is within the margin. It is broken
/// only by a loss that is larger than lost processor time may explain.
pub fn guard(blocks: &[BlockContrast], margin: f64, confidence: f64) -> (GuardVerdict, Estimate) {
    let counted: Vec<&BlockContrast> = blocks.iter().filter(|block| block.counts).collect();
    against(MeanLogRatio::of(&counted), margin, confidence)
}

/// Tests at one-sided `confidence` that a ratio of totals did not get worse by more than `margin`. Each block holds
/// the totals of the incumbent's arm and of the candidate's.
pub fn guard_sums(blocks: &[[ArmTotals; 2]], margin: f64, confidence: f64) -> (GuardVerdict, Estimate) {
    against(ratio_of_totals(blocks), margin, confidence)
}

fn against(fit: Option<MeanLogRatio>, margin: f64, confidence: f64) -> (GuardVerdict, Estimate) {
    let Some(fit) = fit.filter(|fit| fit.freedom >= LEAST_FREEDOM) else {
        let value = fit.map_or(0.0, |fit| fit.freed);
        return (GuardVerdict::Unclear, ratio_of(value, f64::NEG_INFINITY, f64::INFINITY));
    };
    let half = fit.half(1.0 - confidence);
    let (low, high) = (fit.freed - half, fit.freed + fit.slack + half);
    let worst = -margin.ln_1p();
    let verdict = match () {
        () if low >= worst => GuardVerdict::Holds,
        () if high < worst => GuardVerdict::Broken,
        () => GuardVerdict::Unclear,
    };
    (verdict, ratio_of(fit.freed, low, high))
}

/// The least degrees of freedom that decide a guard. Four blocks, two in each order, have two degrees of freedom.
const LEAST_FREEDOM: f64 = 2.0;

/// The totals of one arm's trials in a block. For bytes per CPU-second they are the bytes and the seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmTotals {
    /// The quantity of which more is better, such as bytes.
    pub gained: f64,
    pub spent: f64,
}

/// Returns the log of the second arm's ratio of totals (gained over spent, summed over all blocks) relative to the
/// first arm's. Its error comes from leaving out each block once (the jackknife: Tukey 1958; for ratios Cochran,
/// Sampling Techniques, section 6.17). A mean of logs would hide a few very expensive trials, while totals are the
/// actual cost. Returns `None` for fewer than two blocks, and if the result is not finite.
fn ratio_of_totals(blocks: &[[ArmTotals; 2]]) -> Option<MeanLogRatio> {
    let n = blocks.len() as f64;
    let sums = [0, 1].map(|arm| {
        let sum = |of: fn(&ArmTotals) -> f64| blocks.iter().map(|block| of(&block[arm])).sum::<f64>();
        ArmTotals { gained: sum(|totals| totals.gained), spent: sum(|totals| totals.spent) }
    });
    let ln = |[one, two]: [ArmTotals; 2]| (two.gained / two.spent).ln() - (one.gained / one.spent).ln();
    let without = |block: &[ArmTotals; 2]| {
        ln([0, 1].map(|arm| ArmTotals {
            gained: sums[arm].gained - block[arm].gained,
            spent: sums[arm].spent - block[arm].spent,
        }))
    };
    let left: Vec<f64> = blocks.iter().map(without).collect();
    let mean = left.iter().sum::<f64>() / n;
    let squares: f64 = left.iter().map(|value| (value - mean).powi(2)).sum();
    let (value, error) = (ln(sums), ((n - 1.0) / n * squares).sqrt());
    (n >= 2.0 && value.is_finite() && error.is_finite()).then_some(MeanLogRatio {
        value,
        freed: value,
        slack: 0.0,
        measured_error: error,
        error,
        freedom: n - 1.0,
        blocks: n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_breaks_or_stays_unclear() {
        let alike = |i: usize, ln_ratio| BlockContrast::new(ln_ratio, i % 4 < 2, Vec::new());
        let about = |mean: f64, spread: f64| -> Vec<BlockContrast> {
            let signs = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
            signs.iter().enumerate().map(|(i, s)| alike(i, mean + s * spread)).collect()
        };
        assert_eq!(guard(&about(0.0, 0.02), 0.1, 0.95).0, GuardVerdict::Holds);
        assert_eq!(guard(&about(-0.05, 0.02), 0.1, 0.95).0, GuardVerdict::Holds);
        assert_eq!(guard(&about(-0.2, 0.02), 0.1, 0.95).0, GuardVerdict::Broken);
        assert_eq!(guard(&about(-0.09, 0.1), 0.1, 0.95).0, GuardVerdict::Unclear);
        let equal = |n: usize, ln_ratio| (0..n).map(|i| alike(i, ln_ratio)).collect::<Vec<_>>();
        assert_eq!(guard(&equal(3, 0.0), 0.1, 0.95).0, GuardVerdict::Unclear);
        assert_eq!(guard(&equal(4, -0.5), 0.1, 0.95).0, GuardVerdict::Broken);
    }

    /// Returns blocks in which both arms send the same amount, but one in twelve of the candidate's trials costs twenty
    /// times as much.
    fn mishaps() -> Vec<[ArmTotals; 2]> {
        let arm = |spent| ArmTotals { gained: 4.0, spent };
        (0..12).map(|i| [arm(4.0), arm(if i < 4 { 23.0 } else { 4.0 })]).collect()
    }

    #[test]
    fn totals_show_the_cost_of_few_trials() {
        let (verdict, estimate) = guard_sums(&mishaps(), 0.1, 0.95);
        // 124 seconds instead of 48.
        assert!((estimate.ratio - 48.0 / 124.0).abs() < 1e-9, "{estimate:?}");
        assert_ne!(verdict, GuardVerdict::Holds);
        let even: Vec<[ArmTotals; 2]> = mishaps().iter().map(|block| [block[0], block[0]]).collect();
        assert_eq!(guard_sums(&even, 0.1, 0.95).0, GuardVerdict::Holds);
    }

    #[test]
    fn totals_of_zero_give_no_answer() {
        let none = ArmTotals { gained: 0.0, spent: 0.0 };
        assert_eq!(guard_sums(&[[none, none]; 8], 0.1, 0.95).0, GuardVerdict::Unclear);
        assert_eq!(guard_sums(&[], 0.1, 0.95).0, GuardVerdict::Unclear);
    }
}
