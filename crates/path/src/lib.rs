//! Paths: the mechanisms that carry the bytes of a program's sockets, below the sockets API.
//!
//! A program calls socket(2), connect(2) and accept(2) as usual. Where a [`Path`] can, it puts another carrier below a
//! TCP connection. The program is not changed, not linked again, and does not notice. A connection that cannot be
//! carried stays on TCP and is counted with the reason.
//!
//! | module | is |
//! |---|---|
//! | `kernel` | the kernel's TCP, unchanged |
//! | `local` | an AF_UNIX socket in place of a connection between two programs on one host |
//! | `mptcp` | the kernel's Multipath TCP in place of TCP |
//! | `bytes` | counts the bytes that carried sockets send and receive |
//! | `notify` | system calls of a program, answered by another process (seccomp_unotify(2)) |
//! | `gate`, `rights` | which calls are left to the kernel before a path gets them |
//! | `supervisor` | the threads that answer calls |
//! | `follow`, `heir` | the keeper: waits for the supervisor's end, and answers from then on |
//! | `exec`, `begin`, `front` | runs a program over a path: all of it, its start, the process that a shell waits for |
//!
//! A new path is a folder, a row of [`PATHS`] and a line above. Begin with a copy of `mptcp`, the smaller one. The
//! supervisor calls [`Path::carrier`] once for a program, then [`PathCarrier::answer`] for each call that
//! [`Path::rules`] selects. After the supervisor's death a keeper calls [`Path::alone`], and [`PathCarrier::resume`]
//! for each call that the supervisor had not answered. A path answers calls that it does not know with
//! [`SyscallAnswer::Continue`].

#![warn(missing_docs)]

mod accept;
mod alarm;
mod begin;
mod bytes;
mod count;
mod error;
mod exec;
mod follow;
mod front;
mod gate;
mod heir;
mod kernel;
mod late;
mod local;
mod mptcp;
mod notify;
mod rights;
mod selector;
mod shared;
mod socket;
mod supervisor;

pub use count::{ByteCounts, ConnectionCounts, FallbackReason};
pub use error::Error;
pub use exec::{ExecOutcome, exec};
pub use heir::{Inheritance, keep};
pub use selector::{ConnectionSelector, PortOrNetwork, PortOrNetworkError};
pub use shared::SupervisorNotes;

use std::sync::Arc;

pub use notify::{ArgumentCondition, NotifiedCall, SyscallAnswer, SyscallRule};

/// A way to carry the bytes of a program's sockets.
pub trait Path: Sync {
    /// Returns the path's name, such as "local".
    fn name(&self) -> &'static str;

    /// Returns one line that describes the path.
    fn describe(&self) -> &'static str;

    /// Returns the system calls that the path answers instead of the kernel; empty if the program runs unchanged.
    fn rules(&self) -> &'static [SyscallRule];

    /// Returns the reason why the path must carry all connections of a program; `None` if it can carry a selection of
    /// them.
    fn takes_all(&self) -> Option<&'static str> {
        None
    }

    /// Creates the carrier for the connections of one program.
    ///
    /// # Errors
    /// Returns an error if the host lacks a feature that the path needs.
    fn carrier(
        &self,
        shared: &Arc<SupervisorNotes>,
        options: &Options,
    ) -> Result<Box<dyn PathCarrier>, Error>;

    /// Returns the carrier for a keeper, the process that replaces a killed supervisor. It serves the connections that
    /// are already carried, and carries no new ones.
    fn alone(&self, shared: &Arc<SupervisorNotes>) -> Box<dyn PathCarrier>;

    /// Removes the files that a killed supervisor has left.
    fn clear(&self) {}
}

/// Carries the connections of one program and of the processes that it starts.
pub trait PathCarrier: Send + Sync {
    /// Answers a system call of the program. This may block as long as the system call itself would.
    fn answer(&self, call: &NotifiedCall<'_>) -> SyscallAnswer;

    /// Counts a connection that the kernel's TCP kept, with the reason.
    fn left(&self, why: FallbackReason);

    /// Returns the numbers of connections, carried and left on TCP, and their bytes so far.
    fn counts(&self) -> ConnectionCounts;

    /// Answers a call that a killed supervisor had begun to process. Returns `None` if the call can be answered like a
    /// new one.
    fn resume(&self, call: &NotifiedCall<'_>, inheritance: &mut Inheritance) -> Option<SyscallAnswer> {
        let _ = (call, inheritance);
        None
    }
}

/// Options of a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The connections that the path carries. All others stay on TCP.
    pub only: ConnectionSelector,
    /// True if the path counts bytes.
    pub bytes: bool,
    /// True if running without the path is an error. Otherwise a program that the path cannot carry runs over TCP.
    pub require: bool,
}

/// Environment variable that names a network in which no two hosts have the same address. Programs with the same value
/// run in the same network. The maker of the network sets it, because landspeed cannot find out if addresses are
/// unique.
pub const NET: &str = "LANDSPEED_PATH_NET";

/// All paths. The first one leaves the kernel's TCP unchanged. Tests list the names of the others again: see
/// CONTRIBUTING.md.
pub const PATHS: &[&dyn Path] = &[&kernel::KernelPath, &local::LocalPath, &mptcp::MptcpPath];

/// Returns the path with this name, or `None` if there is none.
pub fn find(name: &str) -> Option<&'static dyn Path> {
    PATHS.iter().copied().find(|path| path.name() == name)
}
