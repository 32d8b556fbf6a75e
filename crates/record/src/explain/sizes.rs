//! The cost of a message by its size and by layer, and lines fitted to it.

use std::collections::BTreeMap;

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::unknown;

/// The fitted line of a layer's cost over sizes: `fixed_ns + per_byte_ns * size`, plus `first_cut_ns +
/// per_fragment_ns * (fragments - 1)` for a message that is fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LayerCostFit {
    /// Nanoseconds per message, independent of its size.
    pub fixed_ns: f64,
    /// Nanoseconds per byte of payload.
    pub per_byte_ns: f64,
    /// Nanoseconds that fragmentation costs once per message; `None` if no message was fragmented, or if the trials
    /// cannot separate this term from the others.
    #[serde(deserialize_with = "unknown::or_default")]
    pub first_cut_ns: Option<f64>,
    /// Nanoseconds per fragment after the first; `None` if no message was fragmented, or if the trials cannot
    /// separate this term from the others.
    #[serde(deserialize_with = "unknown::or_default")]
    pub per_fragment_ns: Option<f64>,
    /// Root mean square of the residuals of the fit, as a share of the mean cost.
    pub residual: f64,
}

impl LayerCostFit {
    /// Returns the cost by this fit, in nanoseconds, of a message of `size` that becomes `fragments` packets.
    pub fn at(&self, size: Bytes, fragments: u64) -> f64 {
        let more = fragments.saturating_sub(1) as f64;
        let cut = self.first_cut_ns.filter(|_| more > 0.0).unwrap_or(0.0);
        self.fixed_ns + self.per_byte_ns * size.0 as f64 + cut + self.per_fragment_ns.unwrap_or(0.0) * more
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LayerCost {
    /// Median over the trials, in nanoseconds.
    pub median_ns: f64,
    /// Minimum over the trials, in nanoseconds.
    pub least_ns: f64,
    /// Maximum over the trials, in nanoseconds.
    pub most_ns: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SizePoint {
    /// Payload of a message: of a datagram before fragmentation, or of a write over TCP.
    pub size_bytes: Bytes,
    /// Packets that a datagram of this size becomes (RFC 791 section 3.2). 1 for a write over TCP, because a stream
    /// has no packet boundaries.
    pub fragments: u64,
    /// Packets per message as counted by the sender's link; `None` if the link does not count packets.
    pub packets_counted: Option<f64>,
    /// Share of the messages that did not arrive, 0 to 1.
    pub loss: f64,
    /// Trials with messages of this size.
    pub trials: u32,
    /// Cost of a message by layer.
    pub layers: BTreeMap<String, LayerCost>,
}

/// The cost of the one byte for which a datagram needs one more packet, from interleaved pairs of trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct FragmentStepCost {
    /// Size of the largest datagram before the step.
    pub size_bytes: Bytes,
    /// Number of packets of a datagram of this size. A datagram that is one byte larger has one packet more.
    pub fragments: u64,
    /// Increase of the cost that the additional byte causes, by layer.
    pub layers: BTreeMap<String, LayerCost>,
}

/// The cost of each full packet after the first, for both hosts together, from lines fitted to the trials of each
/// round. A larger datagram has both more packets and more bytes. The sum of the two costs is therefore more certain
/// than each of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct FurtherPacketCost {
    /// Payload of a full packet.
    pub data_bytes: Bytes,
    /// Cost of the packet together with its bytes.
    pub whole: LayerCost,
    /// Cost of the packet without its bytes; `None` if no round of trials can separate the two.
    #[serde(deserialize_with = "unknown::or_default")]
    pub alone: Option<LayerCost>,
}

/// The cost of a message by its size and by layer, as Jin & Yoo report it (sections 3 and 4).
///
/// Layers: "host A" and "host B" are processor time. "shared by A and B" is the time of two hosts on one machine that
/// cannot be attributed to either. "both hosts" is the sum of these three. "link" is the time between arrivals at the
/// receiver. "copy, host A" and similar names are classes of a host's time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PerPacketCost {
    /// Transport: "tcp", "udp", "udp without checksum".
    pub transport: String,
    /// MTU of the link.
    pub mtu_bytes: Bytes,
    /// The fitted line of each layer. A layer without a line is named in `notes`.
    pub layers: BTreeMap<String, LayerCostFit>,
    /// Sizes of the largest datagrams that become 1, 2, 3, ... packets, ascending. Empty if messages are not
    /// fragmented.
    pub steps_bytes: Vec<Bytes>,
    /// Measurements, ascending by size.
    pub points: Vec<SizePoint>,
    /// Costs of the steps at each of which a datagram needs one more packet.
    pub fragment_steps: Vec<FragmentStepCost>,
    /// Cost of a full packet after the first; `None` if messages are not fragmented.
    pub further_packet: Option<FurtherPacketCost>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SizeAnswer {
    /// The question: "What does one more fragment cost?"
    pub question: String,
    /// The answer, one sentence per line.
    pub answer: Vec<String>,
    /// The claims of the papers' ledger that the figures are held against, such as "jin.frag.tx".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// Figures of the answer by name. Each name ends with its unit.
    pub figures: BTreeMap<String, f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_fragments_after_the_first() {
        let line = LayerCostFit {
            fixed_ns: 1000.0,
            per_byte_ns: 0.5,
            first_cut_ns: Some(40.0),
            per_fragment_ns: Some(300.0),
            residual: 0.0,
        };
        assert_eq!(line.at(Bytes(100), 1), 1050.0);
        assert_eq!(line.at(Bytes(2000), 2), 2340.0);
        assert_eq!(line.at(Bytes(2000), 3), 2640.0);
        assert_eq!(line.at(Bytes(0), 0), 1000.0);
    }
}
