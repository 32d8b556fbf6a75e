//! Lets bytes pass at a rate.

use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A gate that all threads share, as those of a disk do.
#[derive(Debug)]
pub(super) struct Pace {
    /// `None` for as fast as it goes.
    bytes_per_second: Option<u64>,
    /// When all bytes so far have passed.
    free_at: Mutex<Option<Instant>>,
}

impl Pace {
    pub(super) fn new(bytes_per_second: Option<u64>) -> Pace {
        Pace { bytes_per_second, free_at: Mutex::default() }
    }

    /// Waits until these bytes have passed, after those of other threads that came before.
    pub(super) fn pass(&self, bytes: u64) {
        if let Some(time) = self.time(Instant::now(), bytes) {
            thread::sleep(time);
        }
    }

    /// Returns the time until these bytes have passed.
    fn time(&self, now: Instant, bytes: u64) -> Option<Duration> {
        let own = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second? as f64);
        let mut free_at = self.free_at.lock();
        let done = free_at.map_or(now, |at| at.max(now)) + own;
        *free_at = Some(done);
        Some(done - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_one_after_the_other_and_no_rate_is_saved_up() {
        let (pace, now) = (Pace::new(Some(1_000)), Instant::now());
        let seconds = Duration::from_secs;
        assert_eq!(pace.time(now, 1_000), Some(seconds(1)));
        assert_eq!(pace.time(now, 2_000), Some(seconds(3)));
        assert_eq!(pace.time(now + seconds(10), 1_000), Some(seconds(1)));
        assert_eq!(Pace::new(None).time(now, 1_000), None);
    }
}
