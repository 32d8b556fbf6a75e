//! The verdict: the causes that limit a path.

use crate::units::BitRate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cause that can limit a flow. A fault can be repaired. A limit remains when there is no fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The receive buffer is small, so the window is smaller than the path needs.
    ReceiveBuffer,
    /// The sender's buffer is smaller than the path needs.
    SendBuffer,
    /// The receiving application reads more slowly than data arrives.
    SlowReader,
    /// The sending application writes data more slowly than the path could carry it.
    SlowWriter,
    /// The writes are so small that the cost of each write dominates.
    TinyWrites,
    /// Nagle's algorithm waits for an acknowledgement that the peer delays.
    NagleDelayedAck,
    /// One core is fully busy with softirq work.
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
    /// Packets above some size are lost, or the two ends have different MTUs.
    MtuBlackHole,
    /// A router on the path has a smaller MTU, and its ICMP messages do not arrive at the sender.
    IcmpBlocked,
    /// Fragmented packets are lost.
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
    /// The clock of a processor is low, or its governor keeps the clock low.
    CpuFrequency,
    /// Processes, interrupts or memory are on the wrong cores or NUMA nodes.
    Placement,
    /// The hypervisor takes processor time away from this machine.
    Steal,
    /// A policer on the path, or a queue on the path that holds less than two milliseconds of data, drops packets above
    /// a rate.
    Policer,
    /// Acknowledgements are lost on the return path.
    ReturnPath,
    /// A queue on the path holds far more data than the path itself, so that every packet is delayed.
    Bufferbloat,
    /// A processor quota of a control group stops a program of the flow.
    CpuQuota,
    /// A program of the flow waits for a disk.
    SlowDisk,
    /// The host is short of memory: its programs stand still until the kernel has freed pages, or read them again.
    MemoryShortage,
    /// The machine's memory for TCP is used up, so receivers offer small windows.
    TcpMemory,
    /// The receiver once dropped a segment because its buffer was full, and has offered a window of two segments
    /// since then.
    DroppedWindow,
    /// The congestion window shrinks after each pause of the program, although no segment was lost.
    IdleRestart,
    /// Connection tracking is full and drops new connections.
    Conntrack,
    /// The queue of incomplete handshakes is full, and SYNs are answered with SYN cookies.
    SynCookies,
    /// The program waits for the reply to each request. This is a limit and not a fault.
    RequestReply,
    /// A core is fully busy with this flow. This is a limit and not a fault.
    CpuLimit,
    /// The link runs at full rate. This is a limit and not a fault.
    LinkLimit,
    /// Memory moves data at full rate. This is a limit and not a fault.
    MemoryLimit,
    /// The bus to the network card runs at full rate. This is a limit and not a fault.
    BusLimit,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Remedy {
    /// Name of the knob; empty if no knob makes the change, so that a person must make it.
    pub knob: String,
    /// Value to try, in the knob's spelling. If it is empty, `tune` tries the first value that it would propose itself.
    pub value: String,
    /// How the value was computed for this path, such as "500 Mb/s x 80 ms x 2"; empty for a value that suits any
    /// path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub computed: String,
    /// The shell commands that make the change, one or more on each host concerned. Empty if no command makes the
    /// change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<RemedyCommand>,
    /// The change and its reason, in one line.
    pub what: String,
    /// Expected goodput divided by the current goodput, the middle of the interval from `expected_low` to
    /// `expected_high`; `None` if it cannot be estimated, or if only its least value can.
    pub expected_ratio: Option<f64>,
    /// Lower end of the interval of the expected ratio. The measured ratio should lie in the interval in 80 % of
    /// cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_low: Option<f64>,
    /// Upper end of the interval of the expected ratio. The next limit allows no higher ratio. `None` if the ratio is at
    /// least `expected_low`, and no limit is known.
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
    /// For a cause that costs nothing now: the rate that it will allow after the causes before it are removed. `None`
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
    /// The flows carried no data, and no data waited to be sent.
    Idle,
    /// No flow has enough samples.
    FewSamples {
        /// Number of samples of the flow that has the most samples.
        samples: u32,
        /// Number of samples that a verdict needs.
        needed: u32,
    },
}

/// The causes that limit a path, the most important first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Verdict {
    /// Goodput of all flows over the window.
    pub goodput_bps: BitRate,
    /// Payload rate that the path allows; `None` if the path is not the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_rate: Option<PathRate>,
    /// Faults and limits, the most important first. Even a healthy path has a limit, so the list is empty only if the
    /// path cannot be judged.
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
