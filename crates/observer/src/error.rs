//! What can go wrong while observing.

use std::io;

/// An observation that failed. An observer that fails costs its own figures, never the trial: the
/// [`Watcher`](crate::Watcher) turns the error into a line of `Observations::unseen`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {operation} {object}: {source}")]
    Io {
        /// "read", "ask TCP_INFO of".
        operation: &'static str,
        /// The file, socket or thread.
        object: String,
        /// Why, as the kernel says.
        source: io::Error,
    },
    /// The kernel's answer is not of the shape that its documentation gives.
    #[error(
        "cannot make sense of {object}: {why}; please report the file's contents with your kernel's version"
    )]
    Shape {
        /// The file or message.
        object: String,
        /// What was expected.
        why: String,
    },
    /// The kernel's answer over netlink; the message names operation and object.
    #[error(transparent)]
    Netlink(#[from] landspeed_netlink::Error),
    /// The process to watch is in another network namespace.
    #[error("process {pid} is in {namespace}: {command}")]
    Elsewhere {
        /// The process.
        pid: u32,
        /// "network namespace blue".
        namespace: String,
        /// What to do.
        command: String,
    },
    /// The process to watch may not be looked at.
    #[error("process {pid} belongs to another user: only root may watch it (sudo)")]
    Forbidden {
        /// The process.
        pid: u32,
    },
    /// The thing to watch is not there.
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
