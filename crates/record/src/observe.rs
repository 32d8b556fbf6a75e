//! The observations during one trial on one host.

use std::collections::{BTreeMap, BTreeSet};

use crate::units::{BitRate, Bytes, CpuNanos, Nanos};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::details::details;
use crate::{
    CostProfile, Detail, Details, FlowWatch, LinkSettings, ListenerWatch, PathTrace, ProcessWatch,
    QdiscWatch, unknown,
};

/// Processor time of one core over the window, by class, from /proc/stat, in steps of 1/USER_HZ s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CoreCpuTime {
    /// Number of the core.
    pub core: u32,
    /// User code, including nice.
    pub user_ns: CpuNanos,
    /// Kernel code in task context.
    pub system_ns: CpuNanos,
    /// Interrupts.
    pub irq_ns: CpuNanos,
    /// Softirqs.
    pub softirq_ns: CpuNanos,
    /// Time that the hypervisor took away.
    pub steal_ns: CpuNanos,
    /// Idle time, including waiting for I/O.
    pub idle_ns: CpuNanos,
}

impl CoreCpuTime {
    /// Returns the sum of all classes except idle and steal.
    pub fn busy(&self) -> CpuNanos {
        self.user_ns + self.system_ns + self.irq_ns + self.softirq_ns
    }
}

/// Processor time of a host and of the workload over the measured window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CpuUsage {
    pub window_ns: Nanos,
    /// Processor time of each core of the machine.
    pub cores: Vec<CoreCpuTime>,
    /// Exact run time of the workload's own threads.
    pub workload_ns: CpuNanos,
    /// Exact run time of the process's other threads, such as those of a transport. The agent's own threads are not
    /// included.
    pub helpers_ns: CpuNanos,
    /// Run time of the processes that this end's agent started, for this end or for another end.
    pub children_ns: CpuNanos,
    /// Exact run time of all ksoftirqd threads of the machine.
    pub ksoftirqd_ns: CpuNanos,
    /// Exact run time of all threaded-NAPI kernel threads (napi/LINK-N) of the machine. In `cores`, `system_ns`
    /// includes this time; `irq_ns` and `softirq_ns` do not, whatever the kernel's accounting. (`softirq_ns` may
    /// include the time of ksoftirqd.)
    pub napi_ns: CpuNanos,
    /// Run time of the threads that carry landspeed's own link between the hosts (`lab:wan`); `None` without such a link. It
    /// is included in `cores` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_ns: Option<CpuNanos>,
}

impl CpuUsage {
    /// Returns the processor time that this end used for the trial, kernel threads excluded.
    pub fn own(&self) -> CpuNanos {
        self.workload_ns + self.helpers_ns + self.children_ns
    }

    /// Returns the stolen time as a share of the window over all cores, 0 to 1.
    pub fn steal_share(&self) -> f64 {
        let wanted = self.window_ns.0 as f64 * self.cores.len() as f64;
        if wanted == 0.0 {
            return 0.0;
        }
        // The kernel accounts for stolen time in large steps, which may begin before the window.
        (self.cores.iter().map(|c| c.steal_ns).sum::<CpuNanos>().0 as f64 / wanted).min(1.0)
    }
}

/// The time within the window in which the host's processors were throttled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Throttling {
    pub window_ns: Nanos,
    /// Time for which a processor quota throttled a control group, summed over processors. It is the largest value
    /// among the control groups of the agent, or of the flow's processes, and their parent groups. The kernel adds a
    /// throttled period only when the group may run again.
    pub quota_ns: Nanos,
    /// The control group that a quota throttled longest; empty if none was throttled.
    pub group: String,
    /// Processor time that the quota allows this group in each period; zero if it is not known.
    pub allowed_ns: Nanos,
    /// Length of a period of the quota; zero if it is not known.
    pub period_ns: Nanos,
    /// Time for which heat throttled a processor: the longest such time of any processor.
    pub heat_ns: Nanos,
}

impl Throttling {
    /// Returns the throttled time as a share of the window, 0 to 1: the longer of the times by quota and by heat.
    pub fn share(&self) -> f64 {
        self.quota_ns.max(self.heat_ns).share_of(self.window_ns)
    }
}

/// Congestion controls of the flows, as their sockets reported them (TCP_CONGESTION) at the end of the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CongestionControls(pub BTreeSet<String>);

/// A sample of TCP_INFO of one flow. Times and counts are from the start of the connection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct TcpSample {
    /// Flow number, from 0.
    pub flow: u32,
    /// Time since the flow's first data.
    pub at_ns: Nanos,
    /// Smoothed round-trip time; `None` before the first measurement.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub rtt_ns: Nanos,
    /// Lowest round-trip time; `None` before the first measurement.
    #[serde(deserialize_with = "unknown::or_default")]
    pub min_rtt_ns: Option<Nanos>,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Slow-start threshold; `None` before the first loss, while nothing bounds slow start.
    #[serde(with = "unknown::Threshold")]
    pub ssthresh_segments: u32,
    /// Largest payload of a segment that this end sends (MSS).
    pub mss_bytes: Bytes,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Payload that the peer acknowledged.
    pub acked_bytes: Bytes,
    /// Payload received in order.
    pub received_bytes: Bytes,
    /// Latest rate of delivery, as the kernel estimates it; `None` before the first estimate.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub delivery_rate_bps: BitRate,
    /// Time with data in flight or in the send queue.
    pub busy_ns: Nanos,
    /// The part of `busy_ns` that was limited by the peer's window.
    pub rwnd_limited_ns: Nanos,
    /// The part of `busy_ns` that was limited by the send buffer.
    pub sndbuf_limited_ns: Nanos,
    /// Window that the peer advertised last.
    pub peer_window_bytes: Bytes,
    /// Window that this end advertises; `None` if the kernel does not report it (before Linux 6.2). Older records
    /// have 0 there.
    pub receive_window_bytes: Option<Bytes>,
}

