//! What a link did, and how well.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use landspeed_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::lateness::Lateness;

/// What a wide-area link did since it was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WanStats {
    /// From the first host to the second.
    pub a_to_b: DirectionStats,
    /// From the second host to the first.
    pub b_to_a: DirectionStats,
    /// What a reader must know, one line each: no real-time scheduling, a direction that has ended.
    pub notes: Vec<String>,
}

/// One direction. Segments are IP packets as they would be on a wire: a superpacket counts as many.
///
/// `arrived = forwarded + queue + loss + size + overrun drops + refused + those still on their way`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectionStats {
    /// Segments that came in, but for those in `missed_frames`.
    pub arrived_segments: u64,
    /// Segments that were given to the other host.
    pub forwarded_segments: u64,
    /// Bytes of frames given to the other host: headers once for a superpacket.
    pub forwarded_bytes: Bytes,
    /// Segments that the queue had no room for.
    pub queue_drops: u64,
    /// Segments that the line lost, as it was told to.
    pub loss_drops: u64,
    /// Segments larger than the path takes.
    pub size_drops: u64,
    /// Segments that were held back, so that others could overtake them.
    pub reordered_segments: u64,
    /// Segments that the link's own memory had no room for: a fault of the link, not of the path.
    pub overrun_drops: u64,
    /// Frames that the kernel dropped before the link saw them, because it did not come to run: a fault of
    /// the link, not of the path.
    pub missed_frames: u64,
    /// Segments that could not be read, or that the kernel would not take: a fault of the link.
    pub refused_segments: u64,
    /// ARP and neighbour discovery, passed on at once and counted nowhere else.
    pub neighbour_frames: u64,
    /// Most bytes of IP packets that were seen to wait in front of the line.
    pub most_queued_bytes: Bytes,
    /// How late frames left against the time that rate and delay say: median, 99th percentile, worst.
    pub late_p50_ns: Nanos,
    /// See above.
    pub late_p99_ns: Nanos,
    /// See above.
    pub late_max_ns: Nanos,
}

impl DirectionStats {
    /// Segments that are still on their way.
    pub fn under_way_segments(&self) -> u64 {
        let ended = self.forwarded_segments
            + self.queue_drops
            + self.loss_drops
            + self.size_drops
            + self.overrun_drops
            + self.refused_segments;
        self.arrived_segments.saturating_sub(ended)
    }

    /// Drops that are the link's own fault: where there are any, the path was worse than it was told to be.
    pub fn faults(&self) -> u64 {
        self.overrun_drops + self.missed_frames + self.refused_segments
    }
}

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
        }
    }
}
