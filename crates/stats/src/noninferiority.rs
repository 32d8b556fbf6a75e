//! Guards: a figure that must not get worse by more than a margin.

use landspeed_record::Estimate;

use crate::calm::{Calm, Contrast, calm_mean};
use crate::ratio_of;

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

/// The non-inferiority test of a guarded figure at one-sided `confidence` (0.95: the lower end of the
/// two-sided 90 % interval against the margin; two one-sided tests, Schuirmann 1987), by the mean that listens to calm
/// blocks (see `calm`): a restless block says something about the machine.
///
/// The blocks' log ratios are oriented so that above zero is better; `margin` is the share that may be lost: 0.1
/// allows a ratio of 1 / 1.1. The estimate's interval has both one-sided ends, in the orientation given.
///
/// A guard keeps nothing by itself, it only forbids; so it is asked at any look without correction.
pub fn guard(blocks: &[Contrast], margin: f64, confidence: f64) -> (Guard, Estimate) {
    let Some(calm) = Calm::of(blocks) else {
        return (Guard::Unclear, ratio_of(calm_mean(blocks), f64::NEG_INFINITY, f64::INFINITY));
    };
    let (mean, half) = (calm.value, calm.bound(1.0 - confidence, 1.0) * calm.error);
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
        let alike = |ln_ratio| Contrast { ln_ratio, unrest: 0.1 };
        let about = |mean: f64, spread: f64| -> Vec<Contrast> {
            [1.0, -1.0, 1.0, -1.0, 1.0, -1.0].iter().map(|s| alike(mean + s * spread)).collect()
        };
        assert_eq!(guard(&about(0.0, 0.02), 0.1, 0.95).0, Guard::Holds);
        assert_eq!(guard(&about(-0.05, 0.02), 0.1, 0.95).0, Guard::Holds);
        assert_eq!(guard(&about(-0.2, 0.02), 0.1, 0.95).0, Guard::Broken);
        assert_eq!(guard(&about(-0.09, 0.1), 0.1, 0.95).0, Guard::Unclear);
        assert_eq!(guard(&[alike(0.0); 3], 0.1, 0.95).0, Guard::Unclear);
        assert_eq!(guard(&[alike(-0.5); 4], 0.1, 0.95).0, Guard::Broken);
    }
}
