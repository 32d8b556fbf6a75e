//! Makes the work of an end's threads take longer for a while, to show whether that makes the copy slower.
//!
//! A thread repeats nothing and does not sleep: it uses its processor for a tenth of what its work has used. A sleep would leave the
//! processor to the other threads of the end, and what they share would be as fast as before
//! (docs/decisions/0099-what-holds-a-copy-is-slowed.md).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use landspeed_transport::used_by_thread;

use super::StageTotals;

/// The part by which work takes longer, as its divisor.
const PART: u64 = 10;
/// The longest processor time that is added at once, in nanoseconds.
const MOST: u64 = 100_000_000;

impl StageTotals {
    /// Slows the threads from now on for this time. It ends by itself, so that a controller that falls silent leaves no slow copy.
    pub(crate) fn slow(&self, time: Duration) {
        self.slow_until.store(self.at(Instant::now() + time), Ordering::Relaxed);
    }

    pub(super) fn is_slow(&self, now: Instant) -> bool {
        self.at(now) < self.slow_until.load(Ordering::Relaxed)
    }
}

/// Uses the processor for a tenth of what this thread has used between two readings of its processor time. Returns the time after it.
pub(super) fn prolong(before: u64, now: u64) -> u64 {
    let until = now + (now.saturating_sub(before) / PART).min(MOST);
    let mut used = now;
    while used < until {
        used = used_by_thread().0;
    }
    used
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use landspeed_record::CopyStage;
    use landspeed_record::units::Nanos;

    use super::super::{Pause, settle};
    use super::*;

    const WORK: Nanos = Nanos::millis(50);

    /// Returns the processor time of a thread that works for [`WORK`], twice, and how much of it its stages have.
    fn used(totals: &Arc<StageTotals>) -> [Nanos; 2] {
        let work = || {
            let (begun, life) = (used_by_thread(), totals.begin(CopyStage::Write));
            for _ in 0..2 {
                let end = used_by_thread() + WORK;
                while used_by_thread() < end {}
                settle(Pause::Device);
            }
            drop(life);
            used_by_thread() - begun
        };
        let used = std::thread::scope(|scope| scope.spawn(work).join().expect("no panic"));
        let stage = totals.times().of(CopyStage::Write).processor_ns;
        [used, stage]
    }

    /// Returns the least processor time of several such threads: what a hypervisor takes may count as a thread's.
    fn least(totals: &Arc<StageTotals>) -> Nanos {
        (0..4).map(|_| used(totals)[0]).min().expect("several")
    }

    #[test]
    fn a_slow_thread_uses_a_tenth_more_and_says_so() {
        let totals = Arc::<StageTotals>::default();
        totals.slow(Duration::from_secs(60));
        let [slow, accounted] = used(&totals);
        assert!(slow >= Nanos::millis(110), "{slow}: a tenth of its work");
        assert!(accounted >= Nanos::millis(109), "{accounted}");
        let least = least(&totals).min(slow);
        assert!(least < Nanos::millis(130), "{least}: of its work, and of nothing else");
    }

    #[test]
    fn a_thread_is_slow_for_no_longer_than_it_is_to_be() {
        let totals = Arc::<StageTotals>::default();
        assert!(least(&totals) < Nanos::millis(110));
        totals.slow(Duration::from_secs(60));
        totals.slow(Duration::ZERO);
        assert!(least(&totals) < Nanos::millis(110), "it was taken back");
        totals.slow(Duration::from_nanos(1));
        assert!(least(&totals) < Nanos::millis(110), "it is over");
    }
}
