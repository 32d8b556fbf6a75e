//! One run as it was seen.

use std::collections::BTreeSet;

use landspeed_units::{BitRate, Bytes, CpuNanos, Nanos};
use serde::{Deserialize, Serialize};

use crate::{WanStats, unknown};

use super::study::FlowPlan;

/// One interval of a flow. Samples are in order of time; the first interval starts when the run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSample {
    /// End of the interval, since the start of the run.
    pub at_ns: Nanos,
    /// Payload that reached the receiver in order within the interval.
    pub goodput_bytes: Bytes,
    /// Congestion window at its end, in segments; 0 before the flow enters and after it has left. `None` where the flow's transport
    /// does not tell.
    pub cwnd_segments: Option<u32>,
    /// The sender's smoothed round trip at its end; `None` before the first was measured.
    #[serde(with = "unknown::measured")]
    pub rtt_ns: Nanos,
    /// Segments retransmitted since the flow's start.
    pub retransmits: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeSample {
    /// When it was sent, since the start of the run.
    pub at_ns: Nanos,
    /// Its round trip.
    pub rtt_ns: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueSample {
    /// Since the start of the run.
    pub at_ns: Nanos,
    /// What waits, in bytes of IP packets, the packet on the line included.
    pub waiting_bytes: Bytes,
    /// Packets that the queue had no room for, so far.
    pub drops: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFlow {
    /// When it runs, and what it sends.
    pub plan: FlowPlan,
    /// At the end of each interval. Empty for short flows.
    pub samples: Vec<RunSample>,
    /// From the first byte sent to the last acknowledged, where it is short and came to its end.
    pub took_ns: Option<Nanos>,
}

impl RunFlow {
    /// Whether it is one of the short flows of [`super::Question::ShortFlows`]: it has an end of its own.
    pub fn is_short(&self) -> bool {
        self.plan.data_bytes.is_some()
    }
}

/// The path of one repeat, where it is not exactly the study's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunPath {
    /// Rate of the bottleneck, in bits of IP packets.
    pub rate_bps: BitRate,
    /// Round trip when idle.
    pub rtt_ns: Nanos,
    /// Most bytes of IP packets that wait in front of the bottleneck.
    pub queue_bytes: Bytes,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StudyRun {
    /// The contest: [`super::Contest::name`].
    pub contest: String,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// When the run started, since the start of the study; `None` in the simulator.
    #[serde(deserialize_with = "unknown::or_default")]
    pub at_ns: Option<Nanos>,
    /// Its own path, where repeats vary it ([`super::Study::varied_share`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<RunPath>,
    /// What was seen of each flow, in the order of the schedule.
    pub flows: Vec<RunFlow>,
    /// Round trips of the probe that came back.
    pub probes: Vec<ProbeSample>,
    /// Probes that did not come back, or only by being sent again.
    pub probes_lost: u64,
    /// The queue over time, where the link tells.
    pub queue: Vec<QueueSample>,
    /// Processor time of the sending process over the run; `None` in the simulator.
    pub sender_cpu_ns: Option<CpuNanos>,
    /// Clock of the sender's processors in Hz, as the host tells; `None` where it does not.
    pub sender_clock_hz: Option<f64>,
    /// Congestion controls that the sender's sockets told (TCP_CONGESTION); empty in the simulator.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub controls: BTreeSet<String>,
    /// What the link did during this run, where it is landspeed's own.
    pub link: Option<WanStats>,
    /// Why the run does not count, one line each: the link was late, or lost what it should not. Empty for a run
    /// that does.
    pub invalid: Vec<String>,
}
