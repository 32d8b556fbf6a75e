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
    pub protocol: Protocol,
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// TCP_INFO at one moment (include/uapi/linux/tcp.h); counts and times run from the start of the
/// connection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpState {
    /// Congestion control state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    pub retransmit_timeouts: u8,
    /// Options: bit 0 timestamps, 1 SACK, 2 window scaling, 3 ECN (TCPI_OPT_*).
    pub options: u8,
    pub peer_window_scale: u8,
    pub window_scale: u8,
    /// The last rate sample was limited by the application.
    pub app_limited: bool,
    pub rto_ns: Nanos,
    pub ato_ns: Nanos,
    pub send_mss_bytes: Bytes,
    pub receive_mss_bytes: Bytes,
    pub advertised_mss_bytes: Bytes,
    pub path_mtu_bytes: Bytes,
    pub unacked_segments: u32,
    pub lost_segments: u32,
    pub retransmitted_segments: u64,
    /// Time since data was sent, and since data was received.
    pub last_sent_ago_ns: Nanos,
    pub last_received_ago_ns: Nanos,
    /// Smoothed round-trip time, its variation, and the lowest seen.
    pub rtt_ns: Nanos,
    pub rtt_variation_ns: Nanos,
    pub min_rtt_ns: Nanos,
    pub receive_rtt_ns: Nanos,
    /// Slow-start threshold; 2^31 - 1 before the first loss.
    pub ssthresh_segments: u32,
    pub cwnd_segments: u32,
    /// Segments that reordering is allowed for, and times that reordering was seen.
    pub reordering_segments: u32,
    pub reorderings_seen: u64,
    /// Duplicates that the peer reported (DSACK).
    pub duplicates_reported: u64,
    pub out_of_order_segments: u64,
    /// What the receiver makes room for.
    pub receive_space_bytes: Bytes,
    pub peer_window_bytes: Bytes,
    pub receive_window_bytes: Bytes,
    /// Pacing rate; `None` where it is not paced.
    pub pacing_rate_bps: Option<BitRate>,
    pub delivery_rate_bps: BitRate,
    /// Payload sent (retransmissions included), retransmitted, acknowledged, received.
    pub sent_bytes: Bytes,
    pub retransmitted_bytes: Bytes,
    pub acked_bytes: Bytes,
    pub received_bytes: Bytes,
    pub segments_sent: u64,
    pub segments_received: u64,
    pub data_segments_sent: u64,
    pub data_segments_received: u64,
    /// Bytes that wait in the send queue and were never sent.
    pub not_sent_bytes: Bytes,
    /// Time with data in flight or waiting, and of it limited by the peer's window, by the send buffer.
    pub busy_ns: Nanos,
    pub rwnd_limited_ns: Nanos,
    pub sndbuf_limited_ns: Nanos,
    pub delivered_segments: u64,
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
    /// Memory in use for receiving, and its limit (SO_RCVBUF as the kernel counts: with overhead).
    pub receive_memory_bytes: Bytes,
    pub receive_buffer_bytes: Bytes,
    pub send_memory_bytes: Bytes,
    pub send_buffer_bytes: Bytes,
    /// Packets that this socket dropped, from its start (SK_MEMINFO_DROPS).
    pub drops: u64,
    pub tcp: Option<Box<TcpState>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowWatch {
    pub key: FlowKey,
    /// Process that holds the socket; 0 where it cannot be told.
    #[serde(default)]
    pub pid: u32,
    #[serde(default)]
    pub congestion: String,
    /// Samples, oldest first: the first and the last moment of the window are among them. A flow that
    /// came or went within the window has fewer.
    #[serde(default)]
    pub samples: Vec<SocketState>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListenerWatch {
    pub local: SocketAddr,
    /// Process that holds it; 0 where it cannot be told.
    #[serde(default)]
    pub pid: u32,
    /// Connections that may wait to be accepted, and the most that were seen to wait.
    #[serde(default)]
    pub backlog: u32,
    #[serde(default)]
    pub most_waiting: u32,
    /// Connections dropped within the window (sk_drops).
    #[serde(default)]
    pub drops: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessWatch {
    pub pid: u32,
    /// Its name (comm).
    pub name: String,
    /// Processor time of all its threads over the window.
    pub cpu_ns: CpuNanos,
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
    pub link: String,
    /// "tbf", "fq_codel", "noqueue".
    pub kind: String,
    /// "1:", or "1:10" for a class.
    pub handle: String,
    pub sent_bytes: Bytes,
    pub sent_packets: u64,
    pub drops: u64,
    pub overlimits: u64,
    /// Most bytes seen waiting.
    pub most_waiting_bytes: Bytes,
    /// Configured rate, where it has one.
    pub rate_bps: Option<BitRate>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkSettings {
    pub link: String,
    pub mtu_bytes: Bytes,
    pub tx_queue_packets: u32,
    /// Offloads by their ethtool names, as they stand: "tx-checksum-ip-generic" -> true. Those that the
    /// link cannot have are left out.
    pub features: BTreeMap<String, bool>,
    /// Offloads that are fixed (cannot be turned) by name.
    pub fixed: Vec<String>,
}
