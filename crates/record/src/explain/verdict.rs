//! The verdict: what holds a path back.

use crate::units::BitRate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cause that can hold a flow back. Faults can be repaired; limits remain when nothing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The receive buffer is small, so the window is smaller than the path needs.
    ReceiveBuffer,
    /// The sender's buffer is smaller than the path needs.
    SendBuffer,
    /// The receiving application reads more slowly than data arrives.
    SlowReader,
    /// The sending application writes more slowly than the path could carry the data.
    SlowWriter,
    /// Writes so small that their cost dominates.
    TinyWrites,
    /// Nagle's algorithm waits for an acknowledgement that the peer delays.
    NagleDelayedAck,
    /// The softirq work of one core is at its limit.
    SoftirqCore,
    /// Other programs compete with the workload for its core.
    CompetingLoad,
    /// A queueing discipline or policer limits the rate.
    RateLimit,
    /// Packets are lost one at a time, without a full queue.
    RandomLoss,
    /// Many packets are lost together, as when a queue overflows.
    BurstLoss,
    /// Packets overtake each other, and the sender presumes them lost.
    Reordering,
    /// The window is smaller than the bandwidth-delay product of a long path. The reason is window scaling or the
    /// limit of a buffer.
    WindowBelowBdp,
    /// Packets above some size vanish, or the two ends disagree on the MTU.
    MtuBlackHole,
    /// A router on the way has a smaller MTU, and its ICMP messages do not arrive.
    IcmpBlocked,
    /// Fragmented packets vanish.
    FragmentsDropped,
    /// The path carries nothing, or it carried nothing for a long time.
    PathDown,
    /// An offload of the link is off: segmentation (TSO, GSO), or reassembly (GRO).
    OffloadsOff,
    /// The processor computes checksums of the payload, although the link could do it.
    SoftwareChecksum,
    /// Datagrams are larger than the MTU and are fragmented.
    Fragmentation,
    /// Datagrams are dropped because the receiving socket has no room for them.
    UdpReceiveBuffer,
    /// Connections are dropped because too many wait to be accepted.
    ListenBacklog,
    /// Rounding to whole segments leaves much of the window unused.
    WindowAlignment,
    /// A queueing discipline of the sender drops packets.
    QdiscDrops,
    /// The congestion control keeps the window small, although neither buffers nor applications limit it.
    CongestionControl,
    /// The governor or the clock of a processor is low.
    CpuFrequency,
    /// Processes, interrupts or memory are on the wrong cores or nodes.
    Placement,
    /// The hypervisor takes processor time away.
    Steal,
    /// A policer on the way, or a queue there that holds less than two milliseconds of data. Packets above a rate are
    /// lost.
    Policer,
    /// The acknowledgements are lost on the way back.
    ReturnPath,
    /// A queue on the way holds far more data than the path itself, so that every packet is late.
    Bufferbloat,
    /// A processor quota of a control group stops a program of the flow.
    CpuQuota,
    /// A program of the flow waits for a disk.
    SlowDisk,
    /// The machine's memory for TCP is used up, so receivers offer small windows.
    TcpMemory,
    /// The receiver once dropped a segment because its buffer was full, and has offered a window of two segments
    /// since then.
    DroppedWindow,
    /// The congestion window shrinks after each pause of the program, although nothing was lost.
    IdleRestart,
    /// Connection tracking is full and drops new connections.
    Conntrack,
    /// Handshakes wait in a full queue, and are answered with SYN cookies.
    SynCookies,
    /// Each request waits for its reply. This is a limit and no fault: nothing else is wrong.
    RequestReply,
    /// A core is fully busy with this flow. This is a limit and no fault: nothing else is wrong.
    CpuLimit,
    /// The link runs at full rate. This is a limit and no fault.
    LinkLimit,
    /// Memory moves data at full rate. This is a limit and no fault.
    MemoryLimit,
    /// The bus to the network card runs at full rate. This is a limit and no fault.
    BusLimit,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Remedy {
    /// Name of the knob; empty if a person must act.
    pub knob: String,
    /// Value to try, in the knob's spelling. If it is empty, `tune` tries the first value that it would propose itself.
    pub value: String,
    /// How the value was computed for this path, such as "500 Mb/s x 80 ms x 2"; empty for a value that suits any
    /// path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub computed: String,
    /// The shell commands that make the change, one or more on each host concerned. Empty if no command makes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<RemedyCommand>,
    /// The action and its reason, in one line.
    pub what: String,
    /// Expected goodput divided by the current one, the middle of an interval; `None` if it cannot be estimated.
    pub expected_ratio: Option<f64>,
    /// Lower end of the interval of the expected ratio. The measured ratio should lie in the interval in 80 % of
    /// cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_low: Option<f64>,
    /// Upper end of the interval of the expected ratio, which is at most what the next limit allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_high: Option<f64>,
}

/// The payload rate that the path between the hosts allows, independent of the settings of the hosts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PathRate {
    /// Estimate of the rate.
    pub rate_bps: BitRate,
    /// Lower end of the estimate's interval.
    pub low_bps: BitRate,
    /// Upper end of the estimate's interval.
    pub high_bps: BitRate,
    /// Evidence that the path is the limit and not a host, one line each.
    pub proof: Vec<String>,
}

/// A command to paste into a shell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RemedyCommand {
    /// Name of the host on which to run the command, as in the list of hosts.
    pub host: String,
    /// The command, for a shell of root. A comment at its end says how the value was computed.
    pub line: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The cause that was found.
    pub cause: Cause,
    /// Where the cause is: "host B", "host A core 3", "link eth0 of host A", or empty.
    #[serde(default)]
    pub at: String,
    /// The cause in a sentence.
    pub summary: String,
    /// Confidence, 0 to 1.
    pub confidence: f64,
    /// Share of the flow's time or rate that the cause costs, 0 to 1, as far as it can be determined. Faults are
    /// ordered by this share, and so are limits.
    pub weight: f64,
    /// For a cause that costs nothing now, the rate that it will allow once the causes before it are removed; `None`
    /// for other causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allows_bps: Option<BitRate>,
    /// Observations with figures, one line each.
    pub evidence: Vec<String>,
    /// Remedies to try.
    #[serde(rename = "try")]
    pub remedies: Vec<Remedy>,
}

/// The reason why a path cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum NoVerdictReason {
    /// There was no flow during the observation.
    NoFlow,
    /// The flows carried nothing, and nothing waited to be carried.
    Idle,
    /// No flow has enough samples.
    FewSamples {
        /// Number of samples of the flow that has the most.
        samples: u32,
        /// Number of samples that a verdict needs.
        needed: u32,
    },
}

/// What holds a path back, the most important cause first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Verdict {
    /// Goodput of all flows over the window.
    pub goodput_bps: BitRate,
    /// Payload rate that the path allows; `None` if the path is not the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_rate: Option<PathRate>,
    /// Causes and limits, the most important first. Empty only if the path cannot be judged, because a healthy path
    /// has a limit.
    pub findings: Vec<Finding>,
    /// Reason why the path cannot be judged; `None` if it can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_tell: Option<NoVerdictReason>,
    /// What could not be judged and why, one line each.
    pub unjudged: Vec<String>,
    /// Name of the host that sends the data; empty if the sender was not watched.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sender: String,
}
