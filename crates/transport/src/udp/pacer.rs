//! Paces a sender by the program's own clock, because SO_MAX_PACING_RATE has an effect only with the qdisc fq.

use std::io;
use std::time::{Duration, Instant};

use landspeed_record::units::BitRate;

/// The longest wait before the caller can check whether it must stop.
const LOOK: Duration = Duration::from_millis(50);
/// The largest burst, as a time at the paced rate. One call sends at most the bytes of this time, and after a stall the
/// sender makes up for at most this time. Larger bursts would overrun queues that the rate itself does not overrun.
const BURST: Duration = Duration::from_millis(1);

/// A pacer, which limits the mean rate of sent bytes to a set rate.
#[derive(Debug)]
pub(super) struct DatagramPacer {
    bytes_per_s: f64,
    due: Instant,
}

impl DatagramPacer {
    pub(super) fn new(rate: BitRate) -> Self {
        DatagramPacer { bytes_per_s: rate.0 / 8.0, due: Instant::now() }
    }

    /// Returns how many datagrams of `size` bytes one call may send: at least one.
    pub(super) fn burst(&self, size: usize) -> u64 {
        ((self.bytes_per_s * BURST.as_secs_f64() / size as f64) as u64).max(1)
    }

    /// Waits until the next call is due.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::TimedOut`] if the call is not due after 50 ms, so that the caller can check if it
    /// must stop.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        let now = Instant::now();
        self.due = self.due.max(now - BURST);
        let left = self.due.saturating_duration_since(now);
        std::thread::sleep(left.min(LOOK));
        if left > LOOK { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    pub(super) fn spent(&mut self, bytes: usize) {
        // Limits the pause to an hour, so that it stays a valid duration at very low rates. No flow lasts that long.
        let takes = (bytes as f64 / self.bytes_per_s).clamp(0.0, 3600.0);
        self.due += Duration::from_secs_f64(takes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_takes_at_least_the_time_that_the_rate_asks_for() {
        let begun = Instant::now();
        let mut pacer = DatagramPacer::new(BitRate(8e6));
        for _ in 0..20 {
            pacer.wait().expect("due within a millisecond");
            pacer.spent(1000);
        }
        assert!(begun.elapsed() >= Duration::from_millis(19) - BURST, "{:?}", begun.elapsed());
        assert_eq!((pacer.burst(100), pacer.burst(60_000)), (10, 1));
    }

    #[test]
    fn a_stall_is_not_made_up_for() {
        let mut pacer = DatagramPacer::new(BitRate(8e6));
        std::thread::sleep(Duration::from_millis(20));
        let resumed = Instant::now();
        for _ in 0..10 {
            pacer.wait().expect("due within a millisecond");
            pacer.spent(1000);
        }
        assert!(resumed.elapsed() >= Duration::from_millis(9) - BURST, "{:?}", resumed.elapsed());
    }

    #[test]
    fn a_long_wait_lets_the_caller_look() {
        let mut pacer = DatagramPacer::new(BitRate(8.0));
        pacer.spent(100);
        let error = pacer.wait().expect_err("100 seconds are not over");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
