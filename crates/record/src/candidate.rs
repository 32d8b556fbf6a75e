//! A candidate: one change that a ladder may try.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::Cell;

/// One change with its prerequisites. They are tried, kept and left out together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Candidate {
    /// Name of the knob.
    pub knob: String,
    /// The value to try.
    pub value: String,
    /// The value before, for display.
    pub from: String,
    /// All settings that it changes, prerequisites included.
    pub change: Cell,
    /// The prerequisites as "knob=value", for display.
    pub with: Vec<String>,
    /// Other knobs whose effect depends on this one. Once one of them is kept, a rejected candidate is tried again.
    pub interacts: Vec<String>,
    /// Place in the order of trials, lowest first, from the literature and the probe.
    pub rank: u32,
    /// Time that one toggle takes. Slow knobs get longer blocks.
    pub toggle_ns: Nanos,
    /// Why it is skipped or cannot matter here. Such a candidate is listed and never tried.
    pub skip: Option<String>,
    /// True if `skip` says that the change has no effect here (not tried), and false if it says that the knob is not
    /// available (skipped).
    pub cannot_matter: bool,
    /// Where the expectation comes from: paper section, RFC, or kernel documentation.
    pub source: String,
}
