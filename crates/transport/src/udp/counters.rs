//! What both halves of a flow count, readable while they work.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use landspeed_units::Bytes;

use crate::Datagrams;

/// Counts of a flow. Each half's are alone on their cache lines: one thread writes, others read now and
/// then.
#[derive(Debug)]
pub(super) struct Counters {
    /// Times are counted from here.
    origin: Instant,
    sent: Alone<AtomicU64>,
    arrivals: Alone<Published>,
    malformed: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

/// What a receiver counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Arrivals {
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    pub(super) highest: u64,
    pub(super) reordered: u64,
    pub(super) duplicated: u64,
    /// Nanoseconds since the flow's origin; zero while nothing came.
    pub(super) first: u64,
    /// Likewise.
    pub(super) last: u64,
}

/// Arrivals under a version that is odd while they are written (a sequence lock), so that a reader never
/// sees counts of one moment with the time of another.
#[derive(Debug, Default)]
struct Published {
    version: AtomicU64,
    values: [AtomicU64; 7],
}

impl Published {
    /// Called by one thread only.
    fn write(&self, a: &Arrivals) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let now = [a.received, a.received_bytes, a.highest, a.reordered, a.duplicated, a.first, a.last];
        for (value, now) in self.values.iter().zip(now) {
            value.store(now, Ordering::Relaxed);
        }
        self.version.store(version + 2, Ordering::Release);
    }

    fn read(&self) -> Arrivals {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let [received, received_bytes, highest, reordered, duplicated, first, last] =
                std::array::from_fn(|at| self.values[at].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version {
                return Arrivals { received, received_bytes, highest, reordered, duplicated, first, last };
            }
            // The writer may have lost its core in between.
            std::thread::yield_now();
        }
    }
}

impl Counters {
    pub(super) fn new() -> Self {
        Counters {
            origin: Instant::now(),
            sent: Alone::default(),
            arrivals: Alone::default(),
            malformed: AtomicU64::new(0),
        }
    }

    /// Nanoseconds since the origin, never zero.
    pub(super) fn at(&self, time: Instant) -> u64 {
        (time.saturating_duration_since(self.origin).as_nanos() as u64).max(1)
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.0.load(Ordering::Relaxed)
    }

    /// Called by the sender only.
    pub(super) fn set_sent(&self, sent: u64) {
        self.sent.0.store(sent, Ordering::Relaxed);
    }

    /// Called by the receiver only.
    pub(super) fn publish(&self, arrivals: &Arrivals) {
        self.arrivals.0.write(arrivals);
    }

    pub(super) fn arrivals(&self) -> Arrivals {
        self.arrivals.0.read()
    }

    /// The highest number that came.
    pub(super) fn highest(&self) -> u64 {
        self.arrivals.0.values[2].load(Ordering::Relaxed)
    }

    pub(super) fn count_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn datagrams(&self) -> Datagrams {
        let arrivals = self.arrivals();
        let time = |at: u64| (at > 0).then(|| self.origin + Duration::from_nanos(at));
        Datagrams {
            sent: self.sent(),
            received: arrivals.received,
            received_bytes: Bytes(arrivals.received_bytes),
            highest: arrivals.highest,
            reordered: arrivals.reordered,
            duplicated: arrivals.duplicated,
            malformed: self.malformed.load(Ordering::Relaxed),
            first: time(arrivals.first),
            last: time(arrivals.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_counts_of_one_moment() {
        let counters = Counters::new();
        let of = |n: u64| Arrivals {
            received: n,
            received_bytes: n,
            highest: n,
            reordered: n,
            duplicated: n,
            first: n,
            last: n,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=100_000).for_each(|n| counters.publish(&of(n))));
            loop {
                let seen = counters.arrivals();
                assert_eq!(seen, of(seen.received));
                if seen.received == 100_000 {
                    break;
                }
            }
        });
    }
}
