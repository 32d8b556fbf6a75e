//! The rate that a path carries, as a search with datagrams found it.

use crate::units::{BitRate, Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The highest load of datagrams that a path carried (RFC 9971).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PathCapacity {
    /// Payload of the highest load that was carried.
    pub carried_bps: BitRate,
    /// True if the path, and not a host, was the limit.
    pub is_of_path: bool,
    /// The burst above that load that the path let through; null without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<PathBurst>,
}

/// A burst that a path lets through at a rate that it does not carry for long, as a token bucket does.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PathBurst {
    /// Payload rate of the burst.
    pub rate_bps: BitRate,
    /// Payload above the carried load that passed. The bucket holds at least this much.
    pub least_bytes: Bytes,
}
