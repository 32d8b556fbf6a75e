//! What can go wrong in a trial.

use std::io;

use landspeed_units::Nanos;

/// A trial that did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flow could not be made.
    #[error(transparent)]
    Transport(landspeed_transport::Error),
    /// A parameter or a setting of the flow that does not exist, or does not take the value.
    #[error(transparent)]
    Setting(#[from] landspeed_factor::Error),
    /// The specification asks for something that cannot be run.
    #[error("{field}: {why}")]
    Spec {
        /// Field of the specification.
        field: &'static str,
        /// What is wrong with it, and what is allowed.
        why: String,
    },
    /// The kernel refused an operation.
    #[error("cannot {operation} {object}: {source}")]
    Refused {
        /// What was tried.
        operation: &'static str,
        /// On what.
        object: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A flow is not what the run is about.
    #[error(
        "flow {flow} is not as it must be: {line}; `landspeed cc list` shows the congestion controls of this host"
    )]
    NotAsAsked {
        /// Number of the flow.
        flow: u32,
        /// What did not read back.
        line: String,
    },
    /// The peer closed its end early.
    #[error("the peer ended the trial early, {phase}; its own report says why")]
    PeerGone {
        /// What was being done.
        phase: &'static str,
    },
    /// The peer is there but does not say what was expected.
    #[error("the peer said nothing for {waited}, {phase}; check that it is not overloaded or stopped")]
    PeerSilent {
        /// What was being done.
        phase: &'static str,
        /// How long was waited.
        waited: Nanos,
    },
    /// Sent data is not acknowledged any more.
    #[error("nothing was acknowledged for {waited}: traffic stopped; check the path and the peer")]
    FeedbackLost {
        /// How long was waited.
        waited: Nanos,
    },
    /// A worker thread failed; the caller gets the worker's own error.
    #[error("a worker thread failed")]
    Worker,
    /// The caller's flag was raised.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
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
