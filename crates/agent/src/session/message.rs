//! The messages that controller and agent exchange, inside the frames.

use std::net::{IpAddr, SocketAddr};

use landspeed_record::units::Nanos;
use landspeed_record::{
    CopyArm, CopyCheck, CopyComparison, CopyCount, CopyCounts, CopyDiffering, CopyEndTimes, CopyKeeping,
    CopyLeftovers, CopyOutcome, CopyProven, EndpointOutcome, HostFacts, HostLimits, KnobChangeReport,
    KnobState, Observations, PathBytes, RestoreOutcome, Role, Settings, TrialSpec, WatchTarget,
};
use serde::{Deserialize, Serialize};

use crate::session::{CopyRules, FolderPlace, SessionKey};

/// A knob and its new value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnobChange {
    /// A name from the knob table; the agent refuses any other.
    pub knob: String,
    /// A value in the knob's own spelling. The agent checks it against the knob's domain before it writes anything.
    pub value: String,
    /// The interface of a device-scoped knob. If empty, the interface of the whole request.
    #[serde(default)]
    pub device: String,
}

/// The flows of a copy. Either end may open them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyFlows {
    /// Client: this end opens the flows. Server: it accepts them.
    pub role: Role,
    /// Client: the server's data address, unless the flows are relayed. Server: the address of its own open data port.
    pub at: SocketAddr,
    /// True if the controller relays the flows from the client to the server's data port.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_relayed: bool,
    pub key: SessionKey,
    /// The settings of each flow.
    pub settings: Settings,
    /// The number of flows.
    pub count: u32,
    /// The number up to which [`Request::CopyWiden`] may open further ones; `None` for no further ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// Longest time to wait for the flows to open. A flow that is silent for as long counts as broken and is opened again, for
    /// [`landspeed_record::COPY_PATIENCE_TIMES`] times as long.
    pub patience_ns: Nanos,
}

/// A file or a folder that is copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyRoot {
    /// Its path on the source.
    pub path_hex: PathBytes,
    /// Its name in the target's folder; empty for a folder whose entries go into the target's folder itself.
    pub name_hex: PathBytes,
}

/// What exists at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathKind {
    /// A folder, or a symbolic link to one.
    Folder,
    /// A symbolic link to a folder, if the path has no trailing slash.
    LinkToFolder,
    /// Any other existing entry.
    File,
    /// An entry that this user may not examine, or a folder that this user may not list.
    Barred,
    /// Nothing.
    Missing,
}

/// How a copy or a comparison uses a path. The agent may permit or refuse each use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathUse {
    /// Send what is there.
    Read,
    /// Create, replace and remove entries, or report what a copy would do.
    Write,
    /// Report whether the content is the same as elsewhere.
    Compare,
}

/// What exists at a path, and its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundPath {
    pub kind: PathKind,
    /// The path without symbolic links, "." and ".."; empty if unknown.
    pub resolved_hex: PathBytes,
    /// The location, independent of the path to it; unknown for a file.
    pub place: FolderPlace,
}

