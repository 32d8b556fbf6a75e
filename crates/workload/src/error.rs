//! The errors of a trial.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use landspeed_record::PathStall;
use landspeed_record::units::{Nanos, did_you_mean};

/// The reason why a trial did not complete.
#[allow(missing_docs, reason = "each text says what its variant is")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Transport(landspeed_transport::Error),
    #[error("{source}; waited {waited}, --patience waits longer")]
    Unanswered { source: landspeed_transport::Error, waited: Nanos },
    #[error(transparent)]
    Setting(#[from] landspeed_record::factor::Error),
    #[error("{field}: {why}")]
    Spec { field: &'static str, why: String },
    #[error("cannot {operation} {object}: {source}")]
    Refused { operation: &'static str, object: String, source: io::Error },
    #[error(
        "flow {flow} is not as it must be: {line}; `landspeed cc list` shows the congestion controls of this host"
    )]
    NotAsAsked { flow: u32, line: String },
    #[error(
        "{line}; this host has {}{}; `landspeed cc list` shows those that can be loaded",
        available.join(", "),
        did_you_mean(wanted, available.iter().map(String::as_str))
    )]
    Control { line: String, wanted: String, available: Vec<String> },
    #[error("the peer ended the trial early, {phase}; its own report says why")]
    PeerGone { phase: &'static str },
    #[error(
        "the peer said nothing for {waited}, {phase}; check that it is not overloaded or stopped{remedy}"
    )]
    PeerSilent { phase: &'static str, waited: Nanos, remedy: &'static str },
    #[error(
        "{wanted} need {needed} open files, and this process may have {limit}, of which {open} are open: raise its limit (ulimit -n {remedy}, or LimitNOFILE= of its service)"
    )]
    Files { wanted: String, needed: u64, limit: u64, open: u64, remedy: u64 },
    #[error(
        "{wanted} to {server} need as many local ports, and net.ipv4.ip_local_port_range ({}-{}) has {all}, of which \
         connections to it hold {held}: widen it (sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"), or open fewer",
        range[0],
        range[1]
    )]
    Ports { wanted: String, server: SocketAddr, range: [u16; 2], all: u64, held: u64 },
    #[error(
        "nothing came from the peer for {}, and {} time-outs in a row: the path broke; --patience waits longer",
        .0.waited_ns, .0.timeouts
    )]
    PathBroke(PathStall),
    #[error("a worker thread failed")]
    Worker,
    #[error("{0}")]
    Program(String),
    #[error("{0}")]
    Copy(String),
    #[error("cancelled")]
    Cancelled,
}

/// The words with which an error refers to the peer's report.
const SAYS_WHY: &str = "its own report says why";

impl Error {
    /// Returns true if `text`, the error of one end, only refers to the peer's report for the cause.
    pub fn is_of_peer(text: &str) -> bool {
        text.contains(SAYS_WHY)
    }

    /// Returns the weight of an error. Errors that say more about the cause have a higher weight. Of several errors,
    /// the one with the highest weight is shown.
    pub(crate) fn weight(&self) -> u8 {
        match self {
            Error::Cancelled => 0,
            Error::PeerGone { .. } | Error::Worker => 1,
            Error::Transport(landspeed_transport::Error::NobodyCame { .. }) => 2,
            Error::Transport(error) if error.has_errno() => 5,
            Error::Refused { source, .. } if source.raw_os_error().is_some() => 5,
            Error::Transport(landspeed_transport::Error::NoAnswer { .. }) => 3,
            _ => 4,
        }
    }

    /// Returns the error with the highest weight, the first of equals; `None` if there are no errors.
    pub(crate) fn gravest(errors: impl IntoIterator<Item = Error>) -> Option<Error> {
        errors.into_iter().reduce(|first, next| if next.weight() > first.weight() { next } else { first })
    }

    /// Returns the error for a peer that was silent for all of `waited`, which the user can make longer.
    pub(crate) fn silent(phase: &'static str, waited: Duration) -> Self {
        let remedy = ", or wait longer with --patience";
        Error::PeerSilent { phase, waited: waited.into(), remedy }
    }

    /// Adds the time that this end waited to an error that reports that the other end did not come or answer.
    pub(crate) fn after(self, waited: Nanos) -> Self {
        use landspeed_transport::Error::{NoAnswer, NobodyCame};
        match self {
            Error::Transport(source @ (NoAnswer { .. } | NobodyCame { .. })) => {
                Error::Unanswered { source, waited }
            }
            other => other,
        }
    }

    pub(crate) fn spec(field: &'static str, why: String) -> Self {
        Error::Spec { field, why }
    }

    pub(crate) fn refused(operation: &'static str, object: impl ToString, source: io::Error) -> Self {
        Error::Refused { operation, object: object.to_string(), source }
    }
}

impl From<landspeed_transport::Error> for Error {
    fn from(error: landspeed_transport::Error) -> Self {
        match error {
            landspeed_transport::Error::Cancelled => Error::Cancelled,
            other => Error::Transport(other),
        }
    }
}
