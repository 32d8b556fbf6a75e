//! The progress of a copy in its last seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use landspeed_record::CopyCounts;
use landspeed_record::units::{BitRate, Bytes, Nanos};

/// The shortest time over which a rate is computed. In the first seconds, the flows' windows still grow.
const RATE_OVER: Duration = Duration::from_secs(5);
/// The number of counts that are kept. One arrives per second.
const MOST: usize = 10;

/// The counts of the last seconds, oldest first.
#[derive(Debug, Default)]
pub(super) struct SeenCounts(VecDeque<(Instant, CopyCounts)>);

impl SeenCounts {
    pub(super) fn take(&mut self, counts: CopyCounts) {
        self.take_at(Instant::now(), counts);
    }

    fn take_at(&mut self, at: Instant, counts: CopyCounts) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((at, counts));
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Returns true if the target has received any data.
    pub(super) fn has_moved(&self) -> bool {
        self.0.back().is_some_and(|(_, counts)| counts.moved_bytes > Bytes(0))
    }

    pub(super) fn is_walked(&self) -> bool {
        self.0.back().is_some_and(|(_, counts)| counts.is_walked)
    }

    /// Returns the bytes left of the files found so far, and the rate. Returns `None` in the first seconds, and if a
    /// flow is broken.
    pub(super) fn left_and_rate(&self) -> Option<(Bytes, BitRate)> {
        let ((begun, first), (now, last)) = (self.0.front()?, self.0.back()?);
        let time = now.saturating_duration_since(*begun);
        if time < RATE_OVER || last.broken_flows > 0 {
            return None;
        }
        let rate = (last.moved_bytes - first.moved_bytes).per(Nanos::from(time));
        Some((last.found_bytes - last.moved_bytes, rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let (mut seen, begun) = (SeenCounts::default(), Instant::now());
        let counts = |moved, broken_flows| CopyCounts {
            moved_bytes: Bytes(moved),
            found_bytes: Bytes(100_000),
            broken_flows,
            ..CopyCounts::default()
        };
        seen.take_at(begun, counts(0, 0));
        assert!(!seen.has_moved());
        for second in 1..=20_u64 {
            // The rate is low at first.
            let moved = if second < 10 { second } else { 1_000 * (second - 10) };
            seen.take_at(begun + Duration::from_secs(second), counts(moved, 0));
            assert_eq!(seen.left_and_rate().is_some(), second >= 5);
        }
        let (left, rate) = seen.left_and_rate().expect("a rate");
        assert_eq!((left, rate), (Bytes(90_000), BitRate(8_000.0)));
        assert!(seen.has_moved() && !seen.is_walked());
        seen.take_at(begun + Duration::from_secs(21), counts(11_000, 1));
        assert_eq!(seen.left_and_rate(), None, "a flow is broken");
        seen.forget();
        assert_eq!(seen.left_and_rate(), None);
    }
}
