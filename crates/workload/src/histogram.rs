//! Latency histograms.

use hdrhistogram::Histogram;
use landspeed_record::LatencyHistogram;
use landspeed_record::units::{Bytes, Nanos};

/// The upper bound of a histogram. Longer times are counted in the last bin.
const LONGEST: Nanos = Nanos::secs(60);

/// A histogram with three significant figures; recording neither allocates nor fails.
pub(crate) struct LatencyRecorder(Histogram<u64>);

impl LatencyRecorder {
    pub(crate) fn new() -> Self {
        LatencyRecorder(Histogram::new_with_bounds(1, LONGEST.0, 3).expect("the bounds are valid"))
    }

    pub(crate) fn record(&mut self, took: Nanos) {
        self.0.saturating_record(took.0);
    }

    /// Returns the bins that are not empty.
    pub(crate) fn export(&self, size_bytes: Bytes) -> LatencyHistogram {
        let bins = self.0.iter_recorded();
        let bins = bins.map(|bin| (bin.value_iterated_to(), bin.count_at_value())).collect();
        LatencyHistogram { size_bytes, bins }
    }
}
