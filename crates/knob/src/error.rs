//! Errors of knobs.

/// An error that names the knob and, if there is one, the remedy.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages tell the fields")]
pub enum Error {
    /// The knob does not exist, or the value is not one of its values.
    #[error(transparent)]
    Factor(#[from] landspeed_record::factor::Error),
    /// This host or device lacks the knob.
    #[error("{0}")]
    Unavailable(String),
    /// The kernel returned an error over netlink.
    #[error(transparent)]
    Netlink(#[from] landspeed_kernel::netlink::Error),
    /// The kernel returned an error for a file.
    #[error("{knob}: cannot {operation}: {source}")]
    Io { knob: String, operation: String, source: std::io::Error },
    /// The kernel accepted a write, but the knob reads back another value.
    #[error("{knob}: asked for '{asked}', reads back '{found}'; it was put back")]
    NotAsWritten { knob: String, asked: String, found: String },
    /// The current value is neither the original one nor the one after this run's last write, so another program has
    /// set it. The guardian did not permit the write.
    #[error(
        "{knob}: another program set it to '{}' since this run set it to '{ours}': it is left alone",
        found.escape_default()
    )]
    Foreign { knob: String, found: String, ours: String },
    /// The guardian did not permit the write, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The journal or its guardian refused or failed, and nothing was changed. The same variant reports a write that
    /// could not be reverted immediately. The old value is then restored at the end of the run.
    #[error("journal: {0}")]
    Journal(String),
}

impl Error {
    /// Returns the error for a value that the knob does not accept.
    pub(crate) fn value(knob: &str, value: &str, expected: impl Into<String>) -> Error {
        let (name, value) = (knob.to_owned(), value.to_owned());
        landspeed_record::factor::Error::Value { name, value, expected: expected.into() }.into()
    }
}
