//! The contents of lists, each printed as a JSON document, a table or CSV. docs/reference/json.md is generated from
//! these types.

use landspeed_knob::doctor;
use landspeed_record::units::{BitRate, Nanos};
use serde::Serialize;

/// Format version of all documents here.
pub(crate) const FORMAT: u32 = 1;

/// The output of `landspeed knobs --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct KnobList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The settings, those of the flow first.
    pub(crate) knobs: Vec<KnobEntry>,
}

/// A setting.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct KnobEntry {
    /// The setting's name in landspeed.
    pub(crate) name: String,
    /// What the setting does.
    pub(crate) about: String,
    /// The system's names, which are accepted as well; the usual one first.
    pub(crate) system_names: Vec<String>,
    /// The values that it takes, in words.
    pub(crate) takes: String,
    /// Its scope: "flow", "network namespace", "device" or "whole machine (not in a lab)".
    pub(crate) scope: String,
    /// Default value of a flow's setting; null for a host's.
    pub(crate) default: Option<String>,
    /// The shell command that reads it; null if there is none.
    pub(crate) read_command: Option<String>,
    /// The shell command that sets it to VALUE, in the system's spelling; null if there is none.
    pub(crate) set_command: Option<String>,
    /// Source of the expected effect.
    pub(crate) source: String,
    /// Its values on this host; empty unless an interface or the setting was named.
    pub(crate) here: Vec<LocalKnobValue>,
}

/// A setting on this host.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct LocalKnobValue {
    /// The interface; null for a setting that belongs to none.
    pub(crate) interface: Option<String>,
    /// The present value; null if it cannot be read.
    pub(crate) value: Option<String>,
    /// Why it cannot be changed here; null if it can.
    pub(crate) fixed_because: Option<String>,
}

/// The output of `landspeed doctor --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorDocument {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// Unusual settings and conditions, the worst of each interface first.
    pub(crate) findings: Vec<DoctorFinding>,
}

/// A finding on this host.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorFinding {
    /// The interface of the finding; null for the host as a whole.
    pub(crate) interface: Option<String>,
    #[serde(flatten)]
    pub(crate) finding: doctor::SettingFinding,
}

/// The output of `landspeed cc list --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ControlList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The congestion controls: landspeed's table, then others that this kernel has.
    pub(crate) controls: Vec<ControlEntry>,
    /// Why no control can be loaded here; null if they can.
    pub(crate) cannot_load_because: Option<String>,
}

/// A congestion control.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ControlEntry {
    /// Its name in landspeed; null for one that landspeed does not know.
    pub(crate) name: Option<String>,
    /// Its name in the literature; null for one that landspeed does not know.
    pub(crate) title: Option<String>,
    /// Its name for TCP_CONGESTION.
    pub(crate) kernel_name: String,
    /// Its present state.
    pub(crate) state: ControlState,
    /// What it does; null for one that landspeed does not know.
    pub(crate) about: Option<String>,
}

/// The state of a congestion control.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ControlState {
    /// Not in this kernel.
    Absent,
    /// The kernel's own.
    Kernel,
    /// Loaded by landspeed, until the loading process ends.
    Loaded,
    /// Loaded by `cc load --keep`.
    Kept,
    /// Loaded by another program.
    Foreign,
}

/// The output of `landspeed cc recovery --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RecoveryList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The path's rate.
    pub(crate) rate_bps: BitRate,
    /// The path's round-trip time.
    pub(crate) rtt_ns: Nanos,
    /// Its largest packet.
    pub(crate) mtu_bytes: u16,
    /// Reno's recovery time by the formula of Feng et al. (2003): half the window, one segment per round trip.
    pub(crate) formula_ns: Nanos,
    /// Longest time that was simulated.
    pub(crate) within_ns: Nanos,
    /// The congestion controls, the fastest first.
    pub(crate) controls: Vec<RecoveryEntry>,
}

/// The cost of one loss for a congestion control.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RecoveryEntry {
    /// Its name in `landspeed cc list`.
    pub(crate) name: String,
    /// Its name in the literature.
    pub(crate) title: String,
    /// Time from the loss to a full window; null if it is longer than was simulated.
    pub(crate) recovery_ns: Option<Nanos>,
}

/// The output of `landspeed lab list --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct LabList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The labs of this machine.
    pub(crate) labs: Vec<LabEntry>,
}

/// A lab.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct LabEntry {
    /// The id that `lab down` takes.
    pub(crate) id: String,
    /// The topology from which the lab was created.
    pub(crate) topology: String,
    /// Id of the process that created it.
    pub(crate) owner_pid: u32,
    /// True if that process is still running; otherwise a crash left the lab behind.
    pub(crate) is_running: bool,
    /// Its network namespaces.
    pub(crate) namespaces: Vec<String>,
    /// Time of creation, in seconds since 1970.
    pub(crate) created_unix_s: u64,
}

/// The output of `landspeed lab faults --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct FaultList {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// The faults.
    pub(crate) faults: Vec<FaultEntry>,
}

/// A fault.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct FaultEntry {
    /// The name that `lab faults` takes.
    pub(crate) name: String,
    /// What the fault does.
    pub(crate) about: String,
    /// The cause that `explain` should report.
    pub(crate) cause: landspeed_record::Cause,
}

/// The output of `landspeed undo --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct UndoDocument {
    /// Version of this document: 1.
    pub(crate) format: u32,
    /// True if nothing is left to undo.
    pub(crate) is_clean: bool,
    /// Restored and remaining settings, one line each.
    pub(crate) notes: Vec<String>,
    /// Ids of the labs that were removed.
    pub(crate) removed_labs: Vec<String>,
}
