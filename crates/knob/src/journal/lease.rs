//! The lease: the time that the guardian waits for a heartbeat or a write of its agent before it restores everything.

use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;

/// Lease of a run whose controller sends heartbeats every second.
pub(super) const DEFAULT: Nanos = Nanos::secs(5);
/// Shortest lease; a shorter one is raised to this. On a busy machine processes run late, and a lease below this could
/// end although its agent is alive.
const LEAST: Duration = Duration::from_millis(100);
/// Longest lease; a longer one is lowered to this, so that a lost controller is noticed within the hour.
const MOST: Duration = Duration::from_secs(3600);

/// A lease. Heartbeats and writes renew it. It is shortened for a write that can cut the path to the controller, and
/// extended by the time that a write takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    normal: Duration,
    short: Option<Duration>,
    /// Extra time for the write in progress or, after it, for the path to recover.
    more: Duration,
    /// True while a write is announced or in progress. A heartbeat during that time does not show that the path works
    /// after the write.
    untried: bool,
    renewed: Instant,
}

impl Lease {
    pub(super) fn new(length: Nanos, now: Instant) -> Lease {
        Lease { normal: bounded(length), short: None, more: Duration::ZERO, untried: false, renewed: now }
    }

    /// Renews the lease, and ends a short lease unless its write is not finished yet. A heartbeat comes from the
    /// controller, so it shows that the path works.
    pub(super) fn heartbeat(&mut self, now: Instant) {
        if !self.untried {
            (self.short, self.more) = (None, Duration::ZERO);
        }
        self.renewed = now;
    }

    /// Renews the lease and extends it by `patience` for a write. The agent writes on request, so its controller was
    /// alive shortly before.
    pub(super) fn begin_write(&mut self, patience: Nanos, now: Instant) {
        (self.untried, self.more, self.renewed) = (true, patience.into(), now);
    }

    /// Renews the lease after a write, or its refusal, and adds the time that the knob takes to settle. A short lease
    /// stays in force until a heartbeat shows that the controller still reaches the agent.
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
    fn a_write_has_its_time_and_its_heartbeats_do_not_shorten_the_later_lease() {
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
