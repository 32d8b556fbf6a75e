//! Errors of system operations, each with the name of the operation.

use std::io;

/// A failed system operation: its name and the I/O error.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {source}")]
pub struct IoFailure {
    pub(crate) operation: String,
    pub(crate) source: io::Error,
}

pub(crate) trait FailureContext<T> {
    /// Adds the name of the operation to an I/O error.
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, IoFailure>;
}

impl<T, E: Into<io::Error>> FailureContext<T> for Result<T, E> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, IoFailure> {
        self.map_err(|error| IoFailure { operation: operation(), source: error.into() })
    }
}
