//! Settings of hosts that a copy changes, and restores at its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cell, Settings, Side};

/// Settings of both hosts during a copy (`--tune`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyHostSettings {
    /// The record of `landspeed tune` that kept these settings.
    pub record: String,
    /// Settings of the source's host; empty if the record kept none there.
    pub source: Settings,
    /// Settings of the target's host; empty if the record kept none there.
    pub target: Settings,
}

impl CopyHostSettings {
    /// Returns true if there is nothing to set.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty() && self.target.is_empty()
    }

    /// Returns the settings as a change of a pair's hosts. The source is at side `from`.
    pub fn cell(&self, from: Side) -> Cell {
        let (source, target) = (self.source.clone(), self.target.clone());
        let [a, b] = if from == Side::A { [source, target] } else { [target, source] };
        Cell { a, b, flow: Settings::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_gets_its_own_settings_whichever_side_it_is() {
        let one = |name: &str| Settings::from([(name.to_owned(), "on".to_owned())]);
        let tuned = CopyHostSettings { source: one("tso"), target: one("gro"), ..Default::default() };
        let [forward, back] = Side::BOTH.map(|from| tuned.cell(from));
        assert_eq!((&forward.a, &forward.b), (&one("tso"), &one("gro")));
        assert_eq!((&back.a, &back.b), (&one("gro"), &one("tso")));
        assert!(!tuned.is_empty() && CopyHostSettings::default().is_empty());
    }
}