/// Changes of one interface's counters over the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LinkCounters {
    /// Name of the interface.
    pub link: String,
    /// Time between the two readings of the counters, one before and one after the window of the flows.
    pub window_ns: Nanos,
    /// Bytes received.
    pub rx_bytes: Bytes,
    /// Packets received (counted after GRO by some drivers).
    pub rx_packets: u64,
    /// Incoming packets that were dropped by the NIC for want of receive buffers (rx_missed_errors), by its driver or
    /// by the stack. /proc/net/dev has only the sum of the three counts.
    pub rx_dropped: u64,
    /// Incoming packets with errors.
    pub rx_errors: u64,
    /// Bytes sent.
    pub tx_bytes: Bytes,
    /// Packets sent (counted before TSO by some drivers).
    pub tx_packets: u64,
    /// Outgoing packets that were dropped.
    pub tx_dropped: u64,
    /// Outgoing packets with errors.
    pub tx_errors: u64,
    /// Number of times that the link's carrier came or went. A link that negotiates its speed again loses its carrier and
    /// gets it back.
    pub carrier_changes: u64,
}

/// Traffic of one interface of a host within the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LinkTraffic {
    /// Name of the interface.
    pub link: String,
    /// Bytes received.
    pub rx_bytes: Bytes,
    /// Bytes sent.
    pub tx_bytes: Bytes,
}

/// Counts of softnet_stat over all cores: "processed", "dropped", "time_squeeze", "received_rps", "flow_limit".
/// "backlog" is the number of packets that waited at the end of the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SoftnetCounts(pub BTreeMap<String, u64>);

/// The time within the window in which tasks of the host waited for memory (/proc/pressure/memory).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct MemoryStalls {
    pub window_ns: Nanos,
    /// Time in which at least one task waited.
    pub some_ns: Nanos,
    /// Time in which at least one task waited and no other task ran.
    pub full_ns: Nanos,
}

impl MemoryStalls {
    /// Returns the time in which nothing ran for want of memory, as a share of the window, 0 to 1.
    pub fn share(&self) -> f64 {
        self.full_ns.share_of(self.window_ns)
    }
}

/// Growth within the window of the counters of /proc/net/snmp, netstat, snmp6 and stat/nf_conntrack, by name, such as
/// "Tcp.RetransSegs". Counters that did not grow are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SnmpCounts(pub BTreeMap<String, u64>);

details!(OBSERVATION_DETAILS {
    "cpu" => CpuUsage;
    "throttling" => Throttling;
    "memory_stalls" => MemoryStalls;
    "tcp" => Vec<TcpSample>;
    "congestion" => CongestionControls;
    "links" => Vec<LinkCounters>;
    "traffic" => Vec<LinkTraffic>;
    "softnet" => SoftnetCounts;
    "snmp" => SnmpCounts;
    "cost" => Option<CostProfile>;
    "path" => Option<PathTrace>;
    "flows" => Vec<FlowWatch>;
    "listeners" => Vec<ListenerWatch>;
    "processes" => Vec<ProcessWatch>;
    "qdiscs" => Vec<QdiscWatch>;
    "settings" => Vec<LinkSettings>;
});

/// All observations except the workload's own figures. Each observer with data adds a detail.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(remote = "Self", default)]
#[schemars(!remote)]
pub struct Observations {
    /// What could not be observed and why, one line each.
    pub unseen: Vec<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub details: Details,
}

impl Observations {
    pub fn get<T: Detail>(&self) -> &T {
        self.details.get()
    }

    pub fn put<T: Detail>(&mut self, detail: T) {
        self.details.put(detail);
    }

    pub fn get_mut<T: Detail>(&mut self) -> &mut T {
        self.details.get_mut()
    }

    #[must_use]
    pub fn with<T: Detail>(mut self, detail: T) -> Self {
        self.put(detail);
        self
    }
}

impl Serialize for Observations {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Observations::serialize(self, to)
    }
}

/// Converts the details to their types as soon as they are read. Errors are added to `unseen`.
impl<'de> Deserialize<'de> for Observations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut seen = Observations::deserialize(from)?;
        seen.unseen.extend(seen.details.admit(OBSERVATION_DETAILS));
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    #[test]
    fn a_detail_of_another_shape_counts_as_unseen() {
        let hostile = br#"{"cpu":{"window_ns":7,"cores":[{"idle_ns":-1}]},"tcp":{},"links":[{"rx_bytes":3}],
            "sockstat":{"held":[1]}}"#;
        let seen: Observations = decode(hostile).unwrap();
        assert_eq!(seen.get::<CpuUsage>(), &CpuUsage::default());
        assert_eq!(seen.get::<Vec<LinkCounters>>()[0].rx_bytes, Bytes(3), "the others are there");
        assert!(seen.unseen[0].starts_with("cpu: ") && seen.unseen[1].starts_with("tcp: "), "{seen:?}");
        let text = serde_json::to_string(&seen).unwrap();
        assert!(text.contains(r#""sockstat":{"held":[1]}"#), "what is unknown is kept: {text}");
        assert_eq!(decode::<Observations>(text.as_bytes()).unwrap(), seen, "nothing is said twice");
    }
}
