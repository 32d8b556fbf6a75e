//! What all kept steps come to.

use super::comparison::Comparison;
use crate::Metric;

/// The sums of the mean log ratios (above zero better) of the kept steps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals([f64; 3]);

impl Totals {
    pub(crate) fn with(&self, metric: Metric, more: f64) -> f64 {
        self.0[metric as usize] + more
    }

    pub(crate) fn add(&mut self, comparison: &Comparison) {
        for metric in Metric::ALL {
            self.0[metric as usize] += comparison.mean_better(metric);
        }
    }
}
