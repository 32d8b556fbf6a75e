//! What can go wrong with a link.

use std::io;

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Parameters that make no link.
    #[error(transparent)]
    Spec(#[from] WanSpecError),
    /// This machine cannot have this link: the reason and the remedy.
    #[error("lab:wan cannot run here: {0}")]
    CannotRun(String),
    /// The kernel refused.
    #[error("{operation}: {source}")]
    Io { operation: String, source: io::Error },
    /// A queue or a bridge could not be made.
    #[error(transparent)]
    Netlink(#[from] landspeed_netlink::Error),
}

/// Names the operation that an I/O error belongs to.
pub(crate) trait During<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Io { operation: operation(), source })
    }
}

/// Parameters that make no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WanSpecError {
    #[error("lab:wan: '{0}': expected KEY=VALUE")]
    NoValue(String),
    /// No such parameter: what was given, shortened and escaped.
    #[error("lab:wan has no '{given}'{near} (it takes {known})")]
    NoSuch {
        given: String,
        /// "; did you mean rate?", or nothing.
        near: String,
        known: String,
    },
    #[error("lab:wan: {0} is given twice")]
    Twice(String),
    /// A value that the parameter cannot have, shortened and escaped.
    #[error("lab:wan: {key}={given}: expected {expected}")]
    Value { key: &'static str, given: String, expected: &'static str },
    /// Values that do not go together.
    #[error("lab:wan: {0}")]
    Together(String),
    /// A file that a parameter names (shortened and escaped); why has the line.
    #[error("lab:wan: {key}={file}: {why}")]
    File { key: &'static str, file: String, why: String },
}
