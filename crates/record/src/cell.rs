//! A cell: one configuration of both hosts and of the flow.

use std::collections::BTreeMap;

use landspeed_units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

/// Knob name to value, both in the spelling of the knob table (`docs/reference/knobs`).
pub type Settings = BTreeMap<String, String>;

/// One of the two hosts of a path. Data of an undirected workload flows from A to B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first host named; sends unless the direction is reversed.
    A,
    /// The second host named.
    B,
}

impl Side {
    /// Both, in order.
    pub const BOTH: [Side; 2] = [Side::A, Side::B];
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Side::A => "A",
            Side::B => "B",
        })
    }
}

/// One configuration: every knob that is in play, at the value that this cell wants.
///
/// Two cells of one run carry the same keys, so that going from one to the other is the difference
/// of their values. The same shape with fewer keys is a *change*: see [`Cell::with`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cell {
    /// System knobs of host A.
    pub a: Settings,
    /// System knobs of host B.
    pub b: Settings,
    /// Knobs of the flow itself (sockets, sizes, threads); the knob table turns them into
    /// [`FlowSettings`].
    pub flow: Settings,
}

impl Cell {
    /// This cell with `change` laid over it.
    #[must_use]
    pub fn with(&self, change: &Cell) -> Cell {
        let lay = |under: &Settings, over: &Settings| {
            let mut merged = under.clone();
            merged.extend(over.clone());
            merged
        };
        Cell { a: lay(&self.a, &change.a), b: lay(&self.b, &change.b), flow: lay(&self.flow, &change.flow) }
    }

    /// The system knobs of one side.
    pub fn host(&self, side: Side) -> &Settings {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }

    /// The system knobs of one side, to change.
    pub fn host_mut(&mut self, side: Side) -> &mut Settings {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }
}

/// Where the sender's and the receiver's threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Wherever the scheduler puts them.
    #[default]
    Free,
    /// On the core that takes the packets: in a lab, sender and receiver share one core (the paper's
    /// uniprocessor kernel); on a real host, the core that serves the NIC's interrupt.
    SameCore,
    /// On another core than the one that takes the packets, near it in the cache hierarchy.
    Neighbours,
}

/// How datagrams are handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatagramSend {
    /// One in each call: sendmsg(2).
    #[default]
    Plain,
    /// Many in each call: sendmmsg(2).
    Batch,
    /// Many in each call and through the stack as one, cut at its end: UDP_SEGMENT (udp(7), Linux 4.18).
    Gso,
}

/// How datagrams are taken from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatagramReceive {
    /// One in each call: recv(2).
    #[default]
    Plain,
    /// Many in each call: recvmmsg(2).
    Batch,
    /// Many in each call, joined where they came in or never cut: UDP_GRO (udp(7), Linux 5.0).
    Gro,
}

/// Per-flow settings: socket options, sizes, thread placement. `None` leaves the kernel's default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowSettings {
    /// Name of the transport: "tcp", "udp".
    pub transport: String,
    /// Number of parallel flows.
    pub flows: u32,
    /// Bytes of each message: of each send call over TCP, of each datagram's payload over UDP.
    pub write_bytes: Bytes,
    /// Size of the buffer handed to each receive call.
    pub read_bytes: Bytes,
    /// SO_SNDBUF as asked for (the kernel doubles it).
    pub sndbuf_bytes: Option<Bytes>,
    /// SO_RCVBUF as asked for (the kernel doubles it).
    pub rcvbuf_bytes: Option<Bytes>,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// SO_BUSY_POLL in microseconds; 0 is off.
    pub busy_poll_us: u32,
    /// Send with MSG_ZEROCOPY.
    pub zerocopy_send: bool,
    /// Receive with TCP_ZEROCOPY_RECEIVE.
    pub zerocopy_receive: bool,
    /// TCP_CONGESTION.
    pub congestion: Option<String>,
    /// The most that each flow sends: SO_MAX_PACING_RATE over TCP, the sender's own clock over UDP.
    pub pacing_rate_bps: Option<BitRate>,
    /// TCP_NOTSENT_LOWAT.
    pub notsent_lowat_bytes: Option<Bytes>,
    /// How datagrams are handed to the kernel (UDP).
    pub datagram_send: DatagramSend,
    /// How datagrams are taken from the kernel (UDP).
    pub datagram_receive: DatagramReceive,
    /// Send datagrams without a checksum: SO_NO_CHECK, UDP_NO_CHECK6_TX (RFC 6935).
    pub no_checksum: bool,
    /// Thread placement.
    pub placement: Placement,
}

impl Default for FlowSettings {
    fn default() -> Self {
        FlowSettings {
            transport: "tcp".to_owned(),
            flows: 1,
            write_bytes: Bytes::kib(128),
            read_bytes: Bytes::kib(128),
            sndbuf_bytes: None,
            rcvbuf_bytes: None,
            nodelay: false,
            busy_poll_us: 0,
            zerocopy_send: false,
            zerocopy_receive: false,
            congestion: None,
            pacing_rate_bps: None,
            notsent_lowat_bytes: None,
            datagram_send: DatagramSend::Plain,
            datagram_receive: DatagramReceive::Plain,
            no_checksum: false,
            placement: Placement::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_replaces_only_what_it_names() {
        let settings = |pairs: &[(&str, &str)]| -> Settings {
            pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
        };
        let start = Cell { a: settings(&[("mtu", "1500"), ("tso", "off")]), ..Cell::default() };
        let change = Cell { a: settings(&[("tso", "on")]), ..Cell::default() };
        assert_eq!(start.with(&change).a, settings(&[("mtu", "1500"), ("tso", "on")]));
    }
}
