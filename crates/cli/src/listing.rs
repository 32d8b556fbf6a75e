//! What lists hold: each one JSON document, a table and CSV. docs/reference/json.md is made from the types here.

use landspeed_knob::doctor;
use landspeed_units::{BitRate, Nanos};
use serde::Serialize;

/// Version of every document here.
pub(crate) const FORMAT: u32 = 1;

/// What `landspeed knobs --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct KnobList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The settings, those of the flow first.
    pub(crate) knobs: Vec<KnobEntry>,
}

/// A setting.
#[derive(Debug, Serialize)]
pub(crate) struct KnobEntry {
    /// Its name here.
    pub(crate) name: String,
    /// What it does.
    pub(crate) about: String,
    /// The system's names, which are accepted too; the usual one first.
    pub(crate) system_names: Vec<String>,
    /// The values that it takes, in words.
    pub(crate) takes: String,
    /// How far it reaches: "flow", "network namespace", "device" or "whole machine (not in a lab)".
    pub(crate) scope: String,
    /// The value of a flow's own setting unless it is set; null for a host's.
    pub(crate) default: Option<String>,
    /// The shell command that reads it; null where there is none.
    pub(crate) read_command: Option<String>,
    /// The shell command that sets it to VALUE, in the system's spelling; null where there is none.
    pub(crate) set_command: Option<String>,
    /// Where the expectation comes from.
    pub(crate) source: String,
    /// What it is set to on this host; empty unless an interface or the setting was named.
    pub(crate) here: Vec<KnobHere>,
}

/// A setting on this host.
#[derive(Debug, Serialize)]
pub(crate) struct KnobHere {
    /// The interface; null for a setting that belongs to none.
    pub(crate) interface: Option<String>,
    /// Its value now; null where it cannot be read.
    pub(crate) value: Option<String>,
    /// Why it cannot be changed here; null where it can.
    pub(crate) fixed_because: Option<String>,
}

/// What `landspeed doctor --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorDocument {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// What is unusual, the worst of each interface first.
    pub(crate) findings: Vec<DoctorFinding>,
}

/// A finding on this host.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorFinding {
    /// The interface that it was found on; null for the host as a whole.
    pub(crate) interface: Option<String>,
    #[serde(flatten)]
    pub(crate) finding: doctor::Finding,
}

/// What `landspeed cc list --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct ControlList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The congestion controls: landspeed's table, then what else this kernel has.
    pub(crate) controls: Vec<ControlEntry>,
    /// Why none can be loaded here; null where they can.
    pub(crate) cannot_load_because: Option<String>,
}

/// A congestion control.
#[derive(Debug, Serialize)]
pub(crate) struct ControlEntry {
    /// Its name here; null for one that landspeed does not know.
    pub(crate) name: Option<String>,
    /// Its name in the literature; null for one that landspeed does not know.
    pub(crate) title: Option<String>,
    /// Its name for TCP_CONGESTION.
    pub(crate) kernel_name: String,
    /// Where it is now.
    pub(crate) state: ControlState,
    /// What it does; null for one that landspeed does not know.
    pub(crate) about: Option<String>,
}

/// Where a congestion control is.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ControlState {
    /// Not in this kernel.
    Absent,
    /// The kernel's own.
    Kernel,
    /// Loaded by landspeed, until the process that did so ends.
    Loaded,
    /// Loaded by `cc load --keep`.
    Kept,
    /// Loaded by another program.
    Foreign,
}

/// What `landspeed cc recovery --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct RecoveryList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The path's rate.
    pub(crate) rate_bps: BitRate,
    /// The path's round-trip time.
    pub(crate) rtt_ns: Nanos,
    /// Its largest packet.
    pub(crate) mtu_bytes: u16,
    /// What Reno takes by the formula of Feng et al. (2003): half the window, one segment a round trip.
    pub(crate) formula_ns: Nanos,
    /// What was simulated at most.
    pub(crate) within_ns: Nanos,
    /// The congestion controls, the quickest first.
    pub(crate) controls: Vec<RecoveryEntry>,
}

/// What one loss costs a congestion control.
#[derive(Debug, Serialize)]
pub(crate) struct RecoveryEntry {
    /// Its name in `landspeed cc list`.
    pub(crate) name: String,
    /// Its name in the literature.
    pub(crate) title: String,
    /// From the loss to a full window; null where it takes longer than was simulated.
    pub(crate) recovery_ns: Option<Nanos>,
}

/// What `landspeed lab list --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct LabList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The labs of this machine.
    pub(crate) labs: Vec<LabEntry>,
}

/// A lab.
#[derive(Debug, Serialize)]
pub(crate) struct LabEntry {
    /// What `lab down` takes.
    pub(crate) id: String,
    /// The words that ask for such a lab.
    pub(crate) topology: String,
    /// The process that made it.
    pub(crate) owner_pid: u32,
    /// Whether that process still runs; if not, a crash left the lab behind.
    pub(crate) is_running: bool,
    /// Its network namespaces.
    pub(crate) namespaces: Vec<String>,
    /// When it was begun, in seconds since 1970.
    pub(crate) created_unix_s: u64,
}

/// What `landspeed lab faults --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct FaultList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The faults.
    pub(crate) faults: Vec<FaultEntry>,
}

/// A fault.
#[derive(Debug, Serialize)]
pub(crate) struct FaultEntry {
    /// What `lab faults` takes.
    pub(crate) name: String,
    /// What it does.
    pub(crate) about: String,
    /// What `explain` should call it.
    pub(crate) cause: landspeed_record::Cause,
}

/// What `landspeed undo --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct UndoDocument {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// Whether nothing is left to undo.
    pub(crate) is_clean: bool,
    /// What was restored and what was left, one line each.
    pub(crate) notes: Vec<String>,
    /// Ids of the labs that were removed.
    pub(crate) removed_labs: Vec<String>,
}
