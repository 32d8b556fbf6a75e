//! A point in time that one thread records and another reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A point in time that threads set and read without a lock. It may be unset.
pub(crate) struct AtomicMoment {
    origin: Instant,
    /// Nanoseconds since `origin`; zero while no time is set.
    at: AtomicU64,
}

impl AtomicMoment {
    pub(crate) fn none() -> Self {
        AtomicMoment { origin: Instant::now(), at: AtomicU64::new(0) }
    }

    pub(crate) fn set(&self, moment: Option<Instant>) {
        self.at.store(moment.map_or(0, |moment| self.nanos(moment)), Ordering::SeqCst);
    }

    /// Stores the current time, unless a time is already set. If one is set, the call costs one atomic load.
    pub(crate) fn note(&self) {
        if self.at.load(Ordering::Relaxed) == 0 {
            let now = self.nanos(Instant::now());
            // Another thread may have been first.
            let _ = self.at.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Option<Instant> {
        let at = self.at.load(Ordering::SeqCst);
        (at > 0).then(|| self.origin + Duration::from_nanos(at))
    }

    fn nanos(&self, moment: Instant) -> u64 {
        moment.saturating_duration_since(self.origin).as_nanos().max(1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_moment_is_kept_until_another_is_set() {
        let moment = AtomicMoment::none();
        assert_eq!(moment.get(), None);
        moment.note();
        let first = moment.get();
        assert!(first.is_some_and(|first| first <= Instant::now()));
        std::thread::sleep(Duration::from_millis(1));
        moment.note();
        assert_eq!(moment.get(), first);
        moment.set(None);
        assert_eq!(moment.get(), None);
    }
}
