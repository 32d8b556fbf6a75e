//! Errors of experiments, each as one line that names the cause and the remedy.

use landspeed_record::units::Nanos;

/// Why an experiment could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{host}: {source}")]
    Session { host: String, source: landspeed_agent::session::Error },
    /// A session could not be opened. `source` names the host.
    #[error("{source}")]
    Reach { source: landspeed_agent::session::Error },
    /// A host gave an answer of another kind than requested.
    #[error("{host}: unexpected answer to {asked}: update landspeed there")]
    Answer { host: String, asked: &'static str },
    /// A host's figures of a trial have another format than this version of landspeed reads.
    #[error("{host}: {why}; use the same landspeed on both hosts")]
    Misshapen { host: String, why: String },
    #[error("no data path from {a} to {b}: {tried}")]
    NoPath {
        a: String,
        b: String,
        /// All addresses that were tried, each with its error.
        tried: String,
    },
    /// Neither host reaches the other, and data may not pass through this machine.
    #[error(
        "--direct needs one host that accepts TCP connections of the other, at any port; without it, data pass through \
         this machine: {source}"
    )]
    NotDirect { source: Box<Error> },
    /// A host lacks an address of the requested family, or the requested address.
    #[error("{host} has no {what}; {remedy}")]
    NoAddress { host: String, what: String, remedy: String },
    #[error(transparent)]
    Topology(#[from] landspeed_lab::topology::Error),
    #[error(transparent)]
    Factor(#[from] landspeed_record::factor::Error),
    #[error(transparent)]
    Record(#[from] landspeed_record::RecordWriteError),
    #[error(transparent)]
    Kind(#[from] landspeed_record::WrongKind),
    /// Two independent errors, such as those of both ends of a run.
    #[error("{first}; {second}")]
    Both { first: Box<Error>, second: String },
    /// The flows of a trial were of another kind than requested.
    #[error("{host}: {line}")]
    FellBack { host: String, line: String },
    /// The path of a trial broke, or carried nothing, so that none of its figures is complete.
    #[error("the path carried nothing for {waited}; `landspeed explain` says why")]
    Silent { waited: Nanos },
    #[error("{host} cannot be tuned: {why}")]
    MayNotTune { host: String, why: String },
    /// A host's settings are not as they were before.
    #[error("{0}")]
    NotRestored(String),
    /// The command is done, but another program left a host's settings different from before.
    #[error("{0}")]
    Left(String),
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Returns the error for settings that were not restored. `done` is what the command achieved nevertheless.
    pub(crate) fn unrestored(done: &str, restored: &landspeed_record::RestoreOutcome) -> Error {
        let line = format!("{done}, but {}", restored.complaint().unwrap_or_default());
        if restored.left { Error::Left(line) } else { Error::NotRestored(line) }
    }

    /// Adds the complaint about settings that were not restored, if any, to this error.
    pub(crate) fn and(self, restored: &landspeed_record::RestoreOutcome) -> Error {
        match restored.complaint() {
            None => self,
            Some(complaint) if restored.left => Error::Other(format!("{self}; {complaint}")),
            Some(complaint) => Error::NotRestored(format!("{self}; {complaint}")),
        }
    }
}
