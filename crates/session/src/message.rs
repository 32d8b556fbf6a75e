//! What controller and agent say to each other, inside the frames.

use std::net::{IpAddr, SocketAddr};

use landspeed_record::{
    EndpointOutcome, HostFacts, HostLimits, KnobState, Observations, Restored, Role, TrialSpec, TurnReport,
    WatchTarget,
};
use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

use crate::SessionKey;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Name from the knob table; anything else is refused.
    pub knob: String,
    /// Value in the knob's own spelling; checked against its domain before anything is touched.
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What is this host? Answered with [`Reply::Facts`].
    Probe {},
    /// Which link and source address lead to `to`? Answered with [`Reply::Route`].
    Route { to: IpAddr },
    /// What are the knobs set to, and which can be turned? Answered with [`Reply::Knobs`].
    Knobs {
        /// The link that faces the peer.
        device: String,
    },
    /// Turn knobs, in this order, all or none: a failed one rolls the earlier ones of this request
    /// back. Needs leave to tune. Answered with [`Reply::Turned`].
    Turn {
        /// The link that faces the peer, for device-scoped knobs.
        device: String,
        changes: Vec<Change>,
        /// Restore everything unless the next request arrives within this time (knobs that can cut
        /// the path).
        short_lease_ns: Option<Nanos>,
    },
    /// Put everything back, newest first. Answered with [`Reply::Restored`].
    Restore {},
    /// Open a data port for some transports, which accepts only flows that prove `key`. Answered with
    /// [`Reply::Listening`].
    Listen {
        address: IpAddr,
        /// Number of the port; zero lets the kernel choose.
        #[serde(default)]
        port: u16,
        /// Names of the transports: "tcp", "udp".
        transports: Vec<String>,
        key: SessionKey,
    },
    /// Give up the runs and watches under way, so that they are answered soon. Answered with [`Reply::Done`].
    Cancel {},
    /// Close a data port. Answered with [`Reply::Done`].
    Close { port: u16 },
    /// Can these observers run here? Answered with [`Reply::Done`], or with the reason why one cannot.
    Observers { names: Vec<String> },
    /// Watch flows that are there already; generates nothing. Answered with [`Reply::Watched`].
    Watch {
        target: WatchTarget,
        /// Observers to run beside the usual ones, by name.
        observers: Vec<String>,
        /// Leave out those that explain, but for the ones that are named.
        #[serde(default)]
        alone: bool,
        duration_ns: Nanos,
        interval_ns: Nanos,
    },
    /// What can the parts of this host do at most? Answered with [`Reply::Limits`].
    Limits {
        /// The link that faces the peer.
        device: String,
    },
    /// Make congestion controls ready for flows: those of landspeed's own are loaded into the kernel and stay until the
    /// session ends, however it does, or until a request with no names. All or none. Loading needs leave to tune; what
    /// the kernel has already is used as it is, whoever loaded it. Answered with [`Reply::Controls`].
    Controls {
        /// Names of `landspeed cc list`; anything else is refused.
        names: Vec<String>,
    },
    /// Run this end of a trial to its end. Answered with [`Reply::Outcome`].
    Run {
        role: Role,
        /// Client: the server's data address. Server: the own data address, as listened on.
        at: SocketAddr,
        /// Client: first source port; flow n uses port + n, so that both arms of a block hash alike.
        /// Zero lets the kernel choose.
        source_port: u16,
        key: SessionKey,
        spec: Box<TrialSpec>,
    },
}

impl Request {
    pub fn name(&self) -> &'static str {
        match self {
            Request::Probe {} => "probe",
            Request::Route { .. } => "route",
            Request::Knobs { .. } => "knobs",
            Request::Turn { .. } => "turn",
            Request::Restore {} => "restore",
            Request::Listen { .. } => "listen",
            Request::Cancel {} => "cancel",
            Request::Close { .. } => "close",
            Request::Observers { .. } => "observers",
            Request::Watch { .. } => "watch",
            Request::Limits { .. } => "limits",
            Request::Controls { .. } => "controls",
            Request::Run { .. } => "run",
        }
    }
}

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
        /// Whether the peer is on the same host.
        local: bool,
    },
    Knobs {
        states: Vec<KnobState>,
    },
    Turned {
        turns: Vec<TurnReport>,
    },
    Restored {
        restored: Restored,
    },
    Listening {
        port: u16,
    },
    Outcome {
        outcome: Box<EndpointOutcome>,
    },
    Watched {
        /// The link that most of the flows take; empty where there is none.
        device: String,
        observed: Box<Observations>,
    },
    Limits {
        limits: Box<HostLimits>,
    },
    Controls {
        /// What flows choose them by (TCP_CONGESTION), in the order asked.
        ready: Vec<String>,
    },
    Done {},
    /// The right to turn knobs is gone (the lease ran out, the guardian died): everything is being put
    /// back, and no further turn will be made. One line says why.
    Lost {
        why: String,
    },
    /// The request was refused or failed: one line that names the thing and the remedy.
    Failed {
        why: String,
    },
}
