//! The interval of a step so far.

use std::collections::BTreeMap;

use landspeed_record::{Arm, Estimate, Trial};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::words::Primary;

/// Sums of the logarithms of one block's trials.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    incumbent: (u32, f64),
    candidate: (u32, f64),
}

impl Block {
    fn log_ratio(&self) -> Option<f64> {
        let mean = |(n, sum): (u32, f64)| (n > 0).then(|| sum / f64::from(n));
        Some(mean(self.candidate)? - mean(self.incumbent)?)
    }

    fn whole(&self) -> bool {
        self.incumbent.0 == self.candidate.0 && self.incumbent.0 >= 2
    }
}

/// The log ratios of one figure by block.
///
/// Only a guide for the eye: a plain paired-t interval at 95 %, which is not valid under peeking. The
/// decision is made elsewhere, by a sequential method that is.
#[derive(Debug, Clone, Default)]
pub(crate) struct SoFar {
    blocks: BTreeMap<u32, Block>,
}

impl SoFar {
    /// Adds a trial's `figure`; one that was not measured is left out.
    pub(crate) fn add(&mut self, trial: &Trial, figure: Primary) {
        let value = figure.of_figures(&trial.figures);
        if !(value.is_finite() && value > 0.0) {
            return;
        }
        let block = self.blocks.entry(trial.block).or_default();
        let arm = match trial.arm {
            Arm::Incumbent => &mut block.incumbent,
            Arm::Candidate => &mut block.candidate,
        };
        *arm = (arm.0 + 1, arm.1 + value.ln());
    }

    /// The ratio over the blocks that are complete, and its interval from two blocks on.
    pub(crate) fn estimate(&self) -> Option<(f64, Option<Estimate>)> {
        let last = *self.blocks.keys().next_back()?;
        let logs: Vec<f64> = self
            .blocks
            .iter()
            .filter(|(number, block)| **number < last || block.whole())
            .filter_map(|(_, block)| block.log_ratio())
            .collect();
        let n = logs.len() as f64;
        if logs.is_empty() {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / n;
        Some((mean.exp(), half_width(&logs, mean).map(|half| around(mean, half))))
    }
}

fn around(mean: f64, half: f64) -> Estimate {
    Estimate { ratio: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() }
}

/// Half the width of the 95 % interval of the mean of `logs`.
fn half_width(logs: &[f64], mean: f64) -> Option<f64> {
    let n = logs.len() as f64;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975);
    let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(t * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(log_ratios: &[f64]) -> SoFar {
        let block = |x: &f64| Block { incumbent: (2, 0.0), candidate: (2, 2.0 * x) };
        SoFar { blocks: (0..).zip(log_ratios.iter().map(block)).collect() }
    }

    #[test]
    fn agrees_with_a_paired_t_interval_worked_by_hand() {
        // mean 0.2, s = 0.1, n = 3, t(0.975, 2) = 4.302653: half width 0.2484138.
        let (ratio, interval) = with(&[0.1, 0.2, 0.3]).estimate().unwrap();
        let interval = interval.unwrap();
        assert!((ratio.ln() - 0.2).abs() < 1e-12);
        assert!((interval.low.ln() - (0.2 - 0.248_413_8)).abs() < 1e-6, "{interval:?}");
        assert!((interval.high.ln() - (0.2 + 0.248_413_8)).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn a_block_that_is_still_running_does_not_count() {
        let mut so_far = with(&[0.1]);
        so_far.blocks.insert(1, Block { incumbent: (2, 0.0), candidate: (1, 5.0) });
        assert!((so_far.estimate().unwrap().0.ln() - 0.1).abs() < 1e-12);
        assert!(so_far.estimate().unwrap().1.is_none());
        assert!(SoFar::default().estimate().is_none());
    }
}
