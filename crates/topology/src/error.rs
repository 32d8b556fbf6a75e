//! What can go wrong with a topology.

use std::io;
use std::path::PathBuf;

/// An error that names the operation, its object and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that must not reach the file system.
    #[error("'{}' is no {what}: expected {expected}", given.escape_default())]
    Name { what: &'static str, given: String, expected: &'static str },
    /// The kernel refused.
    #[error("{operation}: {source}")]
    Io { operation: String, source: io::Error },
    /// A link, address or queue could not be made.
    #[error(transparent)]
    Netlink(#[from] landspeed_netlink::Error),
    /// A namespace of this name is there already and was left alone.
    #[error("network namespace {0} exists already; `ip netns delete {0}` removes it")]
    Exists(String),
    /// Entering a namespace moves one thread only, so there must be no other.
    #[error(
        "cannot enter network namespace {name}: this process has {threads} threads, and only one would move"
    )]
    Threads { name: String, threads: usize },
    /// This machine or user cannot have this topology.
    #[error("{topology} cannot run here: {why}")]
    CannotRun { topology: &'static str, why: String },
    /// A link that landspeed carries itself could not be made.
    #[error(transparent)]
    Link(#[from] landspeed_emulator::Error),
    /// The words of a command line name no topology.
    #[error("{0}")]
    Hosts(String),
    /// Two words of a command line name one host.
    #[error(
        "{a} and {b} are one host, and traffic within a host takes loopback, which is not a network path: name two hosts, \
         or use lab:back-to-back"
    )]
    OneHost { a: String, b: String },
    /// A file or folder that somebody else could have put there.
    #[error("{} is not used: {why}", path.display())]
    Untrusted { path: PathBuf, why: String },
    #[error("there is no lab {0}; `landspeed lab list` shows those that are")]
    NoLab(String),
}

/// Names the operation that an I/O error belongs to.
pub(crate) trait During<T> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, operation: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|e| Error::Io { operation: operation(), source: e.into() })
    }
}
