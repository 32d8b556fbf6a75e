//! Why a limit could not be measured.

use std::io;

/// A measurement that failed. Only its own figures are missing then: [`measure`](crate::capacity::measure) turns the error into
/// a note.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot {operation} {object}: {source}")]
    Io {
        /// The operation: "send to", "pin a thread to".
        operation: &'static str,
        /// The device, core or file.
        object: String,
        source: io::Error,
    },
    /// The kernel refused a netlink request about a link or an address.
    #[error(transparent)]
    Netlink(#[from] landspeed_kernel::netlink::Error),
    /// A condition of the measurement does not hold.
    #[error("{0}")]
    Unable(String),
    /// STREAM's arrays do not hold the values that the four kernels must leave in them.
    #[error(
        "STREAM's arrays are wrong after {repetitions} repetitions (relative error {error:.1e}): its rates \
         are void; check this host's memory"
    )]
    Wrong {
        /// How often the four kernels ran.
        repetitions: u32,
        /// The largest relative error of the three arrays' means.
        error: f64,
    },
    /// The time was over, or the measurement was cancelled, before there was a figure.
    #[error("no time was left to {0}")]
    Late(&'static str),
}

impl Error {
    pub(crate) fn io(
        operation: &'static str,
        object: impl Into<String>,
        source: impl Into<io::Error>,
    ) -> Self {
        Error::Io { operation, object: object.into(), source: source.into() }
    }
}
