//! What paths below a program's sockets cost, and what follows for a program.

use landspeed_units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// What a path costs a program's sockets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathCost {
    /// Name of the path, or of an interconnect.
    pub path: String,
    /// Time of connect(2).
    pub connect_ns: Nanos,
    /// Time of a small message, one way.
    pub message_ns: Nanos,
    /// Rate of a stream.
    pub rate_bps: BitRate,
}

impl PathCost {
    /// How long the path takes for all of it, one after the other, in seconds.
    pub fn seconds(&self, used: &PathUse) -> f64 {
        used.connections as f64 * self.connect_ns.as_secs_f64()
            + used.messages as f64 * self.message_ns.as_secs_f64()
            + used.bytes.0 as f64 * 8.0 / self.rate_bps.0
    }
}

/// What a program did with its sockets in a run, as the kernel's counters saw it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathUse {
    /// Connections that it opened (Tcp.ActiveOpens).
    pub connections: u64,
    /// Pieces of data that its hosts sent: as many as went to the network at once, or fewer where segments were sent one by one (the
    /// smaller of Ip.OutRequests and TcpExt.TCPOrigDataSent).
    pub messages: u64,
    /// Bytes of IP that its hosts sent (IpExt.OutOctets).
    pub bytes: Bytes,
    /// How long the run took.
    pub took_ns: Nanos,
}

/// A model: how much sooner a program would end over a path, from what it did with its sockets and what the path costs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathPrediction {
    /// The path and its costs.
    #[serde(flatten)]
    pub cost: PathCost,
    /// How many times as fast, by the model.
    pub predicted: f64,
    /// How many times as fast, or as much, it was; `None` where it was not measured.
    pub measured: Option<Estimate>,
}
