//! The state of a knob, as an agent reports it.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::unknown;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct KnobState {
    /// Name in the table of knobs.
    pub knob: String,
    /// Current value, in the table's spelling; `None` if it cannot be read.
    pub value: Option<String>,
    /// Why the knob cannot be changed here ("veth has no rings"); `None` if it can be.
    pub skip: Option<String>,
    /// Greatest value that this device accepts (ring slots, channels, MTU); `None` if it reports none.
    pub most: Option<u64>,
    /// Values that this host offers (congestion controls); empty if it reports none.
    pub choices: Vec<String>,
    /// Number of members (queues, features, processors) that the value covers; 1 for a plain value, `None` if it
    /// cannot be read.
    #[serde(with = "unknown::Measured::<u32>")]
    pub members: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KnobChangeReport {
    pub knob: String,
    pub before: String,
    /// Value read back after the write.
    pub after: String,
    /// Duration of the write and the read-back.
    pub took_ns: Nanos,
}
