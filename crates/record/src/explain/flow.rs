//! Flows, queues and processes as the kernel reports them (sock_diag, rtnetlink, /proc), including those of other
//! programs.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::num::ParseIntError;
use std::str::FromStr;

use crate::units::{BitRate, Bytes, CpuNanos, Nanos};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::unknown;

/// The transport protocol of a socket, by its number (IANA, "Protocol Numbers"). Its text is "tcp", "udp", or the
/// number of any other protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct IpProtocol(pub u16);

impl IpProtocol {
    pub const TCP: IpProtocol = IpProtocol(6);
    pub const UDP: IpProtocol = IpProtocol(17);
    const NAMES: [(&str, IpProtocol); 2] = [("tcp", IpProtocol::TCP), ("udp", IpProtocol::UDP)];
}

impl Default for IpProtocol {
    fn default() -> Self {
        IpProtocol::TCP
    }
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match IpProtocol::NAMES.iter().find(|(_, protocol)| protocol == self) {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

impl FromStr for IpProtocol {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let named = IpProtocol::NAMES.iter().find(|(name, _)| *name == text);
        named.map_or_else(|| text.parse().map(IpProtocol), |(_, protocol)| Ok(*protocol))
    }
}

impl Serialize for IpProtocol {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IpProtocol {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FlowKey {
    /// Transport protocol: "tcp", "udp", or its number.
    pub protocol: IpProtocol,
    /// Address and port of this end.
    pub local: SocketAddr,
    /// Address and port of the other end.
    pub remote: SocketAddr,
}

/// A sample of TCP_INFO (include/uapi/linux/tcp.h). Counts and times are from the start of the connection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TcpState {
    /// Congestion control state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Consecutive retransmission timeouts.
    pub retransmit_timeouts: u8,
    /// Options in use, as bits: 0 timestamps, 1 SACK, 2 window scaling, 3 ECN (TCPI_OPT_*).
    pub options: u8,
    /// Window scale of the peer: it advertises windows in units of 2^scale bytes (RFC 7323 section 2.2).
    pub peer_window_scale: u8,
    /// Window scale of this end: it advertises windows in units of 2^scale bytes (RFC 7323 section 2.2).
    pub window_scale: u8,
    /// True if the application limited the latest sample of the delivery rate.
    pub app_limited: bool,
    /// Retransmission timeout (RFC 6298).
    pub rto_ns: Nanos,
    /// Timeout for sending a delayed acknowledgement; `None` before data arrived.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub ato_ns: Nanos,
    /// Largest payload of a segment that this end sends (MSS).
    pub send_mss_bytes: Bytes,
    /// Payload of an incoming segment, as this end estimates it.
    pub receive_mss_bytes: Bytes,
    /// Largest payload of a segment that this end advertised to its peer (MSS).
    pub advertised_mss_bytes: Bytes,
    /// MTU of the path, as discovered so far.
    pub path_mtu_bytes: Bytes,
    /// Segments sent and not yet acknowledged.
    pub unacked_segments: u32,
    /// Segments in flight that are presumed lost.
    pub lost_segments: u32,
    /// Segments retransmitted.
    pub retransmitted_segments: u64,
    /// Time since data was last sent.
    pub last_sent_ago_ns: Nanos,
    /// Time since data was last received.
    pub last_received_ago_ns: Nanos,
    /// Smoothed round-trip time; `None` before the first measurement.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub rtt_ns: Nanos,
    /// Mean deviation of the round-trip time; `None` before the first measurement.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub rtt_variation_ns: Nanos,
    /// Lowest round-trip time; `None` before the first measurement.
    #[serde(deserialize_with = "unknown::or_default")]
    pub min_rtt_ns: Option<Nanos>,
    /// Round-trip time that a receiver estimates from its window or from timestamps; `None` if too little data
    /// arrived.
    #[serde(deserialize_with = "unknown::or_default")]
    pub receive_rtt_ns: Option<Nanos>,
    /// Slow-start threshold; `None` before the first loss, while nothing bounds slow start.
    #[serde(with = "unknown::Threshold")]
    pub ssthresh_segments: u32,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Number of segments that may overtake a segment before the overtaken one counts as lost.
    pub reordering_segments: u32,
    /// Number of times that the sender detected reordering.
    pub reorderings_seen: u64,
    /// Duplicate segments that the peer reported (DSACK).
    pub duplicates_reported: u64,
    /// Segments received out of order.
    pub out_of_order_segments: u64,
    /// Buffer space that this end provides for incoming data.
    pub receive_space_bytes: Bytes,
    /// Window that the peer advertised last.
    pub peer_window_bytes: Bytes,
    /// Window that this end advertises; `None` if the kernel does not report it (before Linux 6.2). Older records
    /// have 0 there.
    pub receive_window_bytes: Option<Bytes>,
    /// Rate at which the kernel would pace the flow, whether it is paced or not; `None` if it reports none or no limit.
    pub pacing_rate_bps: Option<BitRate>,
    /// Latest rate of delivery, as the kernel estimates it; `None` before the first estimate.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub delivery_rate_bps: BitRate,
    /// Payload sent, retransmissions included.
    pub sent_bytes: Bytes,
    /// Payload retransmitted.
    pub retransmitted_bytes: Bytes,
    /// Payload that the peer acknowledged.
    pub acked_bytes: Bytes,
    /// Payload received in order.
    pub received_bytes: Bytes,
    /// Segments sent, including those without payload.
    pub segments_sent: u64,
    /// Segments received, including those without payload.
    pub segments_received: u64,
    /// Segments sent with payload.
    pub data_segments_sent: u64,
    /// Segments received with payload.
    pub data_segments_received: u64,
    /// Bytes in the send queue that were never sent.
    pub not_sent_bytes: Bytes,
    /// Time with data in flight or in the send queue.
    pub busy_ns: Nanos,
    /// The part of `busy_ns` that was limited by the peer's window.
    pub rwnd_limited_ns: Nanos,
    /// The part of `busy_ns` that was limited by the send buffer.
    pub sndbuf_limited_ns: Nanos,
    /// Segments that the peer acknowledged, in any order.
    pub delivered_segments: u64,
    /// Segments that the path marked "congestion experienced"; part of `delivered_segments`.
    pub delivered_ce_segments: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketState {
    /// Time since the window opened.
    pub at_ns: Nanos,
    /// Bytes received and not yet read by the application.
    pub receive_queue_bytes: Bytes,
    /// Bytes written and not yet acknowledged.
    pub send_queue_bytes: Bytes,
    /// Memory used for receiving, overhead included.
    pub receive_memory_bytes: Bytes,
    /// Limit of `receive_memory_bytes` (SO_RCVBUF as the kernel counts it, overhead included).
    pub receive_buffer_bytes: Bytes,
    /// Memory used for sending, overhead included.
    pub send_memory_bytes: Bytes,
    /// Limit of `send_memory_bytes` (SO_SNDBUF as the kernel counts it).
    pub send_buffer_bytes: Bytes,
    /// Packets that this socket dropped since it was opened (SK_MEMINFO_DROPS).
    pub drops: u64,
    /// State of TCP; `None` for other protocols.
    pub tcp: Option<Box<TcpState>>,
}

/// One flow, observed over a window: its addresses, its settings and its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowWatch {
    /// The flow, from the view of this end.
    pub key: FlowKey,
    /// Process that holds the socket; `None` if the process is unknown, because it belongs to another user or is in
    /// another namespace.
    #[serde(default, deserialize_with = "unknown::or_default")]
    pub pid: Option<u32>,
    /// Congestion control of the flow; empty for protocols other than TCP.
    #[serde(default)]
    pub congestion: String,
    /// Samples, oldest first, including samples at the start and the end of the window. A flow that began or ended
    /// within the window has fewer samples.
    #[serde(default)]
    pub samples: Vec<SocketState>,
}

impl FlowWatch {
    /// Returns the samples of a TCP socket, oldest first.
    pub fn tcp_states(&self) -> impl Iterator<Item = (&SocketState, &TcpState)> {
        self.samples.iter().filter_map(|state| Some((state, state.tcp.as_deref()?)))
    }
}

/// A listening socket, observed over a window, and its connections that waited to be accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListenerWatch {
    /// Address and port that the socket listens on.
    pub local: SocketAddr,
    /// Process that holds the socket; `None` if unknown.
    #[serde(default, deserialize_with = "unknown::or_default")]
    pub pid: Option<u32>,
    /// Largest number of connections that may wait to be accepted.
    #[serde(default)]
    pub backlog: u32,
    /// Largest number of connections that waited in any sample.
    #[serde(default)]
    pub most_waiting: u32,
    /// Connections dropped within the window (sk_drops).
    #[serde(default)]
    pub drops: u64,
}

/// A process that holds a flow's socket, observed over a window: its processor time, and where its busiest thread ran
/// and waited.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessWatch {
    /// Process ID.
    pub pid: u32,
    /// Process name (comm).
    pub name: String,
    /// Processor time of all threads over the window.
    pub cpu_ns: CpuNanos,
    /// Processor time of the busiest thread.
    pub busiest_thread_ns: CpuNanos,
    /// Time that the busiest thread was runnable and waited for a processor (/proc/TID/schedstat).
    pub waited_for_cpu_ns: Nanos,
    /// Processor on which the busiest thread ran last.
    pub core: u32,
    /// Processors that the busiest thread may run on.
    pub allowed_cores: Vec<u32>,
    /// Times that the busiest thread went to sleep (voluntary context switches).
    pub voluntary_switches: u64,
    /// Samples of the busiest thread, by the kernel function in which it waited (/proc/TID/wchan) or "running".
    /// Examples are "tcp_recvmsg_locked", "sk_stream_wait_memory" and "hrtimer_nanosleep".
    pub waiting_in: BTreeMap<String, u32>,
    /// Samples of the busiest thread in uninterruptible sleep (state D), for example while it waited for a disk.
    pub uninterruptible_samples: u32,
}

