//! What a copy says of itself while it goes on.

use schemars::JsonSchema;
use serde::Serialize;

use crate::units::{BitRate, Nanos};
use crate::{CopyCounts, CopyHeld};

/// What a copy, or a comparison of source and target, has done so far. Within a run, time, counts and share never fall.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CopyProgressFigures {
    /// Time since it began.
    pub at_ns: Nanos,
    #[serde(flatten)]
    pub counts: CopyCounts,
    /// The share of `found_bytes` that was moved; null until the walk is over, because it may find more, and if there are none.
    pub moved_share: Option<f64>,
    /// The mean rate of `moved_bytes` over the last 10 s, or since the beginning.
    pub rate_bps: BitRate,
    /// Time that the rest takes at this rate; null until the walk is over, and while nothing moves.
    pub left_ns: Option<Nanos>,
    /// What held it in the last 10 s. A comparison does not know it.
    pub held: CopyHeld,
}
