//! The raw data of one run of a study.

use std::collections::BTreeSet;

use crate::units::{BitRate, Bytes, CpuNanos, Nanos};
use serde::{Deserialize, Serialize};

use crate::{WanStats, unknown};

use super::study::FlowPlan;

/// A sample of a flow over one interval. Samples are in order of time, and the first interval starts with the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RunSample {
    /// End of the interval, from the start of the run.
    pub at_ns: Nanos,
    /// Payload that reached the receiver in order within the interval.
    pub goodput_bytes: Bytes,
    /// Congestion window at the end of the interval, in segments; 0 before the flow enters and after it leaves. `None`
    /// if the flow's transport does not report its window.
    pub cwnd_segments: Option<u32>,
    /// The sender's smoothed round trip at the end of the interval; `None` before the first measurement.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub rtt_ns: Nanos,
    /// Segments retransmitted since the flow's start.
    pub retransmits: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ProbeSample {
    /// Time when the probe was sent, from the start of the run.
    pub at_ns: Nanos,
    /// Round trip of the probe.
    pub rtt_ns: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct QueueSample {
    /// Time of the sample, from the start of the run.
    pub at_ns: Nanos,
    /// Bytes of IP packets in the queue, including the packet on the line.
    pub waiting_bytes: Bytes,
    /// Packets that the full queue has dropped since the start of the run.
    pub drops: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RunFlow {
    /// Start and end of the flow, and the data that it sends.
    pub plan: FlowPlan,
    /// One sample per interval. Empty for short flows.
    pub samples: Vec<RunSample>,
    /// Time from the first byte sent to the last byte acknowledged; `None` unless a short flow completed.
    pub took_ns: Option<Nanos>,
}

impl RunFlow {
    /// Returns true for a short flow of `ContestQuestion::ShortFlows`. Such a flow ends once its data is sent.
    pub fn is_short(&self) -> bool {
        self.plan.data_bytes.is_some()
    }
}

/// The path of one repeat, if it differs from the path of the study.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RunPath {
    /// Rate of the bottleneck, in bits of IP packets.
    pub rate_bps: BitRate,
    /// Idle round trip.
    pub rtt_ns: Nanos,
    /// Capacity of the queue in front of the bottleneck, in bytes of IP packets.
    pub queue_bytes: Bytes,
}

/// The key of a run within its study.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StudyRunKey {
    /// Name of the contest.
    pub contest: String,
    /// Number of the repeat, from 0.
    pub repeat: u32,
}

impl StudyRun {
    pub fn key(&self) -> StudyRunKey {
        StudyRunKey { contest: self.contest.clone(), repeat: self.repeat }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StudyRun {
    /// Name of the contest (`Contest::name`).
    pub contest: String,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// Start of the run, from the start of the study; `None` in the simulator.
    #[serde(deserialize_with = "unknown::or_default")]
    pub at_ns: Option<Nanos>,
    /// The run's own path, if repeats vary it (`Study::varied_share`); `None` if it is the path of the study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<RunPath>,
    /// Data of each flow, in the order of the schedule.
    pub flows: Vec<RunFlow>,
    /// Round trips of the probes that came back.
    pub probes: Vec<ProbeSample>,
    /// Number of probes that did not come back, or that came back only after a retransmission.
    pub probes_lost: u64,
    /// Length of the queue over time; empty if the link does not report it.
    pub queue: Vec<QueueSample>,
    /// Processor time of the sending process over the run; `None` in the simulator.
    pub sender_cpu_ns: Option<CpuNanos>,
    /// Clock of the sender's processors in Hz; `None` if the host does not report it.
    pub sender_clock_hz: Option<f64>,
    /// Congestion controls that the sender's sockets reported (TCP_CONGESTION); empty in the simulator.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub controls: BTreeSet<String>,
    /// Statistics of landspeed's own link during this run; `None` over another link.
    pub link: Option<WanStats>,
    /// Disturbances of the hosts during the run, one line each: other programs, stolen time, heat, a processor quota, a
    /// link that lost its carrier.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<String>,
    /// Reasons why the run does not count, one line each: the link was late, or lost packets that it should have
    /// carried. Empty for a run that counts.
    pub invalid: Vec<String>,
}