/// A queueing discipline, observed over a window: what it sent and dropped, and its queue.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QdiscWatch {
    /// Interface of the queueing discipline.
    pub link: String,
    /// Kind: "tbf", "fq_codel", "noqueue".
    pub kind: String,
    /// Handle: "1:", or "1:10" for a class.
    pub handle: String,
    /// Bytes sent within the window.
    pub sent_bytes: Bytes,
    /// Packets sent within the window.
    pub sent_packets: u64,
    /// Packets dropped within the window.
    pub drops: u64,
    /// Number of times within the window that a packet had to wait because of the rate limit.
    pub overlimits: u64,
    /// Largest number of bytes that waited in any sample.
    pub most_waiting_bytes: Bytes,
    /// Configured rate limit; `None` without a limit.
    pub rate_bps: Option<BitRate>,
}

/// Settings of a link that affect how it carries a flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkSettings {
    /// Name of the interface.
    pub link: String,
    /// MTU of the interface.
    pub mtu_bytes: Bytes,
    /// Largest number of packets that may wait to be passed to the driver (txqueuelen).
    pub tx_queue_packets: u32,
    /// Current state of each offload, by its ethtool name: "tx-checksum-ip-generic" -> true. Offloads that the link
    /// cannot have are left out.
    pub features: BTreeMap<String, bool>,
    /// Names of the offloads that cannot be changed.
    pub fixed: Vec<String>,
}
