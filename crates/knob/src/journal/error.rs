//! Errors of the journal.

use std::io;
use std::path::{Path, PathBuf};

/// An error of the journal. The text names the object and the remedy. An operation that returns it has changed nothing
/// on the host.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages tell the fields")]
pub enum JournalError {
    /// A folder or file of the journal cannot be trusted.
    #[error("{} {why}", path.display())]
    Folder { path: PathBuf, why: String },
    /// An operation on a file failed.
    #[error("cannot {operation} {}: {source}{}", path.display(), remedy(.source))]
    Io { operation: &'static str, path: PathBuf, source: io::Error },
    /// Another run holds the lock.
    #[error(
        "another run is tuning here (pid {pid}{}): wait for its end, or stop it and try again",
        of_user(*uid)
    )]
    InProgress { pid: u32, uid: u32 },
    /// The guardian of a dead agent holds the lock and does not restore settings.
    #[error(
        "the guardian of an earlier run (pid {pid}) {how}: `kill -CONT {pid}` lets it go on and put everything \
         back; where that does not help, run `kill -KILL {pid}`, then `landspeed undo`"
    )]
    Stuck { pid: u32, how: &'static str },
    /// The process that holds the lock is not visible to this one.
    #[error("{} is locked by a process that cannot be seen from here (another container?): wait for its end", path.display())]
    Unseen { path: PathBuf },
    /// An earlier run that could not restore its changes has left its journal.
    #[error("an earlier run left changes: run `landspeed undo` (journal {})", path.display())]
    Pending { path: PathBuf },
    /// A property of this process or host cannot be determined, but the journal needs it.
    #[error("cannot find out {what}: {source}")]
    Unknown { what: &'static str, source: io::Error },
    /// The guardian could not be started or does not answer.
    #[error("the guardian {0}")]
    Guardian(String),
    /// The run may no longer change knobs, for this reason, and everything is being restored.
    #[error("{0}: everything is being put back, no knob is turned any more")]
    Lost(String),
    /// The journal has reached its maximum size.
    #[error("the journal {} is full: restore before turning more", path.display())]
    Full { path: PathBuf },
}

/// Returns " of user N", or an empty text if the user is that of this process.
fn of_user(uid: u32) -> String {
    if uid == rustix::process::geteuid().as_raw() { String::new() } else { format!(" of user {uid}") }
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space or set LANDSPEED_STATE_DIR to a folder elsewhere"
        }
        io::ErrorKind::PermissionDenied => "; run as root",
        io::ErrorKind::ReadOnlyFilesystem => "; set LANDSPEED_STATE_DIR to a folder elsewhere",
        _ => "",
    }
}

impl JournalError {
    pub(super) fn folder(path: &Path, why: impl Into<String>) -> Self {
        JournalError::Folder { path: path.to_owned(), why: why.into() }
    }

    pub(super) fn io(operation: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        JournalError::Io { operation, path: path.to_owned(), source: source.into() }
    }
}

impl From<landspeed_kernel::folder::Error> for JournalError {
    fn from(error: landspeed_kernel::folder::Error) -> Self {
        match error {
            landspeed_kernel::folder::Error::Io { what, path, source } => {
                JournalError::io(what, &path, source)
            }
            landspeed_kernel::folder::Error::Refused { path, why } => JournalError::folder(&path, why),
        }
    }
}

impl From<JournalError> for crate::Error {
    fn from(error: JournalError) -> Self {
        crate::Error::Journal(error.to_string())
    }
}
