//! The costs of paths below a program's sockets, and predictions for the program.

use crate::units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// The costs of a path for a program's sockets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PathCost {
    /// Name of the path or of an interconnect.
    pub path: String,
    /// Time of connect(2).
    pub connect_ns: Nanos,
    /// Time of a small message in one direction.
    pub message_ns: Nanos,
    /// Rate of a stream.
    pub rate_bps: BitRate,
}

impl PathCost {
    /// Returns the time, in seconds, that the path takes for all connections, messages and bytes, one after the
    /// other.
    pub fn seconds(&self, used: &SocketUsage) -> f64 {
        used.connections as f64 * self.connect_ns.as_secs_f64()
            + used.messages as f64 * self.message_ns.as_secs_f64()
            + used.bytes.0 as f64 * 8.0 / self.rate_bps.0
    }
}

/// A program's use of its sockets in a run, from the kernel's counters.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SocketUsage {
    /// Connections that the program opened (Tcp.ActiveOpens).
    pub connections: u64,
    /// Pieces of data that the program's hosts handed to the network, counted as the smaller of Ip.OutRequests and
    /// TcpExt.TCPOrigDataSent.
    pub messages: u64,
    /// Bytes of IP packets that the program's hosts sent (IpExt.OutOctets).
    pub bytes: Bytes,
    /// Duration of the run.
    pub took_ns: Nanos,
}

/// The predicted speed of a program over a path, from its use of the sockets and the costs of the path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PathPrediction {
    /// The path and its costs.
    #[serde(flatten)]
    pub cost: PathCost,
    /// Predicted speed of the program, divided by its speed over the first path of the list.
    pub predicted: f64,
    /// Measured speed or amount, divided by the value over the first path of the list; `None` if it was not measured.
    pub measured: Option<Estimate>,
}
