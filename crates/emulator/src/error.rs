//! What can go wrong with a link.

use std::io;

use crate::keys::WanSpecError;

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Parameters that make no link.
    #[error(transparent)]
    Spec(#[from] WanSpecError),
    /// This machine cannot have this link: the reason and the remedy.
    #[error("lab:wan cannot run here: {0}")]
    CannotRun(String),
    /// The kernel refused.
    #[error("{operation}: {source}")]
    Io {
        /// What was tried, on what.
        operation: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A queue or a bridge could not be made.
    #[error(transparent)]
    Netlink(#[from] landspeed_netlink::Error),
}

/// Names the operation that an I/O error belongs to.
pub(crate) trait During<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Io { operation: operation(), source })
    }
}
