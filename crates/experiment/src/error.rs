//! What can go wrong with an experiment, each in one line that names the thing and the remedy.

use landspeed_units::Nanos;

/// An experiment that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{host}: {source}")]
    Session { host: String, source: landspeed_session::Error },
    /// No session could be had; the error names the host.
    #[error("{source}")]
    Reach { source: landspeed_session::Error },
    /// A host answered something else than asked.
    #[error("{host}: unexpected answer to {asked}: update landspeed there")]
    Answer { host: String, asked: &'static str },
    /// A host's figures of a trial have another shape than this landspeed reads.
    #[error("{host}: {why}; use the same landspeed on both hosts")]
    Misshapen { host: String, why: String },
    #[error("no data path from {a} to {b}: {tried}")]
    NoPath {
        a: String,
        b: String,
        /// Every address with what went wrong there.
        tried: String,
    },
    /// A host lacks an address of the family that was asked for, or the very address.
    #[error("{host} has no {what}; {remedy}")]
    NoAddress { host: String, what: String, remedy: String },
    #[error(transparent)]
    Topology(#[from] landspeed_topology::Error),
    #[error(transparent)]
    Factor(#[from] landspeed_factor::Error),
    #[error(transparent)]
    Record(#[from] landspeed_record::WriteError),
    /// What both ends of a run say.
    #[error("{first}; {second}")]
    Both { first: Box<Error>, second: String },
    /// The flows of a trial were something else than asked.
    #[error("{host}: {line}")]
    FellBack { host: String, line: String },
    /// A trial whose path broke, or carried nothing: no figure of it is whole.
    #[error("the path carried nothing for {waited}; `landspeed explain` says why")]
    Silent { waited: Nanos },
    #[error("{host} cannot be tuned: {why}")]
    MayNotTune { host: String, why: String },
    /// A host is not as it was before.
    #[error("{0}")]
    NotRestored(String),
    /// The command is done, and a host is not as it was before, by another program's doing.
    #[error("{0}")]
    Left(String),
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// What was done, where a host does not read back as before.
    pub(crate) fn unrestored(done: &str, restored: &landspeed_record::Restored) -> Error {
        let line = format!("{done}, but {}", restored.complaint().unwrap_or_default());
        if restored.left { Error::Left(line) } else { Error::NotRestored(line) }
    }

    /// This error, with what does not read back as before.
    pub(crate) fn and(self, restored: &landspeed_record::Restored) -> Error {
        match restored.complaint() {
            None => self,
            Some(complaint) if restored.left => Error::Other(format!("{self}; {complaint}")),
            Some(complaint) => Error::NotRestored(format!("{self}; {complaint}")),
        }
    }
}
