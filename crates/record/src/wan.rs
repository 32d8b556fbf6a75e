//! What a wide-area link in user space did, and how well it played the path that it was told to be.

use landspeed_units::{BitRate, Bytes, CpuNanos, Nanos};
use serde::{Deserialize, Serialize};

use crate::unknown;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WanCarrier {
    /// Threads of landspeed, which measure how late they are.
    #[default]
    Threads,
    /// The kernel's emulator, which does not tell how late it is.
    Netem,
}

/// What a wide-area link did since it was made, or within one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WanStats {
    /// What it was told to be: "rate=1G,rtt=20ms,queue=1bdp".
    pub spec: String,
    /// What carries the frames.
    pub carrier: WanCarrier,
    /// Rate of the line from the first host to the second, in bits of IP packets; the mean where it follows a trace.
    pub rate_bps: BitRate,
    /// Round trip when idle.
    pub rtt_ns: Nanos,
    /// Most bytes of IP packets that may wait in front of that line; `None` where packets are counted.
    #[serde(deserialize_with = "unknown::or_default")]
    pub queue_bytes: Option<Bytes>,
    /// Most packets that may wait there; `None` where bytes are counted.
    pub queue_packets: Option<u64>,
    /// What all counts are over: time since it was made, or since the run began.
    pub window_ns: Nanos,
    /// From the first host to the second.
    pub a_to_b: DirectionStats,
    /// From the second host to the first.
    pub b_to_a: DirectionStats,
    /// What a reader must know, one line each: no real-time scheduling, a direction that has ended, why the
    /// kernel's own emulator was not taken.
    pub notes: Vec<String>,
}

/// One direction. Segments are IP packets as they would be on a wire: a superpacket counts as many.
///
/// `arrived + duplicated = forwarded + queue + loss + size + overrun drops + refused + those still on their way`.
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
    /// Segments whose IP header was marked "congestion experienced" because the queue was long.
    pub marked_segments: u64,
    /// Segments that arrive a second time.
    pub duplicated_segments: u64,
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
    /// How late frames left against the time that rate and delay say: the median; `None` where no frame left, or where the
    /// carrier does not tell.
    #[serde(deserialize_with = "unknown::or_default")]
    pub late_p50_ns: Option<Nanos>,
    /// The 99th percentile of it.
    #[serde(deserialize_with = "unknown::or_default")]
    pub late_p99_ns: Option<Nanos>,
    /// The worst of it.
    #[serde(deserialize_with = "unknown::or_default")]
    pub late_max_ns: Option<Nanos>,
    /// Processor time of the direction's thread, which runs on the hosts' own processors; `None` where the
    /// kernel does not tell.
    pub cpu_ns: Option<CpuNanos>,
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
        self.arrived_segments.saturating_add(self.duplicated_segments).saturating_sub(ended)
    }

    /// Counts and processor time since `earlier`, a look at the same direction. The most that was queued and how late
    /// frames were are no differences: they are left as they are here, and at nothing.
    pub fn since(&self, earlier: &DirectionStats) -> DirectionStats {
        let count = |of: fn(&DirectionStats) -> u64| of(self).saturating_sub(of(earlier));
        DirectionStats {
            arrived_segments: count(|d| d.arrived_segments),
            forwarded_segments: count(|d| d.forwarded_segments),
            forwarded_bytes: self.forwarded_bytes - earlier.forwarded_bytes,
            queue_drops: count(|d| d.queue_drops),
            loss_drops: count(|d| d.loss_drops),
            size_drops: count(|d| d.size_drops),
            reordered_segments: count(|d| d.reordered_segments),
            marked_segments: count(|d| d.marked_segments),
            duplicated_segments: count(|d| d.duplicated_segments),
            overrun_drops: count(|d| d.overrun_drops),
            missed_frames: count(|d| d.missed_frames),
            refused_segments: count(|d| d.refused_segments),
            neighbour_frames: count(|d| d.neighbour_frames),
            most_queued_bytes: self.most_queued_bytes,
            cpu_ns: self.cpu_ns.map(|now| now - earlier.cpu_ns.unwrap_or_default()),
            ..DirectionStats::default()
        }
    }

    /// Drops that are the link's own fault: where there are any, the path was worse than it was told to be.
    pub fn faults(&self) -> u64 {
        self.overrun_drops.saturating_add(self.missed_frames).saturating_add(self.refused_segments)
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WanReport {
    /// What the link did.
    pub link: WanStats,
    /// Why figures taken over it are not those of the path that it was told to be, one line each; empty
    /// where they are.
    pub unfit: Vec<String>,
}
