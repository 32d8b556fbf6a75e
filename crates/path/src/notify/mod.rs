//! System calls of a program, answered by another process (seccomp_unotify(2)).
//!
//! A filter in the program selects the calls. Each of them waits for an answer from the holder of the *listener*. The
//! answer lets the kernel continue as if there were no filter, or is the number that the call returns. The memory
//! behind a call's pointers may change while it waits. So nothing here protects a host from the program: it only
//! replaces one socket by another.

mod filter;
mod listener;
mod target;

pub(crate) use filter::install;
pub use filter::{ArgumentCondition, SyscallRule};
pub(crate) use listener::NotifyListener;
pub use target::NotifiedCall;

/// The answer to a system call.
#[derive(Debug)]
pub enum SyscallAnswer {
    /// The kernel continues the call.
    Continue,
    /// The call returns this number.
    Return(i64),
    /// The call returns minus this number (errno(3)).
    Errno(i32),
    /// No answer is needed: the call has been answered, or no longer waits.
    Gone,
}
