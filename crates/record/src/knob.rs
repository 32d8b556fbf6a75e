//! What an agent says of a knob.

use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

use crate::unknown;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KnobState {
    /// Its name in the table of knobs.
    pub knob: String,
    /// Its value now, in the table's spelling; `None` where it cannot be read.
    pub value: Option<String>,
    /// Why the knob cannot be turned here ("veth has no rings"), `None` where it can.
    pub skip: Option<String>,
    /// The greatest value that this device takes, where it says so (ring slots, channels, MTU).
    pub most: Option<u64>,
    /// The values that this host offers, where it says so (congestion controls); empty where it does not.
    pub choices: Vec<String>,
    /// How many members (queues, features, processors) one value covers; 1 for a plain value, `None` where
    /// it cannot be read.
    #[serde(with = "unknown::measured")]
    pub members: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TurnReport {
    pub knob: String,
    pub before: String,
    /// Value read back after the write.
    pub after: String,
    /// How long write and read-back took.
    pub took_ns: Nanos,
}
