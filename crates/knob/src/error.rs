//! What can go wrong with a knob.

/// An error that names the knob and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such knob in the table.
    #[error("no knob is called '{}'; `landspeed knobs` lists them", .0.escape_default())]
    Unknown(String),
    /// The value lies outside the knob's domain.
    #[error("{knob} does not take '{}': expected {expected}", value.escape_default())]
    Value {
        /// Knob.
        knob: String,
        /// What was given.
        value: String,
        /// What it takes.
        expected: String,
    },
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