/// A request of the controller to an agent. An interface name means the interface that had this name when the session
/// first used it, even if it was renamed since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Report the facts of this host. Answered with [`Reply::Facts`].
    Probe {},
    /// Report which link and source address lead to `to`. The port of `to` is ignored. If `to` is link-local, its zone
    /// is an interface of this host. Answered with [`Reply::Route`].
    Route { to: SocketAddr },
    /// Report the values of the knobs, which of them can be changed, and the speed and the carrier changes of the link.
    /// Answered with [`Reply::Knobs`].
    Knobs {
        /// The link on the path to the peer.
        device: String,
    },
    /// Report the values of the knobs that decide figures, and the speed and the carrier changes of the link. That
    /// takes little processor time. Answered with [`Reply::Knobs`].
    Conditions {
        /// The link on the path to the peer.
        device: String,
    },
    /// Set knobs, in this order, all or none: if one fails, the earlier ones of this request are rolled back. Needs the
    /// permission to tune. Answered with [`Reply::Turned`].
    Turn {
        /// The link on the path to the peer, for device-scoped knobs.
        device: String,
        changes: Vec<KnobChange>,
        /// If set, everything is restored unless a message of the controller follows within this time. Used for knobs
        /// that can cut the path.
        short_lease_ns: Option<Nanos>,
    },
    /// Restore all changed knobs, newest first. Answered with [`Reply::Restored`].
    Restore {},
    /// Restore the settings that an interrupted run left changed. Needs the permission to tune. Answered with
    /// [`Reply::Undone`].
    Undo {
        /// True to restore only the settings of this network namespace; false for the whole host.
        here: bool,
        /// True to also restore changes that may come from a write that was cut short, although another program may
        /// have made them.
        unsure: bool,
        /// True to report what would be restored, and change nothing.
        dry_run: bool,
    },
    /// Open a data port that accepts flows of `transports` whose sender proves that it has `key`. Answered with
    /// [`Reply::Listening`].
    Listen {
        /// An address of this host, with its zone if it is link-local. Port 0 lets the kernel choose.
        at: SocketAddr,
        /// The first and the last number from which to choose a port that is free for all `transports`, if `at` has port 0.
        /// Without them, the kernel chooses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<[u16; 2]>,
        /// Names of the transports: "tcp", "udp".
        transports: Vec<String>,
        key: SessionKey,
    },
    /// End all runs and watches under way early, so that their requests are answered soon. Answered with
    /// [`Reply::Done`].
    Cancel {},
    /// Close a data port. Answered with [`Reply::Done`].
    Close { port: u16 },
    /// Check that these observers can run here. Answered with [`Reply::Done`], or with the reason why one cannot.
    Observers { names: Vec<String> },
    /// Watch existing flows; generates no traffic. Answered with [`Reply::Watched`].
    Watch {
        target: WatchTarget,
        /// Names of observers to run in addition to the usual ones.
        observers: Vec<String>,
        /// True to leave out the observers that explain, except those named in `observers`.
        #[serde(default)]
        alone: bool,
        duration_ns: Nanos,
        interval_ns: Nanos,
    },
    /// Measure the limits of the parts of this host. Answered with [`Reply::Limits`].
    Limits {
        /// The link on the path to the peer.
        device: String,
    },
    /// Make congestion controls ready for flows. landspeed's own are loaded into the kernel and stay until the session
    /// ends or until a request with no names. The agent loads all of them or none. It loads a control only if it may
    /// tune. A control that the kernel already has is used unchanged. Where the kernel can load none of landspeed's,
    /// Linux's own of the same name serves, if it has one, and its module stays loaded. Answered with
    /// [`Reply::Controls`].
    Controls {
        /// Names from `landspeed cc list`; the agent refuses any other.
        names: Vec<String>,
    },
    /// Report what exists at these paths, as far as the agent's user may see it. Needs the permission for this use of
    /// each path. All other requests of a copy need a permission to copy files. Answered with [`Reply::Paths`].
    CopyLook { paths_hex: Vec<PathBytes>, to: PathUse },
    /// Keep names below the source folder for the next copy or comparison that takes only named entries. Answered with
    /// [`Reply::Done`].
    CopyNames {
        names_hex: Vec<PathBytes>,
        /// True to forget the names that arrived before.
        is_first: bool,
    },
    /// Send files and folders until the copy is over. Answered with [`Reply::Copied`].
    CopyOut { flows: Box<CopyFlows>, roots: Vec<CopyRoot>, keeping: CopyKeeping, rules: Box<CopyRules> },
    /// Receive files into a folder, which is created if it is missing, until the copy is over. Answered with
    /// [`Reply::Done`].
    CopyIn {
        flows: Box<CopyFlows>,
        folder_hex: PathBytes,
        /// The names that the source may use in that folder, with everything below them; the empty name for all.
        names_hex: Vec<PathBytes>,
        /// True if the copy ends only once everything is on stable storage.
        is_synced: bool,
        keeping: CopyKeeping,
        rules: Box<CopyRules>,
    },
    /// Compare files and folders with the target's, and copy nothing. Entries that differ wait until
    /// [`Request::CopyListed`] takes them. Answered with [`Reply::Compared`].
    CompareOut {
        flows: Box<CopyFlows>,
        roots: Vec<CopyRoot>,
        check: CopyCheck,
        keeping: CopyKeeping,
        rules: Box<CopyRules>,
    },
    /// Answer the source's questions about a folder until it has no more questions. Changes nothing. Answered with
    /// [`Reply::Done`].
    CompareIn {
        flows: Box<CopyFlows>,
        folder_hex: PathBytes,
        /// The names about which the source may ask, with everything below them; the empty name for all.
        names_hex: Vec<PathBytes>,
        check: CopyCheck,
        keeping: CopyKeeping,
        rules: Box<CopyRules>,
    },
    /// Report the differing entries that this agent's comparison has found since the last such request. Answered with
    /// [`Reply::CopyListed`].
    CopyListed {},
    /// Report the files whose copies were proven since the last such request, if this agent lists them. Answered with
    /// [`Reply::CopyProven`].
    CopyProven {},
    /// Remove the incomplete files that copies have left in a folder. Answered with [`Reply::CopyLeft`].
    CopyClean {
        folder_hex: PathBytes,
        /// True to list the files and remove nothing.
        only_list: bool,
    },
    /// Report the counts of the copy or comparison in which this agent takes part, and the times of this end. Answered
    /// with [`Reply::CopyState`].
    CopyState {},
    /// Open further flows of the copy in which this agent takes part, up to this number. Only the end that opens its
    /// flows can do it. Answered with [`Reply::Done`].
    CopyWiden { flows: u32 },
    /// Open or accept flows of another transport in addition to the flows of the copy in which this agent takes part.
    /// They stay idle until a setting names them. Ask the end that accepts them first. Answered with [`Reply::Done`].
    CopyOthers {
        /// The settings of the flows, including their transport.
        settings: Settings,
        /// The number of flows.
        flows: u32,
    },
    /// Replace the flows of another transport by flows of the copy's own transport, permanently. The end that accepts
    /// them closes their port. Answered with [`Reply::Done`].
    CopyLeaveOthers {},
    /// Apply a setting to the flows on which this agent sends, and then count for some time what the target receives.
    /// Answered with [`Reply::CopyTurned`], early if the copy ends.
    CopyTurn {
        arm: CopyArm,
        /// The time after the change that is not counted.
        settle_ns: Nanos,
        /// The time that is counted.
        count_ns: Nanos,
    },
    /// Write pieces of long files past the page cache from now on, or through it again. Only the target of a copy can
    /// do it. Answered with [`Reply::Done`].
    CopyWrites { direct: bool },
    /// Make the work of this end's processor threads take a tenth longer for this time; zero ends it. Answered with
    /// [`Reply::Done`].
    CopySlow { for_ns: Nanos },
    /// Run this end of a trial until it is over. Answered with [`Reply::Outcome`].
    Run {
        role: Role,
        /// Client: the server's data address. Server: the address of its own open data port.
        at: SocketAddr,
        /// Client: the source port of the first flow. Flow n uses this port + n, so that the flows of both arms of a
        /// block have the same hash. Zero lets the kernel choose.
        source_port: u16,
        key: SessionKey,
        /// The interface to watch; if empty, the one that the route names.
        #[serde(default)]
        link: String,
        spec: Box<TrialSpec>,
    },
}

