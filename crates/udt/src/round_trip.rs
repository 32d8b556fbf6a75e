//! The estimate of the round-trip time (draft-gg-udt-03 section 6.2).

use landspeed_record::units::Nanos;

use crate::history::SYNC_INTERVAL;

/// The round-trip time and its variation, as moving means (draft-gg-udt-03 section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// The moving mean of the round-trip time.
    pub mean: Nanos,
    /// The mean absolute deviation of the round-trip time from its mean. The draft calls it variance.
    pub variance: Nanos,
}

impl Default for RoundTrip {
    fn default() -> Self {
        RoundTrip { mean: SYNC_INTERVAL.times(10), variance: SYNC_INTERVAL.times(5) }
    }
}

impl RoundTrip {
    /// Updates the moving means with a sample of the round-trip time.
    pub(crate) fn sample(&mut self, sample: Nanos) {
        let deviation = Nanos(sample.0.abs_diff(self.mean.0));
        self.variance = Nanos((self.variance.times(3) + deviation).0 / 4);
        self.mean = Nanos((self.mean.times(7) + sample).0 / 8);
    }

    /// Returns a timeout that only a few round trips exceed: the mean and four times the variation.
    pub(crate) fn timeout(self) -> Nanos {
        self.mean + self.variance.times(4)
    }
}

/// An estimate of the round-trip time, which may have no sample yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RoundTripEstimate {
    round_trip: RoundTrip,
    is_known: bool,
}

impl RoundTripEstimate {
    /// Creates an estimate. `first` is the round-trip time of the handshake, if it was measured.
    pub(crate) fn new(first: Option<Nanos>) -> Self {
        let mut estimate = RoundTripEstimate::default();
        first.into_iter().for_each(|first| estimate.sample(first));
        estimate
    }

    /// Adds a sample. The first sample replaces the initial value (RFC 6298 section 2.2).
    pub(crate) fn sample(&mut self, sample: Nanos) {
        if self.is_known {
            self.round_trip.sample(sample);
        } else {
            self.round_trip = RoundTrip { mean: sample, variance: Nanos(sample.0 / 2) };
            self.is_known = true;
        }
    }

    /// Adds a round-trip time that the peer reports. Until libudt has a measurement, it reports its initial value,
    /// which is ignored. Its next reports converge slowly to the true value, with a variance of up to twice the mean.
    /// A report with a variance of more than half the mean is therefore used only as the first sample.
    pub(crate) fn reported(&mut self, mean: Nanos, variance: Nanos) {
        let is_measured = mean.0 > 0 && RoundTrip { mean, variance } != RoundTrip::default();
        let is_settled = variance.0 <= mean.0 / 2;
        if is_measured && (is_settled || !self.is_known) {
            self.sample(mean);
        }
    }

    pub(crate) fn round_trip(&self) -> RoundTrip {
        self.round_trip
    }

    /// Returns a timeout that only a few round trips exceed, or one second if no round trip is known (RFC 6298
    /// section 2.1).
    pub(crate) fn patience(&self) -> Nanos {
        if self.is_known { self.round_trip.timeout() } else { Nanos::secs(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_counts_whole_and_a_report_of_nothing_does_not() {
        let mut estimate = RoundTripEstimate::new(None);
        assert_eq!(estimate.patience(), Nanos::secs(1));
        estimate.reported(Nanos::millis(100), Nanos::millis(50));
        assert_eq!(estimate.patience(), Nanos::secs(1));
        estimate.reported(Nanos::millis(400), Nanos::millis(10));
        assert_eq!(estimate.round_trip().mean, Nanos::millis(400));
        assert_eq!(estimate.patience(), Nanos::millis(1200));
        estimate.sample(Nanos::millis(480));
        assert_eq!(estimate.round_trip().mean, Nanos::millis(410));
        let mut estimate = RoundTripEstimate::new(Some(Nanos::millis(40)));
        assert_eq!(estimate.patience(), Nanos::millis(120));
        estimate.reported(Nanos::millis(87), Nanos::millis(62));
        assert_eq!(estimate.round_trip().mean, Nanos::millis(40));
    }

    #[test]
    fn the_mean_moves_by_an_eighth() {
        let mut trip = RoundTrip { mean: Nanos::millis(80), variance: Nanos::millis(8) };
        trip.sample(Nanos::millis(160));
        assert_eq!(trip, RoundTrip { mean: Nanos::millis(90), variance: Nanos::millis(26) });
    }
}
