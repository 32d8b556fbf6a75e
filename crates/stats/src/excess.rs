//! A test of whether blocks vary more than the spread of their trials explains.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use crate::contrast::{BlockContrast, VarianceEstimates};

/// The ratio of the variance of blocks to the variance that their trials imply, averaged over any number of
/// comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ExcessVariance {
    /// A sum over the comparisons. Each term is the ratio of the variances (blocks' over implied) times the degrees
    /// of freedom of the blocks' variance.
    weighted: f64,
    /// The degrees of freedom of the blocks' variance, and those of the implied variance, each summed over the
    /// comparisons.
    freedom: [f64; 2],
}

/// A comparison is used only if its implied variance has more degrees of freedom than this. With fewer, the F
/// distribution has no variance.
const LEAST: f64 = 4.0;

/// Returns the excess variance of one comparison's blocks. If there are too few blocks, or if their trials do not vary,
/// the result covers no comparison.
pub fn excess(blocks: &[BlockContrast]) -> ExcessVariance {
    let known = |parts: &VarianceEstimates| parts.implied > 0.0 && parts.implied_freedom > LEAST;
    let counted: Vec<&BlockContrast> = blocks.iter().filter(|block| block.counts).collect();
    let Some(parts) = VarianceEstimates::of(&counted).filter(known) else { return ExcessVariance::default() };
    let freedom = [parts.freedom, parts.implied_freedom];
    // The mean of an F distribution is above one. It is far above one if the denominator has few degrees of freedom.
    let mean = freedom[1] / (freedom[1] - 2.0);
    ExcessVariance { weighted: parts.freedom * parts.variance / (parts.implied * mean), freedom }
}

impl ExcessVariance {
    #[must_use]
    pub fn and(self, other: ExcessVariance) -> ExcessVariance {
        let freedom = [0, 1].map(|i| self.freedom[i] + other.freedom[i]);
        ExcessVariance { weighted: self.weighted + other.weighted, freedom }
    }

    /// Returns the blocks' variance as a multiple of the variance that their trials imply; 1 without any comparison.
    pub fn times(&self) -> f64 {
        if self.freedom[0] > 0.0 { self.weighted / self.freedom[0] } else { 1.0 }
    }

    /// Returns the p-value of the F test of nested variance: the probability of a ratio at least as large as
    /// [`times`](Self::times) if only the spread of the trials made the blocks vary. 1 without any comparison.
    pub fn chance(&self) -> f64 {
        let [upper, lower] = self.freedom;
        FisherSnedecor::new(upper, lower).map_or(1.0, |f| 1.0 - f.cdf(self.times()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns blocks whose trials deviate by 0.1 either way, and whose log ratios deviate by `spread`.
    fn blocks(spread: f64) -> Vec<BlockContrast> {
        let block = |i: usize| {
            let sign = if i % 4 < 2 { 1.0 } else { -1.0 };
            let own = if i.is_multiple_of(3) { 0.1 } else { -0.1 };
            BlockContrast::new(sign * spread, i % 2 == 1, vec![own, own, -own, -own, own, -own, -own, own])
        };
        (0..24).map(block).collect()
    }

    #[test]
    fn an_effect_on_an_arm_shows_and_one_on_single_trials_does_not() {
        // A trial's deviation is about 0.1, so a block's is 0.07.
        let (even, wild) = (excess(&blocks(0.07)), excess(&blocks(0.3)));
        assert!(even.times() < 1.5 && even.chance() > 0.1, "{} {}", even.times(), even.chance());
        assert!(wild.times() > 10.0 && wild.chance() < 1e-6, "{} {}", wild.times(), wild.chance());
        assert_eq!(excess(&[]), ExcessVariance::default());
        assert_eq!((ExcessVariance::default().times(), ExcessVariance::default().chance()), (1.0, 1.0));
        assert!((even.and(even).times() - even.times()).abs() < 1e-12);
    }
}
