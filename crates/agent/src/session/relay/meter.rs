//! The cost of relaying for the thread of a session.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use landspeed_record::units::Nanos;
use landspeed_transport::used_by_thread;

/// Measures the cost of relaying for a session's thread, from its first relayed frame on.
#[derive(Debug, Default)]
pub(crate) struct RelayMeter {
    processor: AtomicU64,
    handing: AtomicU64,
    /// The thread's processor time at the last reading; zero before the first one.
    read: AtomicU64,
}

impl RelayMeter {
    /// Records that the session's thread has written a frame that it began to write at `begun`. The thread itself must
    /// call this.
    pub(crate) fn handed(&self, begun: Instant) {
        let used = used_by_thread().0;
        let before = self.read.swap(used, Ordering::Relaxed);
        // The thread's work before the first frame, such as the login, does not count.
        let more = if before == 0 { 0 } else { used.saturating_sub(before) };
        self.processor.fetch_add(more, Ordering::Relaxed);
        self.handing.fetch_add(Nanos::from(begun.elapsed()).0, Ordering::Relaxed);
    }

    pub(super) fn spent(&self) -> RelaySpent {
        let [processor, handing] =
            [&self.processor, &self.handing].map(|spent| Nanos(spent.load(Ordering::Relaxed)));
        RelaySpent { processor, handing }
    }
}

/// The cost of relaying for one session's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RelaySpent {
    /// Processor time of the thread.
    pub processor: Nanos,
    /// Time of the thread's writes, which wait while the agent reads no faster.
    pub handing: Nanos,
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(20);

    fn spin() {
        let until = used_by_thread() + Nanos::from(PAUSE);
        while used_by_thread() < until {}
    }

    #[test]
    fn a_meter_counts_from_the_first_frame() {
        let meter = RelayMeter::default();
        spin();
        meter.handed(Instant::now());
        assert!(meter.spent().processor.0 == 0, "{:?}", meter.spent());
        let begun = Instant::now();
        sleep(PAUSE);
        spin();
        meter.handed(begun);
        let spent = meter.spent();
        assert!(spent.processor >= Nanos::from(PAUSE), "{spent:?}");
        assert!(spent.handing >= Nanos::from(2 * PAUSE), "{spent:?}");
    }
}
