//! The document that `explain --json` prints.

use std::collections::BTreeMap;

use crate::units::BitRate;
use serde::{Deserialize, Serialize};

use super::{
    Finding, FlowWindow, HostLimits, NoVerdictReason, PacedStream, PathCapacity, PathProbe, PathRate,
    PerPacketCost, SizeAnswer,
};
use crate::{HostFacts, Observations, WanReport};

pub const EXPLAIN_FORMAT: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CostFigure {
    /// Share of the host's sampled processor time, 0 to 1.
    pub share: f64,
    /// Processor nanoseconds per byte of payload; `None` if no byte moved.
    pub ns_per_byte: Option<f64>,
    /// Processor nanoseconds per packet on the link; `None` if no packet was counted.
    pub ns_per_packet: Option<f64>,
}

/// A step of the staircase: the limit of one part of a host, or the flow's current goodput.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LimitStep {
    /// Name of the limit, such as "memory, host B", "raw packets, host A" or "link, host A". "the flow now" is the
    /// current goodput.
    pub name: String,
    /// Highest payload rate that the limit allows, or the current goodput.
    pub rate_bps: BitRate,
    /// How the rate was determined.
    pub how: String,
    /// Goodput of the flows through this host, of several pairs together; `None` in documents of older versions, where it
    /// is that of the only pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_bps: Option<BitRate>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ExplainedHost {
    /// Name that the user gave: "A", "local", "netns:dtn1".
    pub name: String,
    /// Facts about the host; `None` if they were not requested.
    pub facts: Option<HostFacts>,
    /// Processor time by class of work. Empty if nothing was sampled.
    pub cost: BTreeMap<String, CostFigure>,
    /// Measured limits of the host's parts; `None` if they were not measured.
    pub limits: Option<HostLimits>,
    /// All observations over the window that the verdict covers.
    pub observed: Observations,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ExplainReport {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    pub command: String,
    pub topology: String,
    /// What was observed: "stream over tcp", "flow 10.0.0.2:443".
    pub watched: String,
    /// Goodput of all flows over the window.
    pub goodput_bps: BitRate,
    /// Payload rate that the path allows; `None` if the path is not the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_rate: Option<PathRate>,
    /// Causes, the most important first.
    pub verdict: Vec<Finding>,
    /// Reason why there is no verdict; `None` if there is a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_tell: Option<NoVerdictReason>,
    /// What could not be judged and why, one line each.
    pub unjudged: Vec<String>,
    /// The hosts, A first.
    pub hosts: Vec<ExplainedHost>,
    /// Cost of a message by its size; empty without `--sizes`.
    pub per_packet: Vec<PerPacketCost>,
    /// Conclusions from `per_packet`: the answers to Jin & Yoo's questions for these hosts.
    pub answers: Vec<SizeAnswer>,
    /// The staircase: the limits of the hosts' parts and the current goodput of the flow, of several pairs together, the
    /// highest rate first.
    pub staircase: Vec<LimitStep>,
    /// The window model compared with the flows that moved the most data, the busiest first.
    pub windows: Vec<FlowWindow>,
    /// Result of the probes that were sent because the path carried nothing; `None` if none were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<PathProbe>,
    /// Result of the same stream at a lower rate, which shows whether segments are lost at that rate too; `None` if
    /// the stream was not repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slower: Option<PacedStream>,
    /// Result of a search for the rate that the path carries; `None` without `--capacity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<PathCapacity>,
    pub wan: Option<WanReport>,
    /// Bytes per processor second with the path tracer, divided by bytes per processor second without it; `None` if the
    /// tracer was not attached.
    pub tracer_effect: Option<crate::Estimate>,
    pub notes: Vec<String>,
}
