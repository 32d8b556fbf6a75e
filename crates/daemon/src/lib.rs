//! Processes that outlive the one that started them: a guardian its agent, a keeper the owner of a lab.
//!
//! The parent calls [`spawn`]; the process that starts then takes what it was given by [`inherited`] and
//! calls [`settle`]. [`Process`] tells a process from a later one with the same id.

mod process;
mod settle;
mod spawn;

pub use process::Process;
pub use settle::{is_settled, settle};
pub use spawn::{inherited, own_command, spawn};
