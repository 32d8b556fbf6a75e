//! The statistics of a wide-area link in user space, and whether it behaved like the path that it emulates.

use crate::units::{BitRate, Bytes, CpuNanos, Nanos};
use serde::{Deserialize, Serialize};

use crate::unknown;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WanCarrier {
    /// Threads of landspeed, which measure their own lateness.
    #[default]
    Threads,
    /// The kernel's emulator, which does not report its lateness.
    Netem,
}

/// The statistics of a wide-area link since it was made, or within one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct WanStats {
    /// The configured path: "rate=1G,rtt=20ms,queue=1bdp".
    pub spec: String,
    /// What forwards the frames.
    pub carrier: WanCarrier,
    /// Rate of the line from the first host to the second, in bits of IP packets; the mean rate if it follows a
    /// trace.
    pub rate_bps: BitRate,
    /// Idle round trip.
    pub rtt_ns: Nanos,
    /// Capacity of the queue in front of that line, in bytes of IP packets; `None` if the queue counts packets.
    #[serde(deserialize_with = "unknown::or_default")]
    pub queue_bytes: Option<Bytes>,
    /// Capacity of the queue in front of that line, in packets; `None` if the queue counts bytes.
    pub queue_packets: Option<u64>,
    /// Time that all counts cover: since the link was made, or since the run began.
    pub window_ns: Nanos,
    /// Statistics from the first host to the second.
    pub a_to_b: DirectionStats,
    /// Statistics from the second host to the first.
    pub b_to_a: DirectionStats,
    /// Remarks for the reader, one line each: no real-time scheduling, a direction that has ended, why the kernel's
    /// own emulator was not used.
    pub notes: Vec<String>,
}

/// The statistics of one direction. Segments are IP packets as on a wire, so that a superpacket counts as several.
///
/// `arrived + duplicated = forwarded + queue + loss + size + overrun drops + refused + those still on their way`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct DirectionStats {
    /// Segments that arrived, without those in `missed_frames`.
    pub arrived_segments: u64,
    /// Segments handed to the other host.
    pub forwarded_segments: u64,
    /// Bytes of frames handed to the other host. A superpacket's headers count once.
    pub forwarded_bytes: Bytes,
    /// Segments dropped because the queue was full.
    pub queue_drops: u64,
    /// Segments that the line lost on purpose, as configured.
    pub loss_drops: u64,
    /// Segments larger than the path's MTU.
    pub size_drops: u64,
    /// Segments delayed on purpose, so that others could overtake them.
    pub reordered_segments: u64,
    /// Segments whose IP header was marked "congestion experienced" because the queue was long.
    pub marked_segments: u64,
    /// Segments that were delivered a second time.
    pub duplicated_segments: u64,
    /// Segments for which the link's own memory had no room: a fault of the link, not of the path.
    pub overrun_drops: u64,
    /// Frames that the kernel dropped before the link read them, because the link did not run in time: a fault of the
    /// link, not of the path.
    pub missed_frames: u64,
    /// Segments that were malformed, or that the kernel refused: a fault of the link.
    pub refused_segments: u64,
    /// Frames of ARP and neighbour discovery, which are passed on at once and are in no other count.
    pub neighbour_frames: u64,
    /// Most bytes of IP packets that waited in front of the line.
    pub most_queued_bytes: Bytes,
    /// Median lateness of the frames, against the time that rate and delay of the path give; `None` if no frame left,
    /// or if the carrier does not report it.
    #[serde(deserialize_with = "unknown::or_default")]
    pub late_p50_ns: Option<Nanos>,
    /// 99th percentile of the lateness.
    #[serde(deserialize_with = "unknown::or_default")]
    pub late_p99_ns: Option<Nanos>,
    /// Maximum of the lateness.
    #[serde(deserialize_with = "unknown::or_default")]
    pub late_max_ns: Option<Nanos>,
    /// Processor time of the direction's thread, which runs on the hosts' own processors; `None` if the kernel does
    /// not report it.
    pub cpu_ns: Option<CpuNanos>,
}

impl DirectionStats {
    /// Returns counts and processor time since `earlier`, a previous state of the same direction. `most_queued_bytes`
    /// keeps its current value and the lateness is empty, because they cannot be subtracted.
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

    /// Returns the number of drops that are the link's own fault. If there are any, the path was worse than
    /// configured.
    pub fn faults(&self) -> u64 {
        self.overrun_drops.saturating_add(self.missed_frames).saturating_add(self.refused_segments)
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct WanReport {
    /// Statistics of the link.
    pub link: WanStats,
    /// Why figures over the link are not those of the configured path, one line each; empty if they are.
    pub unfit: Vec<String>,
}
