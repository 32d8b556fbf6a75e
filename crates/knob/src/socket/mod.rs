//! Socket options of the flow.

mod buffer;
mod option;
mod zerocopy;

use landspeed_units::Nanos;

use crate::{Domain, Knob, On, Row, Scope};

/// All knobs of the family.
pub(crate) const KNOBS: &[&[Knob]] = &[buffer::KNOBS, option::KNOBS, zerocopy::KNOBS];

/// What rows of the flow have in common: each trial opens new sockets, so there is nothing to put back.
pub(crate) const FLOW: Row = Row {
    name: "",
    about: "",
    scope: Scope::Flow,
    on: On::Flow,
    domain: Domain::Switch,
    toggle: Nanos(0),
    disturbs: &[],
    can_cut: false,
    interacts: &[],
    needs: &[],
    placebo: None,
    source: "socket(7), tcp(7)",
};

/// Why busy polling cannot matter on a veth.
pub(crate) const NO_QUEUE: &str =
    "veth has no hardware queue to poll: packets arrive in the sender's own context";

/// A field that is `None` for 0.
macro_rules! bytes_or_none {
    ($knob:literal, $field:ident) => {
        $crate::Turn::Flow {
            get: |flow| flow.$field.map_or_else(|| "0".into(), |bytes| bytes.0.to_string()),
            set: |flow, value| {
                let bytes = $crate::flow::number::<u64>($knob, value)?;
                flow.$field = (bytes > 0).then_some(landspeed_units::Bytes(bytes));
                Ok(())
            },
        }
    };
}
/// A field that is true for "on".
macro_rules! switch {
    ($field:ident) => {
        $crate::Turn::Flow {
            get: |flow| if flow.$field { "on" } else { "off" }.into(),
            set: |flow, value| {
                flow.$field = value == "on";
                Ok(())
            },
        }
    };
}
use {bytes_or_none, switch};
