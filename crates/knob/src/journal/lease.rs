//! How long the guardian waits for a sign of life.

use std::time::{Duration, Instant};

use landspeed_units::Nanos;

/// The lease of a run whose controller sends heartbeats every second.
pub(super) const DEFAULT: Nanos = Nanos::secs(5);
/// No lease is shorter: a busy machine schedules late.
const LEAST: Duration = Duration::from_millis(100);
/// Nor longer, so that a lost controller is noticed the same hour.
const MOST: Duration = Duration::from_secs(3600);

/// A lease: renewed by heartbeats and turns, shortened for turns that can cut the path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    normal: Duration,
    short: Option<Duration>,
    renewed: Instant,
}

impl Lease {
    pub(super) fn new(length: Nanos, now: Instant) -> Lease {
        Lease { normal: bounded(length), short: None, renewed: now }
    }

    /// A heartbeat came all the way from the controller: the path is not cut.
    pub(super) fn heartbeat(&mut self, now: Instant) {
        self.short = None;
        self.renewed = now;
    }

    /// The agent acts on a request, so its controller lived a moment ago; whether it still reaches us after
    /// this very turn is what a short lease is to find out, so that one stays.
    pub(super) fn acted(&mut self, now: Instant) {
        self.renewed = now;
    }

    pub(super) fn shorten(&mut self, length: Nanos, now: Instant) {
        self.short = Some(bounded(length));
        self.renewed = now;
    }

    /// How much of it is left.
    pub(super) fn left(&self, now: Instant) -> Duration {
        let length = self.short.unwrap_or(self.normal).min(self.normal);
        (self.renewed + length).saturating_duration_since(now)
    }
}

fn bounded(length: Nanos) -> Duration {
    Duration::from(length).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_heartbeat_ends_a_short_lease() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut lease = Lease::new(Nanos::secs(5), start);
        assert_eq!(lease.left(at(2)), Duration::from_secs(3));
        lease.shorten(Nanos::secs(1), at(2));
        lease.acted(at(3));
        assert_eq!(lease.left(at(3)), Duration::from_secs(1));
        lease.heartbeat(at(3));
        assert_eq!(lease.left(at(3)), Duration::from_secs(5));
        assert_eq!(lease.left(at(60)), Duration::ZERO);
    }

    #[test]
    fn a_short_lease_is_never_longer() {
        let now = Instant::now();
        let mut lease = Lease::new(Nanos::secs(5), now);
        lease.shorten(Nanos::secs(60), now);
        assert_eq!(lease.left(now), Duration::from_secs(5));
        assert!(Lease::new(Nanos(0), now).left(now) >= LEAST);
    }
}
