//! The largest rate at which content is sent, over all flows.

use std::time::{Duration, Instant};

use landspeed_record::units::BitRate;
use parking_lot::Mutex;

use crate::stage::{self, Pause};

/// The credit of a pause: the bytes of this time may be sent at once.
const CREDIT: Duration = Duration::from_millis(100);
/// The interval at which a waiting thread checks whether the copy is over.
const LOOK: Duration = Duration::from_millis(20);
/// The lowest rate. A flow may have to wait for as long as a piece takes.
const LOWEST_BYTES_PER_S: f64 = 1.0;

/// A token bucket that all flows share. It is stored as the time at which it has tokens again.
#[derive(Debug)]
pub(super) struct Pace {
    /// `None` if there is no limit.
    bytes_per_s: Option<f64>,
    free_at: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new(limit: Option<BitRate>) -> Self {
        let bytes_per_s = limit.map(|limit| (limit.0 / 8.0).max(LOWEST_BYTES_PER_S));
        Pace { bytes_per_s, free_at: Mutex::new(Instant::now()) }
    }

    /// Waits until this number of bytes may be sent, or until `is_over`. A message without content does not wait.
    pub(super) fn wait(&self, bytes: usize, is_over: &dyn Fn() -> bool) {
        let Some(bytes_per_s) = self.bytes_per_s.filter(|_| bytes > 0) else { return };
        let at = self.taken(bytes, bytes_per_s, Instant::now());
        let left = || at.saturating_duration_since(Instant::now());
        stage::wait(Pause::Limit, || {
            while !left().is_zero() && !is_over() {
                std::thread::sleep(left().min(LOOK));
            }
        });
    }

    /// Takes the tokens for this number of bytes. Returns when the bytes may be sent.
    fn taken(&self, bytes: usize, bytes_per_s: f64, now: Instant) -> Instant {
        let mut free_at = self.free_at.lock();
        let begin = now.checked_sub(CREDIT).map_or(*free_at, |earliest| earliest.max(*free_at));
        *free_at = begin + Duration::from_secs_f64(bytes as f64 / bytes_per_s);
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_sent_at_the_rate_over_any_number_of_flows() {
        let pace = Pace::new(Some(BitRate(8e6)));
        let begun = *pace.free_at.lock();
        let taken = |bytes, after| pace.taken(bytes, 1e6, begun + Duration::from_millis(after)) - begun;
        assert_eq!(taken(500_000, 0), Duration::ZERO);
        assert_eq!(taken(500_000, 0), Duration::from_millis(500));
        assert_eq!(taken(1, 100), Duration::from_millis(1_000));
        // After a pause, no more than the credit is sent at once.
        assert_eq!(taken(100_000, 10_000), Duration::from_millis(9_900));
        assert_eq!(taken(100_000, 10_000), Duration::from_millis(10_000));
        assert_eq!(taken(1, 10_000), Duration::from_millis(10_100));
    }

    #[test]
    fn without_a_limit_and_after_the_end_no_flow_waits() {
        let begun = Instant::now();
        Pace::new(None).wait(usize::MAX, &|| false);
        Pace::new(Some(BitRate(0.0))).wait(0, &|| panic!("it waits"));
        let slow = Pace::new(Some(BitRate(0.0)));
        slow.wait(1 << 20, &|| false);
        slow.wait(1 << 20, &|| true);
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
