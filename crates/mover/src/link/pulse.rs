//! The time at which the other end was heard last.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time since the other end of a link was heard.
#[derive(Debug)]
pub(crate) struct Pulse {
    begun: Instant,
    /// When it was heard, or this end began to listen, in milliseconds.
    last_ms: AtomicU64,
    is_listening: AtomicBool,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Pulse { begun: Instant::now(), last_ms: AtomicU64::new(0), is_listening: AtomicBool::new(false) }
    }

    /// The other end was heard.
    pub(super) fn touch(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }

    /// Calls `wait`, which waits for bytes of the other end. Only time in `wait` counts as silence of the other end:
    /// this end may have been busy before.
    pub(crate) fn listen<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.touch();
        self.is_listening.store(true, Ordering::Release);
        let heard = wait();
        self.is_listening.store(false, Ordering::Release);
        heard
    }

    /// Returns how long this end has listened without hearing anything; zero if it does not listen.
    pub(crate) fn silence(&self) -> Duration {
        if self.is_listening.load(Ordering::Acquire) { self.since() } else { Duration::ZERO }
    }

    /// Returns the time since the other end was heard, or since this end began to listen.
    pub(super) fn since(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.last_ms.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_silent_only_while_the_other_one_listens() {
        let pulse = Pulse::new();
        let pause = Duration::from_millis(20);
        std::thread::sleep(pause);
        assert_eq!(pulse.silence(), Duration::ZERO);
        assert!(pulse.since() >= pause);
        let silence = pulse.listen(|| {
            std::thread::sleep(pause);
            pulse.silence()
        });
        // The clock of the pulse has milliseconds.
        assert!(silence + Duration::from_millis(2) >= pause, "{silence:?}");
        assert_eq!(pulse.silence(), Duration::ZERO);
    }
}
