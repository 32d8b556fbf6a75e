//! Errors of private folders.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// An error that says why a folder cannot be used.
#[allow(missing_docs, reason = "each text says what its variant is")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} {why}", path.display())]
    Refused { path: PathBuf, why: String },
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path, errno: Errno) -> Self {
        Error::Io { what, path: path.to_owned(), source: errno.into() }
    }

    pub(crate) fn refused(path: &Path, why: impl Into<String>) -> Self {
        Error::Refused { path: path.to_owned(), why: why.into() }
    }
}
