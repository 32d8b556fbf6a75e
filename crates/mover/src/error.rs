use std::io;

use landspeed_record::units::Nanos;

/// An error that ends a copy. An entry that fails does not end it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A data flow broke.
    #[error("a data flow broke: {0}")]
    Flow(#[source] io::Error),
    /// The other end was silent for too long.
    #[error(
        "a data flow broke, and nothing was heard on it for {waited}: the same command goes on from there; --patience \
         waits longer"
    )]
    Silent {
        /// The time since the other end was heard.
        waited: Nanos,
    },
    /// Nothing was heard of the other end of a comparison.
    #[error(
        "nothing was heard of the other end for {waited}: run the same command again; --patience waits longer"
    )]
    Unheard {
        /// The time since the other end was heard.
        waited: Nanos,
    },
    /// The other end cannot continue, and reports the reason itself.
    #[error("a data flow broke: the other end ended the copy")]
    Ended,
    /// The other end sent what no honest end sends.
    #[error("the other end broke the protocol of a copy: {0}")]
    Protocol(&'static str),
    /// The other end speaks another version of the protocol.
    #[error(
        "the other end copies in version {theirs}, and this one in version {own}: use one landspeed on both hosts"
    )]
    Version {
        /// The version of this end.
        own: u8,
        /// The version of the other end.
        theirs: u8,
    },
    /// A transport refused an operation.
    #[error(transparent)]
    Transport(#[from] landspeed_transport::Error),
    /// A flow lacks a setting that was asked for.
    #[error("{0}: leave this setting out, or ask for another value")]
    Setting(String),
    /// The system refused an operation on a path that the user named.
    #[error("{path}: cannot {operation}: {source}{}", remedy(operation, source))]
    Path {
        /// The path, as text for people.
        path: String,
        /// The operation, such as "open it".
        operation: &'static str,
        /// The reason of the system.
        source: io::Error,
    },
    /// Another copy writes into the same target.
    #[error("{path}: another copy writes here ({holder}): wait for its end")]
    Locked {
        /// The target's folder.
        path: String,
        /// The other copy's description of itself.
        holder: String,
    },
    /// The folder for incomplete files could be written by others.
    #[error("{path}: {why}: remove it")]
    UnsafeFolder {
        /// The folder.
        path: String,
        /// The fault of the folder.
        why: &'static str,
    },
    /// `--delete` was given, and a source is no folder.
    #[error("--delete needs folders: a source is a file or a link; name the folder that it is in")]
    NoFolderToMirror,
    /// `--delete` was given, and the entries of several folders land in one.
    #[error(
        "--delete takes one folder whose entries land in the target's own: copy the others by commands of their own"
    )]
    SeveralToMirror,
    /// `--delete` was given, and only some names are copied.
    #[error("--delete needs whole folders: leave --files-from out")]
    NamesToMirror,
    /// The controller asked to end the copy.
    #[error("the copy was cancelled")]
    Cancelled,
}

/// The remedy for a refusal of the system, after "; "; empty where none is known.
fn remedy(operation: &str, refusal: &io::Error) -> &'static str {
    match refusal.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "; name another place, or log in as a user who has the rights",
        Some(libc::ENOENT) if operation == crate::metadata::LOOK => {
            "; mount /proc, or leave xattrs and acls out at a source (--keep)"
        }
        Some(libc::ENOENT) if operation == "create it" => "; create the folder above it first",
        Some(libc::ENOENT) => "; check the path",
        Some(libc::ENOTDIR) => "; check the path: it leads through something that is no folder",
        Some(libc::ENOSPC | libc::EDQUOT) => "; free some space there",
        Some(libc::EXDEV) => "; it leads out of the folder that the agent there was started with",
        Some(libc::EROFS) => "; its file system is mounted read-only: name another place",
        Some(libc::ENOSYS) => {
            "; a copy needs openat2(2), which Linux has since 5.6 and old container runtimes deny"
        }
        _ => "",
    }
}

impl Error {
    /// Returns true if the error is one of a flow, which can be opened again.
    pub(crate) fn is_of_flow(&self) -> bool {
        matches!(self, Error::Flow(_) | Error::Transport(_))
    }

    /// Returns a function that turns the system's refusal of `operation` on `path` into an error.
    pub(crate) fn at(path: &std::path::Path, operation: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.display().to_string();
        move |source| Error::Path { path, operation, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_system_is_reported_with_its_remedy() {
        let at = std::path::Path::new("/mnt/a");
        let text =
            |operation, errno| Error::at(at, operation)(io::Error::from_raw_os_error(errno)).to_string();
        for (operation, errno, remedy) in [
            ("create it", libc::ENOENT, "create the folder above it first"),
            ("open it", libc::ENOENT, "check the path"),
            ("create it", libc::EACCES, "log in as a user who has the rights"),
            ("write to it", libc::ENOSPC, "free some space there"),
            ("write to it", libc::EROFS, "mounted read-only"),
            ("open it", libc::EXDEV, "leads out of the folder"),
            ("open it", libc::ENOSYS, "Linux has since 5.6"),
        ] {
            let text = text(operation, errno);
            let begins = format!("/mnt/a: cannot {operation}: ");
            assert!(text.starts_with(&begins) && text.contains(remedy), "{text}");
        }
        assert!(text("read it", libc::EIO).ends_with("(os error 5)"));
    }
}
