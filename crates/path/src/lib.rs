//! Paths: the mechanisms that carry the bytes of a program's sockets, below the sockets API.
//!
//! A program calls socket(2), connect(2) and accept(2) as usual. If possible, a [`Path`] carries the connection over
//! another transport than TCP. The program is neither changed nor linked again, and does not notice. A connection that
//! cannot be carried stays on TCP, and is counted with the reason.
//!
//! | module | content |
//! |---|---|
//! | `kernel` | the kernel's TCP, unchanged |
//! | `local` | an AF_UNIX socket in place of a connection between two programs on one host |
//! | `mptcp` | the kernel's Multipath TCP in place of TCP |
//! | `smc` | the kernel's SMC-R in place of TCP: RDMA between two hosts |
//! | `rsocket` | librdmacm's rsockets in place of TCP: RDMA between two hosts, by a library that is preloaded |
//! | `kernel_socket` | the common part of `mptcp` and `smc`: a protocol of the kernel in place of TCP |
//! | `rdma` | the RDMA devices of a path, and the packets that they send |
//! | `bytes` | counts the bytes that carried sockets send and receive |
//! | `notify` | passes system calls of a program to another process, which answers them (seccomp_unotify(2)) |
//! | `gate`, `rights` | select the calls that the kernel answers before a path gets them |
//! | `supervisor` | the threads that answer calls |
//! | `follow`, `heir` | the keeper, which answers calls after the supervisor's end: its start and its work |
//! | `exec`, `begin`, `front` | run a program over a path: the run, its start, the process that a shell waits for |
//!
//! A new path needs a folder, an entry in [`PATHS`] and a row in the table above. If a protocol of the kernel carries it,
//! begin with a copy of `mptcp`; if a library in the program carries it, see `rsocket`. The supervisor calls
//! [`Path::carrier`] once for a program, then [`PathCarrier::answer`] for each call that [`Path::rules`] selects. If the
//! supervisor is killed, the keeper calls [`Path::alone`], and then [`PathCarrier::resume`] for each call that the
//! supervisor had received but not answered. A path answers calls that it does not handle with
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
mod kernel_socket;
mod late;
mod local;
mod mptcp;
mod notify;
mod rdma;
mod rights;
mod rsocket;
mod selector;
mod shared;
mod smc;
mod socket;
mod supervisor;

pub use count::{ByteCounts, ConnectionCounts, FallbackReason, MissingFeature, RdmaAddress, RdmaDevice};
pub use error::Error;
pub use exec::{ExecOutcome, exec};
pub use heir::{Inheritance, keep};
pub use selector::{ConnectionSelector, PortOrNetwork, PortOrNetworkError};
pub use shared::SupervisorNotes;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use landspeed_record::{KernelNeed, KernelVersion};

pub use notify::{ArgumentCondition, NotifiedCall, SyscallAnswer, SyscallRule};

/// A mechanism that carries the bytes of a program's sockets.
///
/// # Examples
/// A path that carries nothing, and counts the connections that a program opens:
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use landspeed_path::{
///     ConnectionCounts, Error, FallbackReason, NotifiedCall, Options, Path, PathCarrier, SupervisorNotes,
///     SyscallAnswer, SyscallRule,
/// };
///
/// struct CountingPath;
///
/// impl Path for CountingPath {
///     fn name(&self) -> &'static str {
///         "counting"
///     }
///
///     fn describe(&self) -> &'static str {
///         "TCP as it is; connections are counted"
///     }
///
///     fn rules(&self) -> &'static [SyscallRule] {
///         const { &[SyscallRule { call: libc::SYS_connect, when: &[] }] }
///     }
///
///     fn carrier(
///         &self,
///         _: &Arc<SupervisorNotes>,
///         _: &Options,
///     ) -> Result<Box<dyn PathCarrier>, Error> {
///         Ok(Box::new(Counter::default()))
///     }
///
///     fn alone(&self, _: &Arc<SupervisorNotes>) -> Box<dyn PathCarrier> {
///         Box::new(Counter::default())
///     }
/// }
///
/// #[derive(Default)]
/// struct Counter(AtomicU64);
///
/// impl PathCarrier for Counter {
///     fn answer(&self, _: &NotifiedCall<'_>) -> SyscallAnswer {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         SyscallAnswer::Continue // The kernel makes the call.
///     }
///
///     fn left(&self, _: FallbackReason) {}
///
///     fn counts(&self) -> ConnectionCounts {
///         let opened = self.0.load(Ordering::Relaxed);
///         ConnectionCounts { left: [(FallbackReason::NoPeer, opened)].into(), ..Default::default() }
///     }
/// }
///
/// let path: &dyn Path = &CountingPath;
/// assert!(path.takes_all().is_none() && path.rules().len() == 1);
/// ```
pub trait Path: Sync {
    /// Returns the path's name, such as "local".
    fn name(&self) -> &'static str;

    /// Returns one line that describes the path.
    fn describe(&self) -> &'static str;

    /// Returns the system calls that the path answers instead of the kernel; empty if the program runs unchanged.
    fn rules(&self) -> &'static [SyscallRule];

    /// Returns what the path needs of the kernel; empty if every supported kernel has it.
    fn kernel(&self) -> &'static [KernelNeed] {
        &[]
    }

    /// Returns the reason why the path must carry all connections of a program; `None` if it can carry a selection of
    /// them.
    fn takes_all(&self) -> Option<&'static str> {
        None
    }

    /// Returns true if RDMA devices carry the connections.
    fn is_rdma(&self) -> bool {
        false
    }

    /// Returns environment variables that the program gets, as names and values.
    fn environment(&self) -> Vec<(&'static str, OsString)> {
        Vec::new()
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

    /// Returns the carrier for a keeper, the process that replaces a killed supervisor. The carrier answers calls on
    /// connections that are already carried, and carries no new ones.
    fn alone(&self, shared: &Arc<SupervisorNotes>) -> Box<dyn PathCarrier>;

    /// Removes the files that a killed supervisor has left.
    fn clear(&self) {}
}

/// Carries the connections of one program and of the processes that it starts.
pub trait PathCarrier: Send + Sync {
    /// Answers a system call of the program. May block, as the system call itself may.
    fn answer(&self, call: &NotifiedCall<'_>) -> SyscallAnswer;

    /// Counts a connection that stayed on the kernel's TCP, by its reason.
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
    /// True if it is an error that the path cannot be used. If false, the program then runs over TCP.
    pub require: bool,
    /// The longest time that connect(2) waits until the other end has accepted, on a path that waits; `None` for 50 ms.
    pub patience: Option<Duration>,
}

/// Environment variable that names a network in which no two hosts have the same address. Programs with the same value
/// run in the same network. The creator of the network sets the variable, because landspeed cannot determine if
/// addresses are unique.
pub const NET: &str = "LANDSPEED_PATH_NET";

/// The kernel feature that answers to another program's system calls need (seccomp_unotify(2)).
const ANSWERS_CALLS: KernelNeed =
    KernelNeed { of: "", since: KernelVersion(5, 14), instead: "the kernel's TCP" };

/// All paths. The first one leaves all connections on TCP. Some tests repeat the names of the others (see
/// CONTRIBUTING.md).
pub const PATHS: &[&dyn Path] =
    &[&kernel::KernelPath, &local::LocalPath, &mptcp::PATH, &smc::PATH, &rsocket::RsocketPath];

/// Returns the path with this name, or `None` if there is none.
pub fn find(name: &str) -> Option<&'static dyn Path> {
    PATHS.iter().copied().find(|path| path.name() == name)
}
