//! What can go wrong between a congestion control and the kernel.

use std::io;
use std::path::PathBuf;

use landspeed_units::did_you_mean;

use crate::CONTROLS;

/// An operation that failed, what it was about, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No row of the table has this name.
    #[error("no congestion control is called {name:?}{near} (`landspeed cc list` lists all)")]
    Unknown {
        /// As given.
        name: String,
        /// "; did you mean cubic?", or nothing.
        near: String,
    },
    /// The kernel has this control itself.
    #[error("{name} is the kernel's own: it needs no loading (where it is missing: modprobe tcp_{name})")]
    Kernels { name: &'static str },
    /// The kernel's own control is not in this kernel.
    #[error("{name} is not in this kernel: `modprobe tcp_{name}` loads it where it was built as a module")]
    Missing { name: &'static str },
    #[error(
        "cannot load a congestion control here: {reason}; `landspeed compare --simulate` needs no kernel"
    )]
    CannotLoad {
        /// Why, with the remedy.
        reason: String,
    },
    /// This host loads congestion controls, but not this one.
    #[error("{name} is refused: {reason}")]
    Refused {
        name: &'static str,
        /// Why, with the remedy.
        reason: &'static str,
    },
    #[error("{name} is loaded already{holder}")]
    Taken {
        name: &'static str,
        /// By whom, and how to end it; empty where that is not known.
        holder: String,
    },
    /// The kernel did not take the programs.
    #[error("the kernel refuses {name}: {why}")]
    Kernel {
        name: &'static str,
        /// What it or libbpf says.
        why: String,
    },
    #[error("{name} was not loaded with --keep{holder}")]
    NotKept {
        name: &'static str,
        /// Who else has it loaded, and how to end it; empty where nobody has.
        holder: String,
    },
    /// A file or folder of the BPF file system.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io { operation: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    /// A control that no row has.
    pub fn unknown(name: &str) -> Self {
        let near = did_you_mean(name, CONTROLS.iter().map(|row| row.name));
        Error::Unknown { name: name.to_owned(), near }
    }

    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Error::Io { operation, path: path.into(), source }
    }
}
