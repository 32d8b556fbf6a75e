//! Where packets spend their time, as MAGNET saw it (feng-2003 sections 3.2 and 5).

use std::collections::BTreeMap;

use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

/// A stretch of a packet's way, between two points that are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hop {
    /// From the send call to the queueing discipline.
    SendToQueue,
    /// In the queueing discipline.
    QueueToDriver,
    /// In the driver and the device, until the packet is sent.
    DriverToWire,
    /// From its arrival at the device layer to the transport.
    DeviceToTransport,
    /// From its arrival at the device layer to the socket's receive queue.
    DeviceToSocket,
    /// From the socket's receive queue to the application's receive call.
    SocketToApplication,
}

/// How long a hop took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HopLatency {
    /// The hop.
    pub hop: Hop,
    /// (upper edge in ns, packets), ascending; edges are powers of two.
    pub bins: Vec<(u64, u64)>,
}

/// What the tracer saw on one host over one window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathTrace {
    /// Of how many packets of a flow one was followed.
    pub one_in: u32,
    /// Time that programs were attached, of `window_ns`.
    pub attached_ns: Nanos,
    /// Length of the window.
    pub window_ns: Nanos,
    /// Hops in the order of a packet's way; those that nothing was seen of are left out.
    pub hops: Vec<HopLatency>,
    /// Packets by what happened to them while programs were attached: "sent", "received",
    /// "gro-merged", "backlog", "retransmitted", "out-of-order", "dropped: REASON".
    pub counts: BTreeMap<String, u64>,
    /// Events that found no room.
    pub lost: u64,
    /// What could not be traced here, and why, one line each.
    pub notes: Vec<String>,
}
