//! The ratio of a step's two arms while its blocks are measured.

use landspeed_analysis::Metric;
use landspeed_record::{Arm, Trial};

/// The ratio of a step's two arms so far, by the means of the logarithms. It is only a guide for the reader: the
/// decision is made elsewhere, by a method that is valid under peeking.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunningRatio {
    /// (trials, sum of logarithms).
    incumbent: (u32, f64),
    candidate: (u32, f64),
}

impl RunningRatio {
    /// Adds a trial's `figure`, unless it was not measured.
    pub(super) fn add(&mut self, trial: &Trial, figure: Metric) {
        let Some(value) = figure.of_figures(&trial.figures) else { return };
        let arm = match trial.arm {
            Arm::Incumbent => &mut self.incumbent,
            Arm::Candidate => &mut self.candidate,
        };
        *arm = (arm.0 + 1, arm.1 + value.ln());
    }

    pub(super) fn ratio(&self) -> Option<f64> {
        let mean = |(n, sum): (u32, f64)| (n > 0).then(|| sum / f64::from(n));
        Some((mean(self.candidate)? - mean(self.incumbent)?).exp())
    }
}
