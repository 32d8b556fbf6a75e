//! Errors of observations and measurements.

use std::io;

/// The reason why an observation or the measurement of a limit failed. Only the figures of this observation or
/// measurement are then missing, and the trial continues. The [`Watcher`](crate::Watcher) converts the error to a line
/// of `Observations::unseen`, and [`measure`](crate::capacity::measure) to a note.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {object}: {source}")]
    Io {
        /// The operation: "read", "ask TCP_INFO of", "pin a thread to".
        operation: &'static str,
        /// The file, socket, thread, device or core.
        object: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel's answer does not have the documented form.
    #[error(
        "cannot make sense of {object}: {why}; please report the file's contents with your kernel's version"
    )]
    Shape {
        /// The file or message.
        object: String,
        /// What was expected.
        why: String,
    },
    /// A netlink request failed; the message names operation and object.
    #[error(transparent)]
    Netlink(#[from] landspeed_kernel::netlink::Error),
    /// The process to watch is in another network namespace.
    #[error("process {pid} is in {namespace}: {command}")]
    Elsewhere {
        /// The id of the process.
        pid: u32,
        /// The namespace of the process: "network namespace blue".
        namespace: String,
        /// The command that watches the process in its namespace.
        command: String,
    },
    /// This process may not inspect the process to watch.
    #[error("process {pid} belongs to another user: only root may watch it (sudo)")]
    Forbidden {
        /// The id of the process.
        pid: u32,
    },
    /// The object to watch does not exist.
    #[error("{object} is gone: {why}")]
    Gone {
        /// The thread, socket or device.
        object: String,
        /// The reason or the remedy, with which the message ends.
        why: String,
    },
    /// A condition of a measurement does not hold.
    #[error("{0}")]
    Unable(String),
    /// After the measurement of memory bandwidth, STREAM's arrays do not contain the values that its four kernels
    /// compute.
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
    /// The measurement reached its time limit or was cancelled before it had a result.
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

    /// Converts an error of libbpf.
    pub(crate) fn libbpf(operation: &'static str, object: &str, error: &libbpf_rs::Error) -> Self {
        Error::io(operation, object, io::Error::other(error.to_string()))
    }

    pub(crate) fn shape(object: impl Into<String>, why: impl Into<String>) -> Self {
        Error::Shape { object: object.into(), why: why.into() }
    }
}
