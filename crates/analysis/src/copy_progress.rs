//! The progress of a copy, from what its ends report about once a second.

use std::collections::VecDeque;

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{CopyCounts, CopyProgressFigures, CopyTimes};

use crate::copy_held;

/// The length of the window of rates, and of what holds the copy.
const WINDOW: Nanos = Nanos::secs(10);

/// Follows a copy. A report may have lower counts than the one before, because a file that changed is sent again, or
/// because a host errs. The counts that were shown do not fall.
#[derive(Debug)]
pub struct CopyFollower {
    /// The reports of the last 10 s, and the newest one before them. There is at least one.
    seen: VecDeque<SeenCopy>,
    last: CopyProgressFigures,
}

/// The counts of a copy at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct SeenCopy {
    at: Nanos,
    moved: Bytes,
    times: CopyTimes,
}

impl Default for CopyFollower {
    fn default() -> Self {
        CopyFollower { seen: [SeenCopy::default()].into(), last: CopyProgressFigures::default() }
    }
}

impl CopyFollower {
    /// Takes a report that arrived at the time `at` since the beginning, and returns the progress.
    pub fn take(&mut self, at: Nanos, counts: CopyCounts, times: CopyTimes) -> CopyProgressFigures {
        let (at, counts) = (at.max(self.last.at_ns), grown(&self.last.counts, counts));
        let now = SeenCopy { at, moved: counts.moved_bytes, times };
        self.seen.push_back(now);
        while self.seen.get(1).is_some_and(|second| at - second.at >= WINDOW) {
            self.seen.pop_front();
        }
        let since = self.seen.front().copied().unwrap_or_default();
        let rate = (now.moved - since.moved).per(at - since.at);
        self.last = CopyProgressFigures {
            at_ns: at,
            counts,
            moved_share: share(&counts).map(|share| share.max(self.last.moved_share.unwrap_or(0.0))),
            rate_bps: rate,
            left_ns: left(&counts, rate),
            held: copy_held(&times.since(&since.times)),
        };
        self.last.clone()
    }
}

/// Returns for each count the larger one of this report and the one before.
fn grown(before: &CopyCounts, now: CopyCounts) -> CopyCounts {
    CopyCounts {
        found: now.found.max(before.found),
        found_bytes: now.found_bytes.max(before.found_bytes),
        is_walked: now.is_walked || before.is_walked,
        settled: now.settled.max(before.settled),
        moved_bytes: now.moved_bytes.max(before.moved_bytes),
        broken_flows: now.broken_flows,
    }
}

/// Returns the share of the bytes that was moved; `None` until all are found, and if there are none.
fn share(counts: &CopyCounts) -> Option<f64> {
    let is_known = counts.is_walked && counts.found_bytes > Bytes(0);
    is_known.then(|| (counts.moved_bytes.0 as f64 / counts.found_bytes.0 as f64).min(1.0))
}

/// Returns the time that the rest takes; `None` until all bytes are found, and at less than a byte a second.
fn left(counts: &CopyCounts, rate: BitRate) -> Option<Nanos> {
    let rest = (counts.found_bytes - counts.moved_bytes).0 as f64 * 8.0;
    (counts.is_walked && rate.0 >= 8.0).then(|| Nanos((rest / rate.0 * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use landspeed_record::{CopyHold, CopyStage};
    use proptest::prelude::*;

    use super::*;

    fn counts(found: u64, moved: u64, is_walked: bool) -> CopyCounts {
        let (found_bytes, moved_bytes) = (Bytes::mib(found), Bytes::mib(moved));
        CopyCounts { found: 9, found_bytes, is_walked, settled: 3, moved_bytes, broken_flows: 0 }
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds_and_the_time_left_waits_for_the_walk() {
        let mut follower = CopyFollower::default();
        let mut take = |second, counts| follower.take(Nanos::secs(second), counts, CopyTimes::default());
        let walking = take(2, counts(100, 20, false));
        assert_eq!((walking.rate_bps, walking.left_ns), (Bytes::mib(10).per(Nanos::secs(1)), None));
        assert_eq!(walking.moved_share, None);
        for second in 3..30 {
            take(second, counts(400, 20, false));
        }
        // Nothing has moved for over 10 s.
        assert_eq!(take(30, counts(400, 20, true)).left_ns, None);
        let walked = take(31, counts(400, 120, true));
        assert_eq!(walked.rate_bps, Bytes::mib(10).per(Nanos::secs(1)));
        assert_eq!((walked.left_ns, walked.moved_share), (Some(Nanos::secs(28)), Some(0.3)));
    }

    #[test]
    fn a_file_that_is_sent_again_takes_nothing_back() {
        let mut follower = CopyFollower::default();
        let mut take = |second, moved| {
            follower.take(Nanos::secs(second), counts(100, moved, true), CopyTimes::default())
        };
        take(1, 50);
        let again = take(2, 20);
        assert_eq!((again.counts.moved_bytes, again.moved_share), (Bytes::mib(50), Some(0.5)));
        assert_eq!(take(3, 60).counts.moved_bytes, Bytes::mib(60));
    }

    /// The first half of a copy does not show what holds it now.
    #[test]
    fn the_bottleneck_of_a_copy_is_that_of_the_last_seconds() {
        let (mut follower, mut times) = (CopyFollower::default(), CopyTimes::default());
        let mut after = |seconds: std::ops::Range<u64>, is_disk: bool| {
            let mut progress = CopyProgressFigures::default();
            for second in seconds {
                let write = times.target.of_mut(CopyStage::Write);
                let spent = if is_disk { &mut write.device_ns } else { &mut write.processor_ns };
                *spent += Nanos::secs(1);
                progress = follower.take(Nanos::secs(second), CopyCounts::default(), times);
            }
            progress.held.by.iter().map(|by| (by.hold, (by.share * 100.0).round())).collect::<Vec<_>>()
        };
        assert_eq!(after(1..2, true), [(CopyHold::TargetDisk, 100.0)]);
        assert_eq!(after(2..32, false), [(CopyHold::TargetProcessor, 100.0)]);
    }

    proptest! {
        /// The ends may report any counts, in any order.
        #[test]
        fn time_bytes_entries_and_share_never_fall(
            reports in proptest::collection::vec(
                (0u64..40_000_000_000, any::<[u64; 4]>(), any::<bool>(), 0u32..4), 1..40
            ),
        ) {
            let mut follower = CopyFollower::default();
            let mut last = CopyProgressFigures::default();
            for (at, [found, found_bytes, settled, moved_bytes], is_walked, broken_flows) in reports {
                let (found_bytes, moved_bytes) = (Bytes(found_bytes), Bytes(moved_bytes));
                let counts = CopyCounts { found, found_bytes, is_walked, settled, moved_bytes, broken_flows };
                let now = follower.take(Nanos(at), counts, CopyTimes::default());
                let (before, after) = (last.counts, now.counts);
                prop_assert!(now.at_ns >= last.at_ns && now.at_ns >= Nanos(at));
                prop_assert!(after.found >= before.found && after.found_bytes >= before.found_bytes);
                prop_assert!(after.settled >= before.settled && after.moved_bytes >= before.moved_bytes);
                prop_assert!(after.is_walked || !before.is_walked);
                prop_assert!(now.moved_share >= last.moved_share, "{last:?} {now:?}");
                prop_assert!(now.moved_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
                prop_assert!(after.is_walked || (now.moved_share.is_none() && now.left_ns.is_none()));
                prop_assert!(now.rate_bps.0 >= 0.0 && now.rate_bps.0.is_finite());
                last = now;
            }
        }
    }
}
