//! A candidate: one change that a ladder may try.

use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

use crate::Cell;

/// One change with its prerequisites: tried, kept and left out as one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Candidate {
    /// The knob.
    pub knob: String,
    /// The value to try.
    pub value: String,
    /// Its value before, for people.
    pub from: String,
    /// What it changes, prerequisites included.
    pub change: Cell,
    /// The prerequisites for people, as "knob=value".
    pub with: Vec<String>,
    /// Other knobs whose effect depends on this one: once one of them is kept, a rejected candidate is
    /// tried again.
    pub interacts: Vec<String>,
    /// Place in the order, lowest first, from the literature and the probe.
    pub rank: u32,
    /// Time that one toggle takes, so that slow knobs get longer blocks.
    pub toggle_ns: Nanos,
    /// Why it is skipped or cannot matter here; such a candidate is listed and never tried.
    pub skip: Option<String>,
    /// Whether `skip` is for want of the knob (skipped) or for want of effect (not tried).
    pub cannot_matter: bool,
    /// Where the expectation comes from.
    pub source: String,
}