impl Request {
    pub fn name(&self) -> &'static str {
        match self {
            Request::Probe {} => "probe",
            Request::Route { .. } => "route",
            Request::Knobs { .. } => "knobs",
            Request::Conditions { .. } => "conditions",
            Request::Turn { .. } => "turn",
            Request::Restore {} => "restore",
            Request::Undo { .. } => "undo",
            Request::Listen { .. } => "listen",
            Request::Cancel {} => "cancel",
            Request::Close { .. } => "close",
            Request::Observers { .. } => "observers",
            Request::Watch { .. } => "watch",
            Request::Limits { .. } => "limits",
            Request::Controls { .. } => "controls",
            Request::CopyLook { .. } => "look at paths",
            Request::CopyNames { .. } => "keep names",
            Request::CopyOut { .. } => "send files",
            Request::CopyIn { .. } => "receive files",
            Request::CompareOut { .. } => "compare files",
            Request::CompareIn { .. } => "show files",
            Request::CopyListed {} => "list files that differ",
            Request::CopyProven {} => "list digests",
            Request::CopyClean { .. } => "list incomplete files",
            Request::CopyState {} => "report the copy",
            Request::CopyWiden { .. } => "open further flows",
            Request::CopyOthers { .. } => "open flows of another transport",
            Request::CopyLeaveOthers {} => "leave another transport",
            Request::CopyTurn { .. } => "use a setting in a copy",
            Request::CopyWrites { .. } => "write past the page cache",
            Request::CopySlow { .. } => "slow a copy",
            Request::Run { .. } => "run",
        }
    }
}

