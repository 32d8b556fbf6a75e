//! System calls of a program, answered by another one (seccomp_unotify(2)).
//!
//! A filter in the program names the calls. Each of them waits for an answer from the holder of the *listener*. The answer lets the
//! kernel go on as if there were no filter, or is the number that the call returns. The memory behind a call's pointers may change
//! while it waits. So nothing here protects a host from the program: it only puts one socket in the place of another.

mod filter;
mod listener;
mod target;

pub(crate) use filter::install;
pub use filter::{Rule, When};
pub(crate) use listener::Listener;
pub use target::Call;

/// What a system call returns.
#[derive(Debug)]
pub enum Answer {
    /// What the kernel makes of it.
    Continue,
    /// This number.
    Return(i64),
    /// Minus this number (errno(3)).
    Errno(i32),
    /// Nothing: it has its answer, or waits no more.
    Gone,
}
