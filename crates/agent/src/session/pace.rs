//! How long to wait for a host, which follows from how long the host has taken so far.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use landspeed_record::units::Nanos;

/// A wait may take this many times the longest one that the host has ended so far.
const TIMES: u64 = 4;
/// A limit is at most this many times its least value, so that a host that hangs after a slow login is noticed.
const MOST: u64 = 8;

/// The pace of one host: the longest time that it has taken for an answer, in nanoseconds. A busy host, a slow one and
/// a long path look alike. All clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostPace(Arc<AtomicU64>);

impl HostPace {
    /// Notes that the host has ended a wait of this length.
    pub(crate) fn took(&self, time: Duration) {
        self.0.fetch_max(Nanos::from(time).0, Ordering::Relaxed);
    }

    /// Returns the time limit of the next wait: `least`, or more if the host has been slow so far.
    pub(crate) fn limit(&self, least: Nanos) -> Nanos {
        let longest = Nanos(self.0.load(Ordering::Relaxed));
        longest.times(TIMES).clamp(least, least.times(MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_follows_the_longest_answer_and_is_never_below_its_least_value() {
        let pace = HostPace::default();
        assert_eq!(pace.limit(Nanos::secs(30)), Nanos::secs(30));
        for (took, limits) in [(1, [5, 30]), (20, [40, 80]), (2, [40, 80]), (1_000, [40, 240])] {
            pace.clone().took(Duration::from_secs(took));
            let found = [5, 30].map(|least| pace.limit(Nanos::secs(least)));
            assert_eq!(found, limits.map(Nanos::secs), "{took} s");
        }
        assert_eq!(pace.limit(Nanos(0)), Nanos(0));
        assert_eq!(pace.limit(Nanos(u64::MAX)), Nanos(u64::MAX));
    }
}
