//! Processes that outlive their parent: the guardian of an agent, and the keeper of a lab.
//!
//! The parent calls [`spawn`]. The new process then calls [`inherited`], which returns the descriptor that the parent
//! passed to it, and [`daemonize`]. [`ProcessIdentity`] distinguishes a process from a later one with the same id.

mod daemonize;
mod process;
mod spawn;

pub use daemonize::{daemonize, is_daemon, shelter};
pub use process::ProcessIdentity;
pub use spawn::{inherited, own_command, spawn, start_over};
