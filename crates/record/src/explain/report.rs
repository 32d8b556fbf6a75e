//! The one document that `explain --json` prints.

use std::collections::BTreeMap;

use landspeed_units::BitRate;
use serde::{Deserialize, Serialize};

use super::{Finding, FlowWindow, HostLimits, PerPacket, SizeAnswer};
use crate::{HostFacts, Observations, WanReport};

/// The version of [`ExplainReport`].
pub const EXPLAIN_FORMAT: u32 = 1;

/// Cost of one class on one host.
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
    /// What it can carry.
    pub rate_bps: BitRate,
    /// How that was found.
    pub how: String,
}

/// One host of a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainedHost {
    /// As the user called it: "A", "local", "netns:dtn1".
    pub name: String,
    /// What it is, where that was found out.
    pub facts: Option<HostFacts>,
    /// Cost by class name.
    pub cost: BTreeMap<String, CostFigure>,
    /// Its limits, where they were measured.
    pub limits: Option<HostLimits>,
    /// Everything that was seen over the window that the verdict is about.
    pub observed: Observations,
}

/// What `explain` found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainReport {
    /// See [`EXPLAIN_FORMAT`].
    pub format: u32,
    /// landspeed's version.
    pub landspeed: String,
    /// RFC 3339 UTC.
    pub started: String,
    /// The command line.
    pub command: String,
    /// "lab:back-to-back", or the hosts.
    pub topology: String,
    /// What was watched: "stream over tcp", "flow 10.0.0.2:443".
    pub watched: String,
    /// Goodput over the window.
    pub goodput_bps: BitRate,
    /// Causes, first the one that matters most.
    pub verdict: Vec<Finding>,
    /// What could not be judged, and why.
    pub unjudged: Vec<String>,
    /// The hosts, A first.
    pub hosts: Vec<ExplainedHost>,
    /// Cost over sizes, where it was measured.
    pub per_packet: Vec<PerPacket>,
    /// What follows from it: Jin & Yoo's questions with the answers of these hosts.
    pub answers: Vec<SizeAnswer>,
    /// The staircase, highest first.
    pub staircase: Vec<LimitStep>,
    /// The window model held against the flows that moved most, the busiest first.
    pub windows: Vec<FlowWindow>,
    /// The wide-area link in user space between the hosts, where they are joined by one.
    pub wan: Option<WanReport>,
    /// Bytes per processor second with the path tracer over without: ratio and 95 % interval, where it
    /// was attached.
    pub tracer_effect: Option<crate::Estimate>,
    /// What a reader should know, one line each.
    pub notes: Vec<String>,
}
