//! Paths: what carries the bytes of a program's sockets below the sockets API.
//!
//! A program calls socket(2), connect(2) and accept(2) as ever. A [`Path`] puts something else below a TCP connection where it can:
//! the program is not changed, not linked again and not told. A connection that cannot be carried stays on TCP and is counted with
//! the reason.
//!
//! | module | is |
//! |---|---|
//! | `kernel` | TCP as it is |
//! | `local` | an AF_UNIX socket in the place of a connection between two programs of one host |
//! | `mptcp` | Multipath TCP of the kernel in the place of TCP |
//! | `bytes` | how many bytes carried sockets send and receive |
//! | `notify` | system calls of a program, answered by another one (seccomp_unotify(2)) |
//! | `gate`, `rights` | which calls are left to the kernel before a path sees them |
//! | `supervisor` | the threads that answer them |
//! | `follow`, `heir` | the process that waits for their end, and answers from then on |
//! | `exec`, `begin`, `front` | a program run over a path: the whole, how it starts, and the process that a shell waits for |
//!
//! A new path is a folder and a row of [`PATHS`].

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
mod only;
mod rights;
mod shared;
mod socket;
mod supervisor;

pub use count::{Bytes, Counts, Why};
pub use error::Error;
pub use exec::{Ended, exec};
pub use heir::{Left, keep};
pub use only::{Choice, NoChoice, Only};
pub use shared::Shared;

use std::sync::Arc;

pub use notify::{Answer, Call, Rule, When};

/// What carries a socket's bytes.
pub trait Path: Sync {
    /// "local".
    fn name(&self) -> &'static str;

    /// What it does, one line.
    fn describe(&self) -> &'static str;

    /// System calls that it answers in the program's place; none where the program runs as it is.
    fn rules(&self) -> &'static [Rule];

    /// Why it cannot choose between connections; none where it can.
    fn takes_all(&self) -> Option<&'static str> {
        None
    }

    /// Begins to carry.
    ///
    /// # Errors
    /// What it needs and cannot have.
    fn carrier(&self, shared: &Arc<Shared>, options: &Options) -> Result<Box<dyn Carrier>, Error>;

    /// What answers once the supervisor has gone: it looks after what is carried, and carries nothing new.
    fn alone(&self, shared: &Arc<Shared>) -> Box<dyn Carrier>;

    /// Removes what a killed supervisor has left in files.
    fn clear(&self) {}
}

/// A path at work.
pub trait Carrier: Send + Sync {
    /// Answers a system call. It may wait as long as the call itself would.
    fn answer(&self, call: &Call<'_>) -> Answer;

    /// Counts a connection that the path did not see.
    fn left(&self, why: Why);

    /// What has been carried so far.
    fn counts(&self) -> Counts;

    /// Answers a call for which a killed supervisor held something; `None` where the call alone says all.
    fn resume(&self, call: &Call<'_>, left: &mut Left) -> Option<Answer> {
        let _ = (call, left);
        None
    }
}

/// What is asked of a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Which connections it takes.
    pub only: Only,
    /// Whether it counts bytes.
    pub bytes: bool,
    /// Whether the program is not to run where the path cannot carry it.
    pub require: bool,
}

/// An environment variable: programs for which it has the same value are in one network, in which no two hosts have the same address. Only who made
/// the network can say so.
pub const NET: &str = "LANDSPEED_PATH_NET";

/// Every path, the plain one first.
pub const PATHS: &[&dyn Path] = &[&kernel::Kernel, &local::Local, &mptcp::Mptcp];

/// The path with this name.
pub fn find(name: &str) -> Option<&'static dyn Path> {
    PATHS.iter().copied().find(|path| path.name() == name)
}
