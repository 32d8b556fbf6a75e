//! The errors of a fault lab.

use crate::IoFailure;

/// The reason why a scenario could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Topology(#[from] crate::topology::Error),
    #[error(transparent)]
    Knob(#[from] landspeed_knob::Error),
    #[error(transparent)]
    Netlink(#[from] landspeed_kernel::netlink::Error),
    /// The operating system refused an operation.
    #[error("cannot {0}")]
    Io(#[from] IoFailure),
    /// A program of the scenario did not start.
    #[error("the program for {what} ended before it was ready: {said}")]
    App { what: String, said: String },
    #[error("no fault is called '{name}'{near} (`landspeed lab faults` lists all)")]
    Unknown {
        name: String,
        /// A suggestion such as "; did you mean random-loss?", or empty.
        near: String,
    },
    /// Faults that cannot be combined.
    #[error("{0} and {1} cannot be had on one flow: each needs traffic of its own")]
    Together(String, String),
}
