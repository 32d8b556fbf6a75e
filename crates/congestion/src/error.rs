//! Errors of controls and of loading them into the kernel.

use std::io;
use std::path::PathBuf;

use landspeed_record::units::did_you_mean;

use crate::CONTROLS;

/// A failed operation on a congestion control. The message names the control, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No control has this name.
    #[error("no congestion control is called {name:?}{near} (`landspeed cc list` lists all)")]
    Unknown {
        /// The unknown name.
        name: String,
        /// A part of the message: a suggestion such as "; did you mean cubic?", or empty.
        near: String,
    },
    /// The control cannot be loaded, because it is the kernel's own.
    #[error("{name} is the kernel's own: it needs no loading (where it is missing: modprobe tcp_{name})")]
    Kernels { name: &'static str },
    /// The control is one of the kernel's own, but the running kernel does not have it.
    #[error("{name} is not in this kernel: `modprobe tcp_{name}` loads it where it was built as a module")]
    Missing { name: &'static str },
    #[error(
        "cannot load a congestion control here: {reason}{instead}; `landspeed compare --simulate` needs no kernel"
    )]
    CannotLoad {
        /// The cause, with the remedy.
        reason: String,
        /// A part of the message: Linux's own control of the same name; empty if there is none.
        instead: String,
    },
    /// The host can load congestion controls in general, but not this control.
    #[error("{name} is refused: {reason}")]
    Refused {
        name: &'static str,
        /// The cause, with the remedy.
        reason: &'static str,
    },
    #[error("{name} is loaded already{holder}")]
    Taken {
        name: &'static str,
        /// The end of the message: the holder of the control and how to end it; empty if it is not known.
        holder: String,
    },
    /// The kernel refused the control's BPF programs.
    #[error("the kernel refuses {name}: {why}")]
    Kernel {
        name: &'static str,
        /// The message of the kernel or of libbpf.
        why: String,
    },
    #[error("{name} was not loaded with --keep{holder}")]
    NotKept {
        name: &'static str,
        /// The end of the message: the holder of the control and how to end it; empty if there is none.
        holder: String,
    },
    /// An operation on a file or folder of the BPF file system failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io { operation: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    /// Creates the error for a name that no control has.
    pub fn unknown(name: &str) -> Self {
        let near = did_you_mean(name, CONTROLS.iter().map(|row| row.name));
        Error::Unknown { name: name.to_owned(), near }
    }

    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Error::Io { operation, path: path.into(), source }
    }
}
