//! A change of a condition during a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Side;
use crate::units::Nanos;

/// The name of the speed that a link has negotiated, among conditions.
pub const LINK_SPEED: &str = "link-speed";
/// The name of the number of times that a link's carrier came or went, among conditions.
pub const CARRIER_CHANGES: &str = "carrier-changes";

/// A condition of a host that changed while a run went on, and that landspeed did not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionChange {
    /// The host that has it. Of a copy, host A is the source.
    pub side: Side,
    /// Its name in the table of knobs; `link-speed` for the speed that a link has negotiated, `carrier-changes` for
    /// the number of times that its carrier came or went. The speed of a bridge is not known if several of its ports
    /// have a carrier, nor is that of a VLAN or macvlan on it.
    pub knob: String,
    /// Its value before; null if it could not be read.
    pub before: Option<String>,
    /// Its value afterwards; null if it could not be read.
    pub after: Option<String>,
    /// When it was last seen to be as before, as time since the beginning.
    pub since_ns: Nanos,
    /// When it was first seen to be changed, as time since the beginning.
    pub until_ns: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    #[test]
    fn what_a_line_says_comes_back() {
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
