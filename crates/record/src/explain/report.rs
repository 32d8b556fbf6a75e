//! The one document that `explain --json` prints.

use std::collections::BTreeMap;

use landspeed_units::BitRate;
use serde::{Deserialize, Serialize};

use super::{CannotTell, Finding, FlowWindow, HostLimits, PathProbe, PerPacket, SizeAnswer};
use crate::{HostFacts, Observations, WanReport};

pub const EXPLAIN_FORMAT: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CostFigure {
    /// Share of the host's sampled processor time, 0 to 1.
    pub share: f64,
    /// Processor nanoseconds per byte of payload; `None` where no byte moved.
    pub ns_per_byte: Option<f64>,
    /// Processor nanoseconds per packet on the link; `None` where none was counted.
    pub ns_per_packet: Option<f64>,
}

/// A step of the staircase of limits, highest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitStep {
    /// "memory copy, host B", "raw packets, host A", "link", "TCP now".
    pub name: String,
    /// What it can carry, in bits of payload.
    pub rate_bps: BitRate,
    /// How that was found.
    pub how: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainedHost {
    /// As the user called it: "A", "local", "netns:dtn1".
    pub name: String,
    /// What the host is; `None` where that was not asked.
    pub facts: Option<HostFacts>,
    /// Processor time by class of work, in the order of a packet's way; empty where nothing was sampled.
    pub cost: BTreeMap<String, CostFigure>,
    /// What its parts can do at most; `None` where that was not measured.
    pub limits: Option<HostLimits>,
    /// Everything that was seen over the window that the verdict is about.
    pub observed: Observations,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainReport {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    pub command: String,
    pub topology: String,
    /// What was watched: "stream over tcp", "flow 10.0.0.2:443".
    pub watched: String,
    /// Goodput of all flows over the window.
    pub goodput_bps: BitRate,
    /// Causes, first the one that matters most.
    pub verdict: Vec<Finding>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_tell: Option<CannotTell>,
    /// What could not be judged, and why, one line each.
    pub unjudged: Vec<String>,
    /// The hosts, A first.
    pub hosts: Vec<ExplainedHost>,
    /// Cost over sizes; empty without `--sizes`.
    pub per_packet: Vec<PerPacket>,
    /// What follows from it: Jin & Yoo's questions with the answers of these hosts.
    pub answers: Vec<SizeAnswer>,
    /// The staircase, highest first.
    pub staircase: Vec<LimitStep>,
    /// The window model held against the flows that moved most, the busiest first.
    pub windows: Vec<FlowWindow>,
    /// What was sent to find out what a path carries that carried nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<PathProbe>,
    pub wan: Option<WanReport>,
    /// Bytes per processor second with the path tracer over without: ratio and 95 % interval, where it
    /// was attached.
    pub tracer_effect: Option<crate::Estimate>,
    pub notes: Vec<String>,
}
