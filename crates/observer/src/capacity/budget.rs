//! Limits the time of a measurement.

use std::fmt;
use std::time::{Duration, Instant};

/// A deadline for a measurement, and a callback that returns true once the measurement is cancelled.
#[derive(Clone, Copy)]
pub(crate) struct MeasurementBudget<'a> {
    until: Instant,
    cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> MeasurementBudget<'a> {
    /// Returns a budget that ends `time` from now. `cancelled` is called every few milliseconds, from any thread.
    pub(crate) fn new(time: Duration, cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        MeasurementBudget { until: Instant::now() + time, cancelled }
    }

    /// Returns a budget of at most `time` that ends no later than this one.
    pub(crate) fn part(&self, time: Duration) -> Self {
        MeasurementBudget { until: self.until.min(Instant::now() + time), ..*self }
    }

    pub(crate) fn over(&self) -> bool {
        Instant::now() >= self.until || self.cancelled()
    }

    pub(crate) fn cancelled(&self) -> bool {
        (self.cancelled)()
    }

    pub(crate) fn left(&self) -> Duration {
        if self.cancelled() { Duration::ZERO } else { self.until.saturating_duration_since(Instant::now()) }
    }
}

impl fmt::Debug for MeasurementBudget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeasurementBudget").field("left", &self.left()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_outlasts_the_whole_and_a_wish_to_stop_ends_both() {
        let whole = MeasurementBudget::new(Duration::from_secs(60), &|| false);
        assert!(whole.part(Duration::from_secs(3600)).left() <= Duration::from_secs(60));
        assert!(!whole.over() && whole.part(Duration::ZERO).over());

        let stopped = MeasurementBudget::new(Duration::from_secs(60), &|| true);
        assert!(stopped.over() && stopped.part(Duration::from_secs(1)).left().is_zero());
    }
}
