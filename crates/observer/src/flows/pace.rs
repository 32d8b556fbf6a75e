//! How often all sockets of a host may be listed.

use std::time::{Duration, Instant};

/// A list may take one part in this many of the time.
const SHARE: u32 = 20;

/// Keeps a costly look at a small share of the time, whatever it costs on this host.
#[derive(Debug)]
pub(super) struct Pace {
    next: Instant,
}

impl Pace {
    /// The first look was just taken and took so long.
    pub(super) fn after(now: Instant, took: Duration) -> Self {
        Pace { next: now + took * SHARE }
    }

    /// Whether it is time for another.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_costs_more_comes_less_often() {
        let start = Instant::now();
        let pace = Pace::after(start, Duration::from_millis(10));
        assert!(!pace.is_due(start + Duration::from_millis(199)));
        assert!(pace.is_due(start + Duration::from_millis(200)));
        assert!(Pace::after(start, Duration::ZERO).is_due(start));
    }
}
