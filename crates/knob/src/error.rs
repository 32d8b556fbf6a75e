//! What can go wrong with a knob.

/// An error that names the knob and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such knob, or not a value of it.
    #[error(transparent)]
    Factor(#[from] landspeed_factor::Error),
    /// This host or device lacks the knob.
    #[error("{0}")]
    Unavailable(String),
    /// The kernel refused.
    #[error("{knob}: cannot {operation}: {source}")]
    Io {
        /// Knob.
        knob: String,
        /// "read /proc/sys/...", "set features of eth0".
        operation: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A write that the kernel took without doing it.
    #[error("{knob}: asked for '{asked}', reads back '{found}'; it was put back")]
    NotAsWritten {
        /// Knob.
        knob: String,
        /// What was written.
        asked: String,
        /// What was read.
        found: String,
    },
    /// The value is neither the original nor what this run wrote last, so the guardian let nothing be written.
    #[error(
        "{knob}: somebody else set it to '{}' since this run set it to '{ours}': it is left alone",
        found.escape_default()
    )]
    Foreign {
        /// Knob.
        knob: String,
        /// What stands.
        found: String,
        /// What this run wrote last.
        ours: String,
    },
    /// The guardian let nothing be written, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The journal or its guardian failed, so nothing was changed.
    #[error("journal: {0}")]
    Journal(String),
}

impl Error {
    /// A value that the knob does not take.
    pub(crate) fn value(knob: &str, value: &str, expected: impl Into<String>) -> Error {
        let (name, value) = (knob.to_owned(), value.to_owned());
        landspeed_factor::Error::Value { name, value, expected: expected.into() }.into()
    }
}
