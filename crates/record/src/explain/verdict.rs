//! What holds a path back.

use landspeed_units::BitRate;
use serde::{Deserialize, Serialize};

/// A cause: something that can hold a flow back. Faults can be mended; limits are what is left when
/// nothing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The receiver's window is smaller than the path needs: its buffer is small.
    ReceiveBuffer,
    /// The sender's buffer is smaller than the path needs.
    SendBuffer,
    /// The receiving application reads more slowly than data arrives.
    SlowReader,
    /// The sending application writes more slowly than the path would take it.
    SlowWriter,
    /// Writes so small that their cost dominates.
    TinyWrites,
    /// Nagle's algorithm waits for an acknowledgement that the peer delays.
    NagleDelayedAck,
    /// One core's softirq work is at its end.
    SoftirqCore,
    /// Other programs compete with the workload for its core.
    CompetingLoad,
    /// A queueing discipline or policer limits the rate.
    RateLimit,
    /// Packets are lost one at a time, without a full queue.
    RandomLoss,
    /// Packets are lost many at a time, as where a queue overflows.
    BurstLoss,
    /// Packets overtake each other, and the sender takes them for lost.
    Reordering,
    /// The window is small against the bandwidth-delay product of a long path, by window scaling or a
    /// buffer's limit.
    WindowBelowBdp,
    /// Packets above some size vanish, or the two ends disagree on the MTU.
    MtuBlackHole,
    /// A router on the way has a smaller MTU, and its ICMP messages do not arrive.
    IcmpBlocked,
    /// Packets that are cut into fragments vanish.
    FragmentsDropped,
    /// Nothing passes, or nothing did for long.
    PathDown,
    /// An offload of the link is off: segmentation (TSO, GSO), or reassembly (GRO).
    OffloadsOff,
    /// The processor sums the payload, which the link could do.
    SoftwareChecksum,
    /// Datagrams are larger than the MTU and are cut.
    Fragmentation,
    /// Datagrams are dropped because the receiving socket has no room for them.
    UdpReceiveBuffer,
    /// Connections are dropped because too many wait to be accepted.
    ListenBacklog,
    /// Rounding of windows to whole segments wastes much of them.
    WindowAlignment,
    /// A queueing discipline of the sender drops packets.
    QdiscDrops,
    /// The congestion control keeps the window small though neither buffers nor applications do.
    CongestionControl,
    /// The governor or the clock of a processor is low.
    CpuFrequency,
    /// Processes, interrupts or memory are on the wrong cores or nodes.
    Placement,
    /// The hypervisor takes processor time away.
    Steal,
    /// A limit: a core is busy with this flow and nothing else is wrong.
    CpuLimit,
    /// A limit: the link carries what it can.
    LinkLimit,
    /// A limit: memory moves what it can.
    MemoryLimit,
    /// A limit: the bus to the network card carries what it can.
    BusLimit,
}

impl Cause {
    /// Whether this is what remains when nothing is wrong.
    pub fn is_limit(self) -> bool {
        matches!(self, Cause::CpuLimit | Cause::LinkLimit | Cause::MemoryLimit | Cause::BusLimit)
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Remedy {
    /// Knob of the table, or empty where it is something that a person must do.
    pub knob: String,
    /// Value to try, in the knob's spelling; empty lets the table choose.
    pub value: String,
    /// What to do and why, one line.
    pub what: String,
    /// Expected goodput over today's; `None` where nothing can be said.
    pub expected_ratio: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub cause: Cause,
    /// Where: "host B", "host A core 3", "link eth0 of host A", or empty.
    #[serde(default)]
    pub at: String,
    /// The cause in a sentence.
    pub summary: String,
    /// 0 to 1: how sure.
    pub confidence: f64,
    /// Share of the flow's time or rate that it costs, 0 to 1, as far as can be told: what findings are
    /// ordered by.
    pub weight: f64,
    /// Where it costs nothing now: the rate that it would let through once the faults before it are mended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allows_bps: Option<BitRate>,
    /// What was seen, one line each, with figures.
    pub evidence: Vec<String>,
    /// What to try.
    #[serde(rename = "try")]
    pub remedies: Vec<Remedy>,
}

/// Why nothing can be said of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum CannotTell {
    /// No flow was there while it was watched.
    NoFlow,
    /// The flows carried nothing, and nothing waited to be carried.
    Idle,
    /// No flow was looked at often enough.
    FewSamples {
        /// Samples of the flow that has most.
        samples: u32,
        /// How many it takes.
        needed: u32,
    },
}

/// What holds a path back, first cause first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdict {
    /// Goodput of all flows over the window.
    pub goodput_bps: BitRate,
    /// Causes and limits, the one that matters most first. Empty only where nothing can be told: a healthy path has a limit.
    pub findings: Vec<Finding>,
    /// Why nothing can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_tell: Option<CannotTell>,
    /// What could not be judged, and why, one line each.
    pub unjudged: Vec<String>,
}
