//! Statistics of a link, counted by the threads that carry it.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use landspeed_record::units::{Bytes, CpuNanos, Nanos};
use landspeed_record::{DirectionStats, QueueSample};
use landspeed_stats::TrafficCounts;

use super::lateness::{LatenessCounts, LatenessHistogram};
use super::samples::{QueueHistory, QueueReading};

/// The counters of one direction, shared between the counting thread and its readers.
#[derive(Debug, Default)]
pub(super) struct DirectionCounters {
    pub(super) arrived: AtomicU64,
    pub(super) forwarded: AtomicU64,
    pub(super) forwarded_bytes: AtomicU64,
    pub(super) no_room: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) too_large: AtomicU64,
    pub(super) held: AtomicU64,
    pub(super) marked: AtomicU64,
    pub(super) copied: AtomicU64,
    pub(super) overrun: AtomicU64,
    pub(super) missed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) neighbours: AtomicU64,
    /// Packets of cross traffic that came, and those for which the queue had no room.
    pub(super) cross: AtomicU64,
    pub(super) cross_no_room: AtomicU64,
    pub(super) most_queued: AtomicU64,
    /// The largest number of bytes in the queue since the last sample in `samples`.
    pub(super) most_lately: AtomicU64,
    pub(super) samples: QueueHistory,
    pub(super) late: LatenessHistogram,
    /// The ID of the counting thread; 0 before it runs.
    pub(super) thread: AtomicI32,
    /// The number of the current run; incremented when a run begins.
    pub(super) run: AtomicU64,
}

/// Adds `more` to a counter. Relaxed ordering is enough, because no access to other memory depends on the counters.
pub(super) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Relaxed);
}

/// The counts of a direction at one point in time. The default has the counts of a new link, all zero.
#[derive(Debug, Clone, Default)]
pub(super) struct DirectionSnapshot {
    /// Counts, processor time, and the largest queue. The lateness fields are not set.
    figures: DirectionStats,
    late: LatenessCounts,
    /// The number of queue samples so far.
    samples: u64,
}

impl DirectionCounters {
    /// Stores the counts of cross traffic since the link was made.
    pub(super) fn crossed(&self, counts: TrafficCounts) {
        self.cross.store(counts.packets, Relaxed);
        self.cross_no_room.store(counts.no_room, Relaxed);
    }

    /// Returns the current counts. The counters of segments that left are read before the counter of segments that
    /// arrived. While traffic flows, some segments that have just left may therefore still count as in flight.
    pub(super) fn read(&self) -> DirectionSnapshot {
        let now = |counter: &AtomicU64| counter.load(Relaxed);
        let figures = DirectionStats {
            forwarded_segments: now(&self.forwarded),
            forwarded_bytes: Bytes(now(&self.forwarded_bytes)),
            queue_drops: now(&self.no_room),
            loss_drops: now(&self.lost),
            size_drops: now(&self.too_large),
            reordered_segments: now(&self.held),
            marked_segments: now(&self.marked),
            overrun_drops: now(&self.overrun),
            missed_frames: now(&self.missed),
            refused_segments: now(&self.refused),
            neighbour_frames: now(&self.neighbours),
            cross_packets: now(&self.cross),
            cross_drops: now(&self.cross_no_room),
            most_queued_bytes: Bytes(now(&self.most_queued)),
            arrived_segments: now(&self.arrived),
            duplicated_segments: now(&self.copied),
            cpu_ns: processor_time(self.thread.load(Relaxed)),
            ..DirectionStats::default()
        };
        DirectionSnapshot { figures, late: self.late.read(), samples: self.samples.count() }
    }

    /// Begins a run, and returns the counts at its start.
    pub(super) fn begin_run(&self) -> DirectionSnapshot {
        self.run.fetch_add(1, Relaxed);
        self.most_lately.store(0, Relaxed);
        self.read()
    }

    /// Returns the queue samples since `mark`. Their times count from `start`, the time of the mark, and their drops
    /// count from the mark.
    pub(super) fn queue_since(&self, mark: &DirectionSnapshot, start: Nanos) -> Vec<QueueSample> {
        let drops = mark.figures.queue_drops;
        self.samples.from(mark.samples).iter().map(|sample| sample.since(start, drops)).collect()
    }

    /// Returns the largest number of bytes that waited since `mark`.
    pub(super) fn most_queued_since(&self, mark: &DirectionSnapshot) -> Bytes {
        let sampled = self.samples.from(mark.samples).iter().map(|QueueReading { most, .. }| *most).max();
        Bytes(sampled.unwrap_or(0).max(self.most_lately.load(Relaxed)))
    }
}

impl DirectionSnapshot {
    /// Returns the statistics since the link was made, including lateness.
    pub(super) fn total(&self) -> DirectionStats {
        with_lateness(self.figures.clone(), &self.late)
    }

    /// Returns the statistics since `mark`. `most_queued` is the largest queue in that time.
    pub(super) fn since(&self, mark: &DirectionSnapshot, most_queued: Bytes) -> DirectionStats {
        let run = DirectionStats { most_queued_bytes: most_queued, ..self.figures.since(&mark.figures) };
        with_lateness(run, &self.late.since(&mark.late))
    }
}

fn with_lateness(figures: DirectionStats, late: &LatenessCounts) -> DirectionStats {
    DirectionStats {
        late_p50_ns: late.quantile(0.5),
        late_p99_ns: late.quantile(0.99),
        late_max_ns: late.quantile(1.0).map(|_| late.most()),
        ..figures
    }
}

/// Returns the processor time of a thread of this process so far (/proc/self/task/TID/schedstat, first field); `None`
/// if the thread has ended, or if the kernel has no schedstat.
fn processor_time(thread: i32) -> Option<CpuNanos> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok().map(CpuNanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_figures_of_its_own() {
        let counters = DirectionCounters::default();
        count(&counters.arrived, 10);
        count(&counters.no_room, 3);
        counters.most_queued.store(9000, Relaxed);
        counters.samples.push(QueueReading { at: Nanos(5), waiting: 1, most: 9000, drops: 3 });
        counters.late.add(Nanos::millis(80), 7);
        let mark = counters.begin_run();
        count(&counters.arrived, 5);
        count(&counters.no_room, 1);
        counters.samples.push(QueueReading { at: Nanos(25), waiting: 70, most: 80, drops: 4 });
        counters.late.add(Nanos(3), 4);
        let run = counters.read().since(&mark, counters.most_queued_since(&mark));
        assert_eq!((run.arrived_segments, run.queue_drops, run.most_queued_bytes.0), (5, 1, 80));
        assert_eq!((run.late_p99_ns, run.late_max_ns), (Some(Nanos(3)), Some(Nanos(3))));
        let queue = counters.queue_since(&mark, Nanos(20));
        assert_eq!(queue, [QueueSample { at_ns: Nanos(5), waiting_bytes: Bytes(70), drops: 1 }]);
        let total = counters.read().total();
        assert_eq!((total.arrived_segments, total.most_queued_bytes.0), (15, 9000));
        assert_eq!(total.late_max_ns, Some(Nanos::millis(80)));
    }

    #[test]
    fn a_threads_processor_time_is_its_own_and_grows() {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let Some(before) = processor_time(own) else {
            eprintln!("SKIP: this kernel keeps no schedstat");
            return;
        };
        let begun = std::time::Instant::now();
        // The kernel updates a thread's run time at scheduler ticks, so the loop may run for several ticks.
        while processor_time(own) == Some(before) && begun.elapsed().as_secs() < 20 {}
        assert!(processor_time(own) > Some(before));
        assert_eq!(processor_time(0), None, "no thread has this number");
    }
}
