//! What the thread of a session does to relay.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use landspeed_record::units::Nanos;
use landspeed_transport::used_by_thread;

/// What the thread of a session has spent since the first frame that it relayed.
#[derive(Debug, Default)]
pub(crate) struct RelayMeter {
    processor: AtomicU64,
    handing: AtomicU64,
    /// The thread's processor time when it was read last; zero before.
    read: AtomicU64,
}

impl RelayMeter {
    /// The session has taken a frame that it was handed at `begun`. The thread of the session calls this.
    pub(crate) fn handed(&self, begun: Instant) {
        let used = used_by_thread().0;
        let before = self.read.swap(used, Ordering::Relaxed);
        // What came before the first frame was another's work, such as the login.
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

/// What the thread of one session has spent on a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RelaySpent {
    /// Its processor time.
    pub processor: Nanos,
    /// Time until the session had taken what it was handed.
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
    fn a_thread_spends_what_it_uses_after_its_first_frame() {
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
