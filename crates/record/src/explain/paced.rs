//! A repetition of a stream at a lower rate: losses of a policer or of a short queue vanish then, and losses by chance
//! stay.

use crate::units::{BitRate, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a stream that was paced below the rate that it had reached.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PacedStream {
    /// The pace of all its flows together.
    pub pace_bps: BitRate,
    /// Its goodput.
    pub goodput_bps: BitRate,
    /// Segments with payload that were sent, retransmissions included.
    pub sent_segments: u64,
    /// Those of them that were sent again, less those that the peer already had.
    pub lost_segments: u64,
    /// Median of the smoothed round trip; `None` without a sample.
    pub rtt_ns: Option<Nanos>,
}
