//! What a link does, counted by the threads that carry it.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use landspeed_record::DirectionStats;
use landspeed_units::{Bytes, CpuNanos};

use super::lateness::Lateness;

/// The counters of one direction, shared between the thread that counts and whoever asks.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) arrived: AtomicU64,
    pub(super) forwarded: AtomicU64,
    pub(super) forwarded_bytes: AtomicU64,
    pub(super) no_room: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) too_large: AtomicU64,
    pub(super) held: AtomicU64,
    pub(super) overrun: AtomicU64,
    pub(super) missed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) neighbours: AtomicU64,
    pub(super) most_queued: AtomicU64,
    pub(super) late: Lateness,
    /// The thread that counts, 0 before it runs.
    pub(super) thread: AtomicI32,
}

/// Adds to a counter; none of them guards anything.
pub(super) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Relaxed);
}

impl Counters {
    /// The figures now. What ends a segment's way is read before what begins it: while traffic flows, some
    /// that have just left may still be counted as under way.
    pub(super) fn read(&self) -> DirectionStats {
        let now = |counter: &AtomicU64| counter.load(Relaxed);
        let late = |share| self.late.quantile(share).unwrap_or_default();
        DirectionStats {
            forwarded_segments: now(&self.forwarded),
            forwarded_bytes: Bytes(now(&self.forwarded_bytes)),
            queue_drops: now(&self.no_room),
            loss_drops: now(&self.lost),
            size_drops: now(&self.too_large),
            reordered_segments: now(&self.held),
            overrun_drops: now(&self.overrun),
            missed_frames: now(&self.missed),
            refused_segments: now(&self.refused),
            neighbour_frames: now(&self.neighbours),
            most_queued_bytes: Bytes(now(&self.most_queued)),
            late_p50_ns: late(0.5),
            late_p99_ns: late(0.99),
            late_max_ns: self.late.most(),
            arrived_segments: now(&self.arrived),
            cpu_ns: processor_time(self.thread.load(Relaxed)),
        }
    }
}

/// Processor time of a thread of this process so far (/proc/TID/schedstat, its first figure); `None` where
/// the thread has ended, or the kernel keeps no such account.
fn processor_time(thread: i32) -> Option<CpuNanos> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok().map(CpuNanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_processor_time_is_its_own_and_grows() {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let Some(before) = processor_time(own) else {
            eprintln!("SKIP: this kernel keeps no schedstat");
            return;
        };
        let begun = std::time::Instant::now();
        // What a thread has run is accounted for at the scheduler's ticks, so it may take some of them.
        while processor_time(own) == Some(before) && begun.elapsed().as_secs() < 20 {}
        assert!(processor_time(own) > Some(before));
        assert_eq!(processor_time(0), None, "no thread has this number");
    }
}
