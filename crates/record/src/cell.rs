//! A cell: one configuration of both hosts and of the flow.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Values of factors by name, in canonical spelling (`docs/reference/knobs`).
pub type Settings = BTreeMap<String, String>;

/// One of the two hosts of a path. The data of an undirected workload flows from A to B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first host named; sends unless the direction is reversed.
    A,
    /// The second host named.
    B,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Side::A => "A",
            Side::B => "B",
        })
    }
}

/// One configuration: the value of every knob that the run varies.
///
/// All cells of a run have the same keys, so that only the values that differ must be set to change from one cell to
/// another. A cell with fewer keys is a *change*: see [`Cell::with`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cell {
    /// Knobs of host A, by name.
    pub a: Settings,
    /// Knobs of host B, by name.
    pub b: Settings,
    /// Settings of the flow itself: transport, sockets, sizes, threads.
    pub flow: Settings,
}

impl Cell {
    /// Returns this cell with the values of `change`. Keys that `change` lacks keep their values.
    #[must_use]
    pub fn with(&self, change: &Cell) -> Cell {
        let lay = |under: &Settings, over: &Settings| {
            let mut merged = under.clone();
            merged.extend(over.clone());
            merged
        };
        Cell { a: lay(&self.a, &change.a), b: lay(&self.b, &change.b), flow: lay(&self.flow, &change.flow) }
    }

    pub fn host(&self, side: Side) -> &Settings {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }

    pub fn host_mut(&mut self, side: Side) -> &mut Settings {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_replaces_only_what_it_names() {
        let settings = |pairs: &[(&str, &str)]| -> Settings {
            pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
        };
        let start = Cell { a: settings(&[("mtu", "1500"), ("tso", "off")]), ..Cell::default() };
        let change = Cell { a: settings(&[("tso", "on")]), ..Cell::default() };
        assert_eq!(start.with(&change).a, settings(&[("mtu", "1500"), ("tso", "on")]));
    }
}
