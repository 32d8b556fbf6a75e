//! The errors of a topology.

use std::io::ErrorKind;

use landspeed_kernel::folder;

use crate::IoFailure;

/// An error that names the operation, its object and, where possible, the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that is not valid.
    #[error("'{}' is no {what}: expected {expected}", given.escape_default())]
    Name { what: &'static str, given: String, expected: &'static str },
    /// The kernel refused an operation.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// A netlink request failed, such as the creation of a link, an address or a queue.
    #[error(transparent)]
    Netlink(#[from] landspeed_kernel::netlink::Error),
    /// A namespace of this name already exists. It was not changed.
    #[error("network namespace {0} exists already; `ip netns delete {0}` removes it")]
    Exists(String),
    /// The process has several threads, and entering a namespace moves only one.
    #[error(
        "cannot enter network namespace {name}: this process has {threads} threads, and only one would move"
    )]
    Threads { name: String, threads: usize },
    /// This topology cannot be opened on this machine or by this user.
    #[error("{topology} cannot run here: {why}")]
    CannotRun { topology: &'static str, why: String },
    /// An emulated link could not be created.
    #[error(transparent)]
    Link(#[from] crate::emulator::Error),
    /// The words of a command line do not name a topology.
    #[error("{0}")]
    Hosts(String),
    /// Two words of a command line name the same host.
    #[error(
        "{a} and {b} are one host, and traffic within a host takes loopback, which is not a network path: name two hosts, \
         or use lab:back-to-back"
    )]
    OneHost { a: String, b: String },
    /// The folder of state files cannot be used.
    #[error("{}{}", .0, remedy(.0))]
    Folder(#[from] folder::Error),
    /// An environment variable does not contain an absolute path.
    #[error("{0} names no absolute path")]
    NotAbsolute(&'static str),
    /// A virtual machine does not run. `last` is what it printed last.
    #[error("guest {number} {why}: {last}")]
    Guest { number: usize, why: String, last: String },
    #[error("there is no lab {0}; `landspeed lab list` shows those that are")]
    NoLab(String),
    /// No network namespace of this machine has this name.
    #[error(
        "no network namespace is called {0}: `ip netns list` shows those that are, `ip netns attach {0} PID` names a \
         container's, and `landspeed lab up` makes some"
    )]
    NoNamespace(String),
    /// Another command took the lab with this ID down while it was made.
    #[error("lab {0} was taken down while it was made")]
    TakenDown(String),
}

impl Error {
    /// Returns true if the error is about the words of a command line: they do not name hosts, a lab or a namespace, or
    /// name one that does not exist.
    pub fn is_about_words(&self) -> bool {
        use Error::{Hosts, Name, NoLab, NoNamespace, OneHost};
        matches!(self, Name { .. } | Hosts(_) | OneHost { .. } | NoLab(_) | NoNamespace(_))
    }
}

fn remedy(error: &folder::Error) -> &'static str {
    match error {
        folder::Error::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => "; run as root",
        _ => "",
    }
}
