//! A change of a condition during a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Side;
use crate::units::Nanos;

/// The name of the condition that is the negotiated speed of a link.
pub const LINK_SPEED: &str = "link-speed";
/// The name of the condition that counts how often a link's carrier came or went.
pub const CARRIER_CHANGES: &str = "carrier-changes";

/// A condition of a host that changed during a run without a change by landspeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionChange {
    /// The host. In a copy, host A is the source.
    pub side: Side,
    /// Name of the condition in the table of knobs; `link-speed` for the negotiated speed of a link, `carrier-changes`
    /// for the number of times that its carrier came or went. The speed of a bridge is unknown if several of its ports
    /// have a carrier, and so is that of a VLAN or macvlan on it.
    pub knob: String,
    /// Value before the change; null if it could not be read.
    pub before: Option<String>,
    /// Value after the change; null if it could not be read.
    pub after: Option<String>,
    /// Time of the last reading of the old value, from the start of the run.
    pub since_ns: Nanos,
    /// Time of the first reading of the new value, from the start of the run.
    pub until_ns: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    #[test]
    fn a_line_is_read_back_as_it_was_written() {
        let change = ConditionChange {
            side: Side::B,
            knob: "congestion-control".to_owned(),
            before: Some("cubic".to_owned()),
            after: None,
            since_ns: Nanos::secs(30),
            until_ns: Nanos::secs(60),
        };
        let line = Line::ConditionChange(Box::new(change));
        let text = serde_json::to_vec(&line).unwrap();
        assert_eq!(crate::decode::<Line>(&text).unwrap(), line);
        assert!(String::from_utf8(text).unwrap().contains("\"line\":\"condition-change\""));
    }
}
