//! What can go wrong with an experiment, each in one line that names the thing and the remedy.

/// An experiment that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session to a host failed.
    #[error("{host}: {source}")]
    Session {
        /// The host as the user named it.
        host: String,
        /// What happened.
        source: landspeed_control::Error,
    },
    /// No session could be had; the error names the host.
    #[error("{source}")]
    Reach {
        /// What happened.
        source: landspeed_control::Error,
    },
    /// A host answered something else than asked.
    #[error("{host}: unexpected answer to {asked}: update landspeed there")]
    Answer {
        /// The host.
        host: String,
        /// What was asked.
        asked: &'static str,
    },
    /// A host's figures of a trial have another shape than this landspeed reads.
    #[error("{host}: {why}; use the same landspeed on both hosts")]
    Misshapen {
        /// The host.
        host: String,
        /// Which figure, and what is wrong with it.
        why: String,
    },
    /// No data path between the hosts.
    #[error("no data path from {a} to {b}: {tried}")]
    NoPath {
        /// Host A.
        a: String,
        /// Host B.
        b: String,
        /// Every address with what went wrong there.
        tried: String,
    },
    /// The topology could not be made.
    #[error(transparent)]
    Topology(#[from] landspeed_topology::Error),
    /// A knob or value is wrong.
    #[error(transparent)]
    Factor(#[from] landspeed_factor::Error),
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] landspeed_record::WriteError),
    /// A host may not be tuned.
    #[error("{host} cannot be tuned: {why}")]
    MayNotTune {
        /// The host.
        host: String,
        /// Why, and what to do.
        why: String,
    },
    /// Anything else that names itself.
    #[error("{0}")]
    Other(String),
}
