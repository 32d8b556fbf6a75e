//! How long the guardian waits for a sign of life.

use std::time::{Duration, Instant};

use landspeed_units::Nanos;

/// The lease of a run whose controller sends heartbeats every second.
pub(super) const DEFAULT: Nanos = Nanos::secs(5);
/// No lease is shorter: a busy machine schedules late.
const LEAST: Duration = Duration::from_millis(100);
/// Nor longer, so that a lost controller is noticed the same hour.
const MOST: Duration = Duration::from_secs(3600);

/// A lease: renewed by heartbeats and turns, shortened for turns that can cut the path, and longer for what a turn takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    normal: Duration,
    short: Option<Duration>,
    /// What the write that is under way may take, or what the path may take to come back after it.
    more: Duration,
    /// Whether a write is announced or under way: no heartbeat that comes now has seen what it does to the path.
    untried: bool,
    renewed: Instant,
}

impl Lease {
    pub(super) fn new(length: Nanos, now: Instant) -> Lease {
        Lease { normal: bounded(length), short: None, more: Duration::ZERO, untried: false, renewed: now }
    }

    /// A heartbeat came all the way from the controller: the path is not cut.
    pub(super) fn heartbeat(&mut self, now: Instant) {
        if !self.untried {
            (self.short, self.more) = (None, Duration::ZERO);
        }
        self.renewed = now;
    }

    /// The agent acts on a request, so its controller lived a moment ago: it may write, for as long as `patience`.
    pub(super) fn begin_write(&mut self, patience: Nanos, now: Instant) {
        (self.untried, self.more, self.renewed) = (true, patience.into(), now);
    }

    /// The write is over, or was refused. Whether the controller still reaches us after it is what a short lease is
    /// to find out, so that one stays, and the path has the time that the knob takes to settle.
    pub(super) fn end_write(&mut self, settle: Nanos, now: Instant) {
        (self.untried, self.more, self.renewed) = (false, settle.into(), now);
    }

    pub(super) fn shorten(&mut self, length: Nanos, now: Instant) {
        (self.short, self.untried, self.renewed) = (Some(bounded(length)), true, now);
    }

    pub(super) fn left(&self, now: Instant) -> Duration {
        let length = self.short.unwrap_or(self.normal).min(self.normal);
        (self.renewed + length + self.more).saturating_duration_since(now)
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
        lease.end_write(Nanos(0), at(3));
        assert_eq!(lease.left(at(3)), Duration::from_secs(1));
        lease.heartbeat(at(3));
        assert_eq!(lease.left(at(3)), Duration::from_secs(5));
        assert_eq!(lease.left(at(60)), Duration::ZERO);
    }

    #[test]
    fn a_write_has_its_time_and_what_is_heard_meanwhile_says_nothing_of_the_path_after_it() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut lease = Lease::new(Nanos::secs(5), start);
        lease.shorten(Nanos::secs(1), start);
        lease.heartbeat(start);
        assert_eq!(lease.left(start), Duration::from_secs(1));
        lease.begin_write(Nanos::secs(16), start);
        assert_eq!(lease.left(start), Duration::from_secs(17));
        lease.heartbeat(at(2));
        assert_eq!(lease.left(at(2)), Duration::from_secs(17));
        lease.end_write(Nanos::secs(4), at(6));
        assert_eq!(lease.left(at(6)), Duration::from_secs(5));
        lease.heartbeat(at(7));
        assert_eq!(lease.left(at(7)), Duration::from_secs(5));
        lease.begin_write(Nanos::secs(16), at(8));
        lease.end_write(Nanos(0), at(9));
        assert_eq!(lease.left(at(9)), Duration::from_secs(5));
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
