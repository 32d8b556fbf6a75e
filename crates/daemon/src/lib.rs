//! Processes that outlive the one that started them: a guardian its agent, a keeper the owner of a lab.
//!
//! The parent calls [`spawn`]; the process that starts then takes what it was given by [`inherited`] and
//! calls [`daemonize`]. [`Process`] tells a process from a later one with the same id.

mod daemonize;
mod process;
mod spawn;

pub use daemonize::{daemonize, is_daemon, shelter};
pub use process::Process;
pub use spawn::{inherited, own_command, spawn, start_over};
