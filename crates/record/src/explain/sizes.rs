//! Cost over sizes: what a message costs by layer, and the lines that fit.

use std::collections::BTreeMap;

use landspeed_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::unknown;

/// A layer's cost over sizes: `fixed_ns + per_byte_ns * size`, and for a message that is cut
/// `first_cut_ns + per_fragment_ns * (fragments - 1)` more.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PerPacketFit {
    /// Nanoseconds per message, whatever its size.
    pub fixed_ns: f64,
    /// Nanoseconds per byte of payload.
    pub per_byte_ns: f64,
    /// Nanoseconds that a message costs once because it is cut at all; `None` where none was cut, or where the trials do
    /// not tell it from the other terms.
    #[serde(deserialize_with = "unknown::or_default")]
    pub first_cut_ns: Option<f64>,
    /// Nanoseconds per fragment after the first; `None` as above.
    #[serde(deserialize_with = "unknown::or_default")]
    pub per_fragment_ns: Option<f64>,
    /// Root mean square of what the line does not explain, as a share of the mean cost.
    pub residual: f64,
}

impl PerPacketFit {
    /// What the line gives for a message of `size` that becomes `fragments` packets, in nanoseconds.
    pub fn at(&self, size: Bytes, fragments: u64) -> f64 {
        let more = fragments.saturating_sub(1) as f64;
        let cut = self.first_cut_ns.filter(|_| more > 0.0).unwrap_or(0.0);
        self.fixed_ns + self.per_byte_ns * size.0 as f64 + cut + self.per_fragment_ns.unwrap_or(0.0) * more
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerCost {
    /// Median over the trials, in nanoseconds.
    pub median_ns: f64,
    /// Least of the trials.
    pub least_ns: f64,
    /// Most of the trials.
    pub most_ns: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SizePoint {
    /// Payload of a message: of a datagram before it is cut, of a write over TCP.
    pub size_bytes: Bytes,
    /// Packets that a datagram of this size becomes (RFC 791 section 3.2); 1 for a write over TCP, which is a
    /// stream and has no packets of its own.
    pub fragments: u64,
    /// Packets on the link for each message as the sender's link counted them; `None` where it does not.
    pub packets_counted: Option<f64>,
    /// Share of the messages that did not arrive, 0 to 1.
    pub loss: f64,
    /// Trials with messages of this size.
    pub trials: u32,
    /// Cost of a message by layer.
    pub layers: BTreeMap<String, LayerCost>,
}

/// The byte that makes a datagram one packet more: the difference that it makes by interleaved pairs of trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FragmentStep {
    /// The largest datagram before it.
    pub size_bytes: Bytes,
    /// Packets that this one becomes; one byte more makes one more.
    pub fragments: u64,
    /// The difference by layer.
    pub layers: BTreeMap<String, LayerCost>,
}

/// What each full packet after the first costs both hosts together, by a line through the trials of each round:
/// over sizes a packet and its bytes come together, so their sum is sure where its parts are not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FurtherPacket {
    /// Payload that it carries.
    pub data_bytes: Bytes,
    /// With its bytes.
    pub whole: LayerCost,
    /// Without them; `None` where no round tells the packet from its bytes.
    #[serde(deserialize_with = "unknown::or_default")]
    pub alone: Option<LayerCost>,
}

/// Cost over sizes, by layer, as Jin & Yoo report (sections 3 and 4).
///
/// Layers: "host A" and "host B" are processor time; "shared by A and B" is what two hosts of one machine spend
/// and cannot be told apart; "both hosts" is their sum; "link" is time between arrivals at the receiver; and
/// "copy, host A" and the like are classes of a host's time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PerPacket {
    /// "tcp", "udp", "udp without checksum".
    pub transport: String,
    /// MTU of the link.
    pub mtu_bytes: Bytes,
    /// The line of each layer; one that has no line is in `notes`.
    pub layers: BTreeMap<String, PerPacketFit>,
    /// The largest datagrams that become 1, 2, 3, ... packets, ascending; empty where messages are not cut.
    pub steps_bytes: Vec<Bytes>,
    /// What was measured, ascending by size.
    pub points: Vec<SizePoint>,
    /// The steps that were measured one by one.
    pub fragment_steps: Vec<FragmentStep>,
    /// A further packet, where messages are cut.
    pub further_packet: Option<FurtherPacket>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SizeAnswer {
    /// "What does one more fragment cost?"
    pub question: String,
    /// The answer, a sentence a line.
    pub answer: Vec<String>,
    /// Its figures by name; a name ends with its unit.
    pub figures: BTreeMap<String, f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_fragments_after_the_first() {
        let line = PerPacketFit {
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
