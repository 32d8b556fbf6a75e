//! Flows, queues and processes as the kernel shows them (sock_diag, rtnetlink, /proc), also those of
//! other programs.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::num::ParseIntError;
use std::str::FromStr;

use landspeed_units::{BitRate, Bytes, CpuNanos, Nanos};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::unknown;

/// Transport protocol of a socket, by its number (IANA, "Protocol Numbers"). As text the name of those that have one here,
/// else the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u16);

impl Protocol {
    pub const TCP: Protocol = Protocol(6);
    pub const UDP: Protocol = Protocol(17);
    const NAMES: [(&str, Protocol); 2] = [("tcp", Protocol::TCP), ("udp", Protocol::UDP)];
}

impl Default for Protocol {
    fn default() -> Self {
        Protocol::TCP
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Protocol::NAMES.iter().find(|(_, protocol)| protocol == self) {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

impl FromStr for Protocol {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let named = Protocol::NAMES.iter().find(|(name, _)| *name == text);
        named.map_or_else(|| text.parse().map(Protocol), |(_, protocol)| Ok(*protocol))
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowKey {
    /// Transport protocol: "tcp", "udp", or its number.
    pub protocol: Protocol,
    /// Address and port of this end.
    pub local: SocketAddr,
    /// Address and port of the other end.
    pub remote: SocketAddr,
}

/// TCP_INFO at one moment (include/uapi/linux/tcp.h); counts and times run from the start of the
/// connection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpState {
    /// Congestion control state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Retransmission time-outs in a row.
    pub retransmit_timeouts: u8,
    /// Options: bit 0 timestamps, 1 SACK, 2 window scaling, 3 ECN (TCPI_OPT_*).
    pub options: u8,
    /// The peer's windows are told in steps of 2 to the power of this.
    pub peer_window_scale: u8,
    /// The own windows are told in steps of 2 to the power of this.
    pub window_scale: u8,
    /// The last rate sample was limited by the application.
    pub app_limited: bool,
    /// Time until what is not acknowledged is sent again (RFC 6298).
    pub rto_ns: Nanos,
    /// Time for which an acknowledgement is delayed at most; `None` before data came.
    #[serde(with = "unknown::measured")]
    pub ato_ns: Nanos,
    /// Payload of a segment that this end sends.
    pub send_mss_bytes: Bytes,
    /// Payload of a segment that comes, as this end estimates it.
    pub receive_mss_bytes: Bytes,
    /// Payload of a segment that this end told its peer to send at most.
    pub advertised_mss_bytes: Bytes,
    /// MTU of the path, as far as it was discovered.
    pub path_mtu_bytes: Bytes,
    /// Segments that were sent and not acknowledged.
    pub unacked_segments: u32,
    /// Segments in flight that are taken for lost.
    pub lost_segments: u32,
    /// Segments that were sent again.
    pub retransmitted_segments: u64,
    /// Time since data was sent.
    pub last_sent_ago_ns: Nanos,
    /// Time since data was received.
    pub last_received_ago_ns: Nanos,
    /// Smoothed round-trip time; `None` before the first was measured.
    #[serde(with = "unknown::measured")]
    pub rtt_ns: Nanos,
    /// Mean deviation of the round-trip time; `None` before the first was measured.
    #[serde(with = "unknown::measured")]
    pub rtt_variation_ns: Nanos,
    /// Lowest round-trip time seen; `None` before the first was measured.
    #[serde(deserialize_with = "unknown::or_default")]
    pub min_rtt_ns: Option<Nanos>,
    /// Round-trip time as a receiver estimates it from its window or from timestamps; `None` where too little came for that.
    #[serde(deserialize_with = "unknown::or_default")]
    pub receive_rtt_ns: Option<Nanos>,
    /// Slow-start threshold; `None` before the first loss, while nothing bounds slow start.
    #[serde(with = "unknown::threshold")]
    pub ssthresh_segments: u32,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Segments that others may overtake before they count as lost.
    pub reordering_segments: u32,
    /// Times that reordering was seen.
    pub reorderings_seen: u64,
    /// Duplicates that the peer reported (DSACK).
    pub duplicates_reported: u64,
    /// Segments that came out of order.
    pub out_of_order_segments: u64,
    /// What the receiver makes room for.
    pub receive_space_bytes: Bytes,
    /// Window that the peer offers, as this end heard of it.
    pub peer_window_bytes: Bytes,
    /// Window that this end offers; `None` where the kernel does not tell (before Linux 6.2). Older records have 0 there.
    pub receive_window_bytes: Option<Bytes>,
    /// Pacing rate; `None` where it is not paced.
    pub pacing_rate_bps: Option<BitRate>,
    /// Rate at which data was delivered most lately, as the kernel estimates it; `None` before the first estimate.
    #[serde(with = "unknown::measured")]
    pub delivery_rate_bps: BitRate,
    /// Payload sent, retransmissions included.
    pub sent_bytes: Bytes,
    /// Payload sent again.
    pub retransmitted_bytes: Bytes,
    /// Payload that the peer acknowledged.
    pub acked_bytes: Bytes,
    /// Payload received in order.
    pub received_bytes: Bytes,
    /// Segments sent, those without payload included.
    pub segments_sent: u64,
    /// Segments received, those without payload included.
    pub segments_received: u64,
    /// Segments sent with payload.
    pub data_segments_sent: u64,
    /// Segments received with payload.
    pub data_segments_received: u64,
    /// Bytes that wait in the send queue and were never sent.
    pub not_sent_bytes: Bytes,
    /// Time with data in flight or waiting.
    pub busy_ns: Nanos,
    /// Of `busy_ns`, time limited by the peer's window.
    pub rwnd_limited_ns: Nanos,
    /// Of `busy_ns`, time limited by the send buffer.
    pub sndbuf_limited_ns: Nanos,
    /// Segments that the peer acknowledged, in any order.
    pub delivered_segments: u64,
    /// Those of them that the path marked "congestion experienced".
    pub delivered_ce_segments: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketState {
    /// Time since the window opened.
    pub at_ns: Nanos,
    /// Bytes that wait for the application to read them.
    pub receive_queue_bytes: Bytes,
    /// Bytes that were written and are not acknowledged.
    pub send_queue_bytes: Bytes,
    /// Memory in use for receiving, overhead included.
    pub receive_memory_bytes: Bytes,
    /// The limit of that (SO_RCVBUF as the kernel counts: with overhead).
    pub receive_buffer_bytes: Bytes,
    /// Memory in use for sending, overhead included.
    pub send_memory_bytes: Bytes,
    /// The limit of that (SO_SNDBUF as the kernel counts).
    pub send_buffer_bytes: Bytes,
    /// Packets that this socket dropped, from its start (SK_MEMINFO_DROPS).
    pub drops: u64,
    /// TCP's own state; `None` for another protocol.
    pub tcp: Option<Box<TcpState>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowWatch {
    /// The flow, as this end sees it.
    pub key: FlowKey,
    /// Process that holds the socket; `None` where it cannot be told: it is another user's, or in another namespace.
    #[serde(default, deserialize_with = "unknown::or_default")]
    pub pid: Option<u32>,
    /// Its congestion control; empty for another protocol than TCP.
    #[serde(default)]
    pub congestion: String,
    /// Samples, oldest first: the first and the last moment of the window are among them. A flow that
    /// came or went within the window has fewer.
    #[serde(default)]
    pub samples: Vec<SocketState>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListenerWatch {
    /// Address and port that it listens on.
    pub local: SocketAddr,
    /// Process that holds it; `None` where it cannot be told.
    #[serde(default, deserialize_with = "unknown::or_default")]
    pub pid: Option<u32>,
    /// Connections that may wait to be accepted.
    #[serde(default)]
    pub backlog: u32,
    /// The most that were seen to wait.
    #[serde(default)]
    pub most_waiting: u32,
    /// Connections dropped within the window (sk_drops).
    #[serde(default)]
    pub drops: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessWatch {
    /// Its number.
    pub pid: u32,
    /// Its name (comm).
    pub name: String,
    /// Processor time of all its threads over the window.
    pub cpu_ns: CpuNanos,
    /// Processor time of the thread that ran most.
    pub busiest_thread_ns: CpuNanos,
    /// Time that the busiest thread was ready to run and waited for a processor (/proc/TID/schedstat).
    pub waited_for_cpu_ns: Nanos,
    /// Processor that the busiest thread was last seen on.
    pub core: u32,
    /// Processors that the busiest thread may run on.
    pub allowed_cores: Vec<u32>,
    /// Times that the busiest thread slept of its own accord (voluntary context switches).
    pub voluntary_switches: u64,
    /// What the busiest thread was waiting in, by how many samples found it there
    /// (/proc/TID/wchan, or "running"): "tcp_recvmsg_locked", "sk_stream_wait_memory", "hrtimer_nanosleep".
    pub waiting_in: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QdiscWatch {
    /// The interface that it is on.
    pub link: String,
    /// "tbf", "fq_codel", "noqueue".
    pub kind: String,
    /// "1:", or "1:10" for a class.
    pub handle: String,
    /// Bytes sent within the window.
    pub sent_bytes: Bytes,
    /// Packets sent within the window.
    pub sent_packets: u64,
    /// Packets dropped within the window.
    pub drops: u64,
    /// Times within the window that a packet had to wait for the rate.
    pub overlimits: u64,
    /// Most bytes seen waiting.
    pub most_waiting_bytes: Bytes,
    /// Configured rate; `None` where it has none.
    pub rate_bps: Option<BitRate>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkSettings {
    /// The interface.
    pub link: String,
    /// Its MTU.
    pub mtu_bytes: Bytes,
    /// Packets that may wait above the driver (txqueuelen).
    pub tx_queue_packets: u32,
    /// Offloads by their ethtool names, as they stand: "tx-checksum-ip-generic" -> true. Those that the
    /// link cannot have are left out.
    pub features: BTreeMap<String, bool>,
    /// Offloads that are fixed (cannot be turned) by name.
    pub fixed: Vec<String>,
}
