//! The marks at which the receiving worker of a sweep records the time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::SweepPoint;
use landspeed_record::units::{Bytes, Nanos};

use super::SweepPart;

/// Two marks on the worker's byte count. The worker records the times at which its count leaves `start` and reaches
/// `end`. The coordinator moves the marks between parts, while no data is on its way.
pub(super) struct ByteMarks {
    origin: Instant,
    start: AtomicU64,
    end: AtomicU64,
    /// Time at which the count left `start`, in nanoseconds since `origin`; zero before.
    first: AtomicU64,
    /// Time at which the count reached `end`, in nanoseconds since `origin`; zero before.
    pub(super) last: AtomicU64,
}

impl ByteMarks {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        ByteMarks { origin: Instant::now(), start: zero(), end: zero(), first: zero(), last: zero() }
    }

    pub(super) fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    pub(super) fn at(&self, time: Instant) -> u64 {
        Nanos::from(time.saturating_duration_since(self.origin)).0.max(1)
    }

    /// Returns the result of a part of which `moved` bytes arrived. `until` is the time of the last arrival, in
    /// nanoseconds since `origin`. A part of which nothing arrived took no time.
    pub(super) fn point(&self, part: &SweepPart, moved: u64, until: u64) -> SweepPoint {
        let first = if moved == 0 { until } else { self.first.load(Ordering::Relaxed) };
        SweepPoint {
            size_bytes: part.size,
            moved_bytes: Bytes(moved),
            took_ns: Nanos(until.saturating_sub(first)),
        }
    }

    /// Returns the time at which a part is cut: its limit after its first data, or `latest` while none has arrived.
    pub(super) fn cut_at(&self, part: &SweepPart, latest: Instant) -> Instant {
        match self.first.load(Ordering::Relaxed) {
            0 => latest,
            first => self.origin + Duration::from(Nanos(first)) + Duration::from(part.limit),
        }
    }

    pub(super) fn set(&self, from: u64, total: Bytes) {
        self.first.store(0, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
        self.start.store(from, Ordering::Relaxed);
        self.end.store(from + total.0, Ordering::Release);
    }

    /// Records the current time if the count has left `start` or reached `end`. The worker calls it when its count
    /// has grown from `before` to `after`.
    pub(super) fn passed(&self, before: u64, after: u64) {
        if before == self.start.load(Ordering::Acquire) {
            self.first.store(self.now(), Ordering::Relaxed);
        }
        if after == self.end.load(Ordering::Acquire) {
            self.last.store(self.now(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: SweepPart =
        SweepPart { size: Bytes(10), total: Bytes(1000), warm_up: false, limit: Nanos::millis(1) };

    #[test]
    fn a_part_whose_sender_starts_after_the_limit_is_cut_a_limit_after_its_first_data() {
        let marks = ByteMarks::new();
        marks.set(500, PART.total);
        let latest = Instant::now() + Duration::from_secs(30);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(marks.cut_at(&PART, latest), latest);
        let before = Instant::now();
        marks.passed(500, 510);
        let after = Instant::now();
        let limit = Duration::from(PART.limit);
        let cut_at = marks.cut_at(&PART, latest);
        assert!(before + limit <= cut_at && cut_at <= after + limit, "{cut_at:?}");
        marks.passed(510, 520);
        assert_eq!(marks.cut_at(&PART, latest), cut_at, "later data moves no limit");
    }

    #[test]
    fn a_part_of_which_nothing_arrived_took_no_time() {
        let marks = ByteMarks::new();
        marks.set(0, PART.total);
        let point = marks.point(&PART, 0, 7_000_000);
        assert_eq!((point.moved_bytes, point.took_ns), (Bytes(0), Nanos(0)));
    }
}
