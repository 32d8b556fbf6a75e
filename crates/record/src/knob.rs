//! What an agent says of a knob.

use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

/// One knob on one host, as probed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KnobState {
    /// Name from the knob table.
    pub knob: String,
    /// Its value now, in the table's spelling; `None` where it cannot be read.
    pub value: Option<String>,
    /// Why the knob cannot be turned here ("veth has no rings"), `None` where it can.
    pub skip: Option<String>,
}

/// What one turn of a knob did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TurnReport {
    /// Name from the knob table.
    pub knob: String,
    /// Value before.
    pub before: String,
    /// Value read back after the write.
    pub after: String,
    /// How long write and read-back took.
    pub took_ns: Nanos,
}
