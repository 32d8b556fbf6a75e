//! The result of a record run: what `landspeed tune --record-run --json` prints (feng-2003 section 4).

use landspeed_units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::{Cell, HostFacts, PathFacts, WanStats};

pub const RECORD_RUN_FORMAT: u32 = 1;

/// A single stream over the path, its window capped or not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordRunFigures {
    /// Most that may be in flight, by the sender's buffer; `None` where nothing but congestion control bounds it.
    pub window_bytes: Option<Bytes>,
    /// Payload at the receiver, start-up left out.
    pub rate_bps: BitRate,
    /// `rate_bps` over the path's rate: what headers and idle times leave.
    pub efficiency: f64,
    /// The most that headers leave of the path's rate, for this MTU.
    pub ceiling: f64,
    /// Rate times distance (the Internet2 Land Speed Record's metric); `None` where no distance was given.
    pub bit_metres_per_s: Option<f64>,
    /// Time that was counted.
    pub window_ns: Nanos,
    /// Segments sent again within it.
    pub retransmits: u64,
    /// Segments sent again from the flow's start to its end.
    pub retransmits_in_all: u64,
    /// Smoothed round trip at its end: beyond the idle path's, what waits in queues.
    pub rtt_ns: Nanos,
    /// What a link of landspeed's own did from the flow's start to its end; `None` where there is none.
    pub link: Option<WanStats>,
    /// Why the run does not count, one line each.
    pub unfit: Vec<String>,
}

/// A segment lost on purpose on the sockets of a lab, and how long the window took to grow back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LabRecovery {
    /// From the repair to the full window; `None` where that was not seen in the time there was.
    pub back_s: Option<f64>,
    /// What the paper's formula says of the window that was there: half of it, one segment a round trip.
    pub expected_s: f64,
    /// Segments of the window before the loss.
    pub window_segments: u32,
    /// The least that the loss left of it.
    pub least_segments: u32,
    /// Segments sent again: two, this one and the one whose loss ends slow start, where nothing else was lost.
    pub retransmits: u64,
    /// Why the run does not count, one line each.
    pub unfit: Vec<String>,
}

/// How long one loss costs a flow that fills the path, with Reno (feng-2003 Table 1).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Recovery {
    /// By the paper's formula: half the window, one segment a round trip.
    pub formula_s: f64,
    /// In the simulator, packet by packet, after one loss on this path; `None` where it was not simulated.
    pub simulated_s: Option<f64>,
    /// On real sockets; `None` where that was not asked for.
    pub lab: Option<LabRecovery>,
    /// Payload of a segment.
    pub segment_bytes: Bytes,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordRun {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    pub command: String,
    pub topology: String,
    /// The sender.
    pub host_a: HostFacts,
    /// The receiver.
    pub host_b: HostFacts,
    /// The path between them, its idle round trip.
    pub path: PathFacts,
    /// The path's rate, in bits of IP packets.
    pub path_rate_bps: BitRate,
    /// Rate times idle round trip.
    pub bdp_bytes: Bytes,
    /// The smaller MTU of both links.
    pub mtu_bytes: u32,
    /// How far the data went; `None` where it was not given.
    pub distance_m: Option<f64>,
    /// What was set for the capped run, on both hosts.
    pub cell: Cell,
    /// The window capped, so that the queue is approached and never overrun.
    pub capped: RecordRunFigures,
    /// The same without the cap.
    pub uncapped: RecordRunFigures,
    /// How long one loss costs on this path.
    pub recovery: Recovery,
    /// Whether every value reads back as it was before.
    pub restored: bool,
    /// Whether all that differs is as another program set it.
    #[serde(default)]
    pub left: bool,
    pub notes: Vec<String>,
}
