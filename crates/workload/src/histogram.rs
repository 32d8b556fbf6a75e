//! Latency histograms.

use hdrhistogram::Histogram;
use landspeed_record::LatencyHistogram;
use landspeed_units::{Bytes, Nanos};

/// The longest time that is told apart from longer ones.
const LONGEST: Nanos = Nanos::secs(60);

/// Samples with three significant figures; recording neither allocates nor fails.
pub(crate) struct Latency(Histogram<u64>);

impl Latency {
    pub(crate) fn new() -> Self {
        Latency(Histogram::new_with_bounds(1, LONGEST.0, 3).expect("the bounds are valid"))
    }

    /// Counts one sample.
    pub(crate) fn record(&mut self, took: Nanos) {
        self.0.saturating_record(took.0);
    }

    /// The bins that hold something.
    pub(crate) fn export(&self, size_bytes: Bytes) -> LatencyHistogram {
        let bins = self.0.iter_recorded();
        let bins = bins.map(|bin| (bin.value_iterated_to(), bin.count_at_value())).collect();
        LatencyHistogram { size_bytes, bins }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_keep_three_figures_and_every_sample() {
        let mut latency = Latency::new();
        for nanos in 1..=100_000 {
            latency.record(Nanos(nanos));
        }
        let exported = latency.export(Bytes(1));
        assert_eq!(exported.count(), 100_000);
        for q in [0.01, 0.5, 0.99, 0.999] {
            let got = exported.percentile(q).expect("enough samples").0 as f64;
            assert!((got / (q * 1e5) - 1.0).abs() < 2e-3, "{q}: {got}");
        }
        assert!(exported.bins.windows(2).all(|w| w[0].0 < w[1].0), "ascending");
    }

    #[test]
    fn what_is_too_long_is_counted_as_the_longest() {
        let mut latency = Latency::new();
        latency.record(Nanos(u64::MAX));
        assert_eq!(latency.export(Bytes(1)).count(), 1);
    }
}
