//! What can go wrong with a knob.

/// An error that names the knob and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages tell the fields")]
pub enum Error {
    /// No such knob, or not a value of it.
    #[error(transparent)]
    Factor(#[from] landspeed_factor::Error),
    /// This host or device lacks the knob.
    #[error("{0}")]
    Unavailable(String),
    /// Netlink refused.
    #[error(transparent)]
    Netlink(#[from] landspeed_netlink::Error),
    /// The kernel refused.
    #[error("{knob}: cannot {operation}: {source}")]
    Io { knob: String, operation: String, source: std::io::Error },
    /// A write that the kernel took without doing it.
    #[error("{knob}: asked for '{asked}', reads back '{found}'; it was put back")]
    NotAsWritten { knob: String, asked: String, found: String },
    /// The value is neither the original nor what this run wrote last, so the guardian let nothing be written.
    #[error(
        "{knob}: another program set it to '{}' since this run set it to '{ours}': it is left alone",
        found.escape_default()
    )]
    Foreign { knob: String, found: String, ours: String },
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
