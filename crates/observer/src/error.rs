//! What can go wrong while observing.

use std::io;

/// An observation that failed. Only the observer's own figures are missing then, and the trial goes on: the
/// [`Watcher`](crate::Watcher) turns the error into a line of `Observations::unseen`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {object}: {source}")]
    Io {
        /// The operation: "read", "ask TCP_INFO of".
        operation: &'static str,
        /// The file, socket or thread.
        object: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel's answer does not have the shape that its documentation gives.
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
        /// The process.
        pid: u32,
        /// The namespace: "network namespace blue".
        namespace: String,
        /// The command that watches it there.
        command: String,
    },
    /// This process may not inspect the process to watch.
    #[error("process {pid} belongs to another user: only root may watch it (sudo)")]
    Forbidden {
        /// The process.
        pid: u32,
    },
    /// The object to watch does not exist.
    #[error("{object} is gone: {why}")]
    Gone {
        /// The thread, socket or device.
        object: String,
        /// What that means, or what to do.
        why: String,
    },
}

impl Error {
    pub(crate) fn io(operation: &'static str, object: impl Into<String>, source: io::Error) -> Self {
        Error::Io { operation, object: object.into(), source }
    }

    pub(crate) fn shape(object: impl Into<String>, why: impl Into<String>) -> Self {
        Error::Shape { object: object.into(), why: why.into() }
    }
}
