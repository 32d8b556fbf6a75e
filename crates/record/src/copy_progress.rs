//! The progress of a running copy.

use schemars::JsonSchema;
use serde::Serialize;

use crate::units::{BitRate, Nanos};
use crate::{CopyCounts, CopyHeld};

/// The progress of a copy, or of a comparison of source and target. Within a run, time, counts and share never
/// decrease.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CopyProgressFigures {
    /// Time since the start.
    pub at_ns: Nanos,
    #[serde(flatten)]
    pub counts: CopyCounts,
    /// Share of `found_bytes` that was moved; null until the walk is complete, because it may find more, and if there
    /// are no bytes.
    pub moved_share: Option<f64>,
    /// Mean rate of `moved_bytes` over the last 10 s, or since the start.
    pub rate_bps: BitRate,
    /// Remaining time at this rate; null until the walk is complete, and while nothing moves.
    pub left_ns: Option<Nanos>,
    /// What limited it in the last 10 s. Unknown for a comparison.
    pub held: CopyHeld,
}
