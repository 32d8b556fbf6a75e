//! The result of a record run: what `landspeed tune --record-run --json` prints (feng-2003 section 4).

use crate::units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::{Cell, HostFacts, PathFacts, RestoreOutcome, WanStats};

pub const RECORD_RUN_FORMAT: u32 = 1;

/// Figures of a single stream over the path, with or without a limit on its window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RecordRunFigures {
    /// Limit on the data in flight, set by the sender's buffer; `None` if only congestion control limits it.
    pub window_bytes: Option<Bytes>,
    /// Payload rate at the receiver, without the start-up.
    pub rate_bps: BitRate,
    /// Payload rate divided by the path's rate. Headers and idle times take the rest.
    pub efficiency: f64,
    /// Largest possible `efficiency` with this MTU: the share of the path's rate that headers leave for payload.
    pub ceiling: f64,
    /// Payload rate times distance (the Internet2 Land Speed Record's metric); `None` without a distance.
    pub bit_metres_per_s: Option<f64>,
    /// Length of the measured window.
    pub window_ns: Nanos,
    /// Segments retransmitted within the window.
    pub retransmits: u64,
    /// Segments retransmitted from the flow's start to its end, outside the window too.
    pub retransmits_in_all: u64,
    /// Smoothed round trip at the end of the flow. Its excess over the idle round trip is time in queues.
    pub rtt_ns: Nanos,
    /// Statistics of landspeed's own link from the flow's start to its end; `None` without such a link.
    pub link: Option<WanStats>,
    /// Reasons why the run does not count, one line each; empty for a run that counts.
    pub unfit: Vec<String>,
}

/// The recovery from a segment that a lab lost on purpose, on real sockets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LabRecovery {
    /// Time from the retransmission until the window is as large as before the loss; `None` if the run ended earlier.
    pub back_s: Option<f64>,
    /// Recovery time for the window before the loss by the paper's formula: half the window, at one segment per round
    /// trip.
    pub expected_s: f64,
    /// Window before the loss, in segments.
    pub window_segments: u32,
    /// Smallest window after the loss, in segments.
    pub least_segments: u32,
    /// Segments retransmitted. Without other losses there are two: the segment lost on purpose, and the segment whose
    /// loss ends slow start.
    pub retransmits: u64,
    /// Reasons why the run does not count, one line each; empty for a run that counts.
    pub unfit: Vec<String>,
}

/// The recovery time after one loss, for a Reno flow that fills the path (feng-2003 Table 1).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LossRecovery {
    /// Recovery time by the paper's formula: half the window, at one segment per round trip.
    pub formula_s: f64,
    /// Recovery time after one loss on this path in the simulator; `None` if it was not simulated.
    pub simulated_s: Option<f64>,
    /// Recovery on real sockets in a lab; `None` if it was not requested.
    pub lab: Option<LabRecovery>,
    /// Payload of a segment.
    pub segment_bytes: Bytes,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RecordRunReport {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    pub command: String,
    pub topology: String,
    /// The sender.
    pub host_a: HostFacts,
    /// The receiver.
    pub host_b: HostFacts,
    /// The path between the hosts, with its idle round trip.
    pub path: PathFacts,
    /// Rate of the path, in bits of IP packets.
    pub path_rate_bps: BitRate,
    /// Rate times idle round trip.
    pub bdp_bytes: Bytes,
    /// The smaller MTU of the two hosts' links.
    pub mtu_bytes: u32,
    /// Distance that the data travelled, in metres; `None` if it was not given.
    pub distance_m: Option<f64>,
    /// Settings of the capped run on both hosts.
    pub cell: Cell,
    /// Run with a limited window, which almost fills the queue and never overruns it.
    pub capped: RecordRunFigures,
    /// Run without a limit on the window.
    pub uncapped: RecordRunFigures,
    /// The recovery time after one loss on this path.
    pub recovery: LossRecovery,
    /// True if every value reads back as before the run.
    pub restored: bool,
    /// True if another program changed every setting that does not read back as before.
    #[serde(default)]
    pub left: bool,
    /// True if all hosts that are not known to be restored could not be asked, because their sessions ended.
    #[serde(default)]
    pub unknown: bool,
    pub notes: Vec<String>,
}

impl RecordRunReport {
    pub fn restore_outcome(&self) -> RestoreOutcome {
        let RecordRunReport { restored, left, unknown, notes, .. } = self;
        RestoreOutcome { restored: *restored, left: *left, unknown: *unknown, notes: notes.clone() }
    }
}
