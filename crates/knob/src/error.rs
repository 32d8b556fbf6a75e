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
    /// The kernel accepted a write without carrying it out.
    #[error("{knob}: asked for '{asked}', reads back '{found}'; it was put back")]
    NotAsWritten { knob: String, asked: String, found: String },
    /// The value is neither the original nor the one that this run wrote last, so the guardian did not permit the
    /// write.
    #[error(
        "{knob}: another program set it to '{}' since this run set it to '{ours}': it is left alone",
        found.escape_default()
    )]
    Foreign { knob: String, found: String, ours: String },
    /// The guardian did not permit the write, for this reason.
    #[error("{0}")]
    Refused(String),
    /// Either the journal or its guardian refused or failed, and nothing was changed. Or a write could not be reverted
    /// at once, and the old value is restored at the end of the run.
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
