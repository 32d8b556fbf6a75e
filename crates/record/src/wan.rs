//! The statistics of a lab's wide-area link, and whether it behaved like the path that it emulates.

use crate::units::{BitRate, Bytes, CpuNanos, Nanos};
use serde::{Deserialize, Serialize};

use crate::unknown;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WanCarrier {
    /// Threads of landspeed, which measure how late they forward frames.
    #[default]
    Threads,
    /// The kernel's emulator (netem), which does not report how late it forwards frames.
    Netem,
}

/// The statistics of a wide-area link, since it was made or over one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct WanStats {
    /// The configured path, such as "rate=1G,rtt=20ms,queue=1bdp".
    pub spec: String,
    /// The part that forwards the frames: landspeed's threads or the kernel.
    pub carrier: WanCarrier,
    /// Rate of the link from the first host to the second, in bits of IP packets; the mean rate if the rate follows a
    /// trace.
    pub rate_bps: BitRate,
    /// Idle round trip of the configured path.
    pub rtt_ns: Nanos,
    /// Capacity of the queue from the first host to the second, in bytes of IP packets; `None` if the queue has no
    /// limit in bytes.
    #[serde(deserialize_with = "unknown::or_default")]
    pub queue_bytes: Option<Bytes>,
    /// Capacity of the queue from the first host to the second, in packets; `None` if the queue has no limit in
    /// packets.
    pub queue_packets: Option<u64>,
    /// Length of the time that the counts cover. It begins when the link is created or when the run starts.
    pub window_ns: Nanos,
    /// Statistics from the first host to the second.
    pub a_to_b: DirectionStats,
    /// Statistics from the second host to the first.
    pub b_to_a: DirectionStats,
    /// Remarks for the reader, one line each: for example that real-time scheduling is not available, that a direction
    /// has ended, or why the kernel's emulator was not used.
    pub notes: Vec<String>,
}

/// The statistics of one direction. A segment is an IP packet as it would be on a wire: a superpacket (TSO, GRO)
/// counts as several segments.
///
/// The counts add up: `arrived + duplicated = forwarded + queue + loss + size + overrun drops + refused + those still
/// in the link`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct DirectionStats {
    /// Segments that arrived at the link, without those in `missed_frames`.
    pub arrived_segments: u64,
    /// Segments handed to the other host.
    pub forwarded_segments: u64,
    /// Bytes of the frames handed to the other host. The headers of a superpacket count once.
    pub forwarded_bytes: Bytes,
    /// Segments dropped because the queue was full.
    pub queue_drops: u64,
    /// Segments dropped on purpose, because the configured path loses packets.
    pub loss_drops: u64,
    /// Segments dropped because they were larger than the path's MTU.
    pub size_drops: u64,
    /// Segments delayed on purpose, so that others could overtake them.
    pub reordered_segments: u64,
    /// Segments whose IP header was marked "congestion experienced" (ECN) because the queue was long.
    pub marked_segments: u64,
    /// Segments delivered a second time.
    pub duplicated_segments: u64,
    /// Segments dropped because the link's own memory was full. This is a fault of the link, not of the path.
    pub overrun_drops: u64,
    /// Frames that the kernel dropped because the link did not read them in time. This is a fault of the link, not of
    /// the path.
    pub missed_frames: u64,
    /// Segments that were malformed or that the kernel refused to send. This is a fault of the link, not of the path.
    pub refused_segments: u64,
    /// Frames of ARP and neighbour discovery. The link forwards them without delay, and no other count includes them.
    pub neighbour_frames: u64,
    /// Packets of cross traffic that came to the queue. No other count includes them.
    pub cross_packets: u64,
    /// Packets of cross traffic that were dropped because the queue was full.
    pub cross_drops: u64,
    /// Largest amount of data that waited in the queue, in bytes of IP packets.
    pub most_queued_bytes: Bytes,
    /// Median lateness of the frames. The lateness of a frame is the time by which it leaves the link later than the
    /// path's rate and delay require. `None` if no frame left, or if the link does not measure it.
    #[serde(deserialize_with = "unknown::or_default")]
    pub late_p50_ns: Option<Nanos>,
    /// 99th percentile of the frames' lateness; `None` if no frame left, or if the link does not measure it.
    #[serde(deserialize_with = "unknown::or_default")]
    pub late_p99_ns: Option<Nanos>,
    /// Maximum of the frames' lateness; `None` if no frame left, or if the link does not measure it.
    #[serde(deserialize_with = "unknown::or_default")]
    pub late_max_ns: Option<Nanos>,
    /// Processor time of the thread that forwards this direction. The thread runs on the processors of the lab's
    /// hosts. `None` if the kernel does not report it.
    pub cpu_ns: Option<CpuNanos>,
}

impl DirectionStats {
    /// Returns the counts and the processor time since `earlier`, a previous state of the same direction. A maximum
    /// or a percentile cannot be subtracted: `most_queued_bytes` keeps its current value, and the lateness becomes
    /// `None`.
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
            cross_packets: count(|d| d.cross_packets),
            cross_drops: count(|d| d.cross_drops),
            most_queued_bytes: self.most_queued_bytes,
            cpu_ns: self.cpu_ns.map(|now| now - earlier.cpu_ns.unwrap_or_default()),
            ..DirectionStats::default()
        }
    }

    /// Returns the number of drops that are faults of the link. If it is above zero, the path was worse than
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
    /// Reasons why figures measured over the link do not hold for the configured path, one line each. Empty if the
    /// figures hold.
    pub unfit: Vec<String>,
}
