//! Counts how late frames left, without a lock. The counting thread has real-time priority, and must never wait for a
//! reader.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use landspeed_record::units::Nanos;

/// Binary logarithm of the number of buckets for each power of two. With 16 buckets, values are exact to 1/16.
const STEPS_LOG2: u32 = 4;
const STEPS: usize = 1 << STEPS_LOG2;
const BUCKETS: usize = (64 - STEPS_LOG2 as usize + 1) * STEPS;

/// A histogram of times, in nanoseconds: one bucket for each of the first 16 ns, then 16 buckets for each power of two.
#[derive(Debug)]
pub(super) struct LatenessHistogram {
    counts: Box<[AtomicU64]>,
    most: AtomicU64,
}

impl Default for LatenessHistogram {
    fn default() -> Self {
        LatenessHistogram {
            counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            most: AtomicU64::new(0),
        }
    }
}

impl LatenessHistogram {
    pub(super) fn add(&self, late: Nanos, frames: u64) {
        self.counts[bucket(late.0)].fetch_add(frames, Relaxed);
        self.most.fetch_max(late.0, Relaxed);
    }

    /// Returns the current counts.
    pub(super) fn read(&self) -> LatenessCounts {
        let counts = self.counts.iter().map(|count| count.load(Relaxed)).collect();
        LatenessCounts { counts, most: self.most.load(Relaxed) }
    }
}

/// The counts of a [`LatenessHistogram`] at one point in time, or between two points.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LatenessCounts {
    /// Counts by bucket; empty before the first reading.
    counts: Vec<u64>,
    most: u64,
}

impl LatenessCounts {
    /// Returns the counts since `earlier`. The largest value is rounded up to its bucket's end, because the histogram's
    /// exact maximum may be older than `earlier`.
    pub(super) fn since(&self, earlier: &LatenessCounts) -> LatenessCounts {
        let before = earlier.counts.iter().copied().chain(std::iter::repeat(0));
        let counts: Vec<u64> =
            self.counts.iter().zip(before).map(|(now, then)| now.saturating_sub(then)).collect();
        let worst = counts.iter().rposition(|count| *count > 0).map_or(0, upper);
        LatenessCounts { counts, most: worst.min(self.most) }
    }

    /// Returns the lateness that the share `share` of the frames (0 to 1) did not exceed, rounded up to its bucket's
    /// end; `None` if there were no frames.
    pub(super) fn quantile(&self, share: f64) -> Option<Nanos> {
        let total: u64 = self.counts.iter().sum();
        let rank = (share * total as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        found.map(|bucket| Nanos(upper(bucket).min(self.most)))
    }

    /// Returns the largest lateness.
    pub(super) fn most(&self) -> Nanos {
        Nanos(self.most)
    }
}

fn bucket(value: u64) -> usize {
    let power = (value | STEPS as u64).ilog2() - STEPS_LOG2;
    power as usize * STEPS + (value >> power) as usize
}

/// Returns the largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    if bucket < 2 * STEPS {
        return bucket as u64;
    }
    let power = bucket / STEPS - 1;
    // Computed in u128, because the last bucket ends at 2^64.
    let end = ((bucket % STEPS + STEPS + 1) as u128) << power;
    u64::try_from(end - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bucket_holds_what_is_put_there(value in prop_oneof![0..5000_u64, any::<u64>()]) {
            let n = bucket(value);
            prop_assert!(n < BUCKETS && value <= upper(n));
            prop_assert!(n == 0 || value > upper(n - 1));
            prop_assert!(upper(n) - value <= value / STEPS as u64);
        }
    }

    #[test]
    fn quantiles_are_of_frames() {
        let late = LatenessHistogram::default();
        assert_eq!(late.read().quantile(0.5), None);
        late.add(Nanos(10), 98);
        late.add(Nanos::micros(100), 2);
        let late = late.read();
        assert_eq!(late.quantile(0.5), Some(Nanos(10)));
        assert_eq!(late.quantile(0.98), Some(Nanos(10)));
        assert_eq!(late.quantile(0.99), Some(Nanos::micros(100)));
        assert_eq!(late.most(), Nanos::micros(100));
    }

    #[test]
    fn a_run_has_only_its_own_lateness() {
        let late = LatenessHistogram::default();
        late.add(Nanos::millis(50), 1000);
        let before = late.read();
        assert_eq!(
            before.since(&LatenessCounts::default()),
            before.since(&LatenessHistogram::default().read())
        );
        assert_eq!(before.since(&before).quantile(0.5), None);
        late.add(Nanos(12), 10);
        let run = late.read().since(&before);
        assert_eq!((run.quantile(0.99), run.most()), (Some(Nanos(12)), Nanos(12)));
    }
}
