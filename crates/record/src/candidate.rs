//! A candidate: one change that a ladder may try.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::Cell;

/// A change and its prerequisites, which are tried, kept or left out together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Candidate {
    /// Name of the knob.
    pub knob: String,
    /// The value to try.
    pub value: String,
    /// The value before the change, for display.
    pub from: String,
    /// All settings that the candidate changes, prerequisites included.
    pub change: Cell,
    /// The prerequisites as "knob=value", for display.
    pub with: Vec<String>,
    /// Names of other knobs whose effect depends on this one. If this candidate was rejected, it is tried again after a
    /// candidate of one of these knobs is kept.
    pub interacts: Vec<String>,
    /// Place in the order of trials, lowest first, from the literature and the probe.
    pub rank: u32,
    /// Usual duration of one toggle. A knob that is slow to change gets blocks of four trials instead of eight.
    pub toggle_ns: Nanos,
    /// Reason why the change is not available or cannot matter here; `None` if it can be tried. A candidate with a
    /// reason is listed and never tried.
    pub skip: Option<String>,
    /// True if `skip` says that the change has no effect here (not tried), and false if it says that the knob is not
    /// available (skipped).
    pub cannot_matter: bool,
    /// Source of the expected effect: paper section, RFC, or kernel documentation.
    pub source: String,
}