/// An agent's answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    Facts {
        facts: Box<HostFacts>,
    },
    Route {
        device: String,
        /// The source address that the kernel would use.
        source: IpAddr,
        /// True if the peer is on the same host.
        local: bool,
    },
    Knobs {
        states: Vec<KnobState>,
    },
    Turned {
        turns: Vec<KnobChangeReport>,
    },
    Restored {
        restored: RestoreOutcome,
    },
    Undone {
        /// What was restored and what was kept, one line each.
        lines: Vec<String>,
        /// True if nothing remains to be undone.
        is_clean: bool,
        /// True if a setting was kept on purpose, because another program changed it.
        left: bool,
    },
    Listening {
        port: u16,
    },
    Outcome {
        outcome: Box<EndpointOutcome>,
    },
    Watched {
        /// The link that most of the flows take; empty if there is none.
        device: String,
        observed: Box<Observations>,
    },
    Limits {
        limits: Box<HostLimits>,
    },
    Controls {
        /// The names by which flows choose the controls (TCP_CONGESTION), in the order of the request.
        ready: Vec<String>,
        /// Notes on the controls for a reader of the results, at most one line for each control: that Linux's own
        /// control replaces landspeed's, or that a module was loaded. Agents of older versions send none.
        #[serde(default)]
        notes: Vec<String>,
    },
    Paths {
        /// What exists at each path, in the order of the request.
        found: Vec<FoundPath>,
    },
    Copied {
        outcome: Box<CopyOutcome>,
    },
    Compared {
        outcome: Box<CopyComparison>,
    },
    CopyListed {
        /// Empty if no entry waits.
        entries: Vec<CopyDiffering>,
    },
    CopyProven {
        /// Empty if no file waits.
        entries: Vec<CopyProven>,
    },
    CopyLeft {
        left: Box<CopyLeftovers>,
    },
    CopyState {
        counts: CopyCounts,
        /// The times of the stages of this end.
        #[serde(default)]
        times: Box<CopyEndTimes>,
        /// The settings of this end's flows that differ from the requested ones, one line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_as_asked: Vec<String>,
        /// The ciphers of the flows of this end.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ciphers: Vec<String>,
        /// The congestion controls that the sockets of this end have used.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        controls: Vec<String>,
    },
    CopyTurned {
        counted: Box<CopyCount>,
    },
    Done {},
    /// The agent has lost the right to change knobs, because the lease ran out or the guardian died. It restores
    /// everything and changes no more knobs. `why` is one line.
    Lost {
        why: String,
    },
    /// The request was refused or failed. `why` is one line that names the cause and the remedy.
    Failed {
        why: String,
    },
}
