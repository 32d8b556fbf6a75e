//! A repetition of a stream at a lower rate. At the lower rate, a policer or a short queue drops nothing, while random
//! losses remain.

use crate::units::{BitRate, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of a stream that was paced below the rate that it had reached before.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PacedStream {
    /// Pacing rate of all flows together.
    pub pace_bps: BitRate,
    /// Goodput of all flows together.
    pub goodput_bps: BitRate,
    /// Segments with payload that were sent, retransmissions included.
    pub sent_segments: u64,
    /// Segments that were retransmitted, minus those that the peer had already received.
    pub lost_segments: u64,
    /// Median of all samples of the smoothed round-trip time; `None` without a sample.
    pub rtt_ns: Option<Nanos>,
}
