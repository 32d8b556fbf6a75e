//! System calls of a program, answered by another process (seccomp_unotify(2)).
//!
//! A seccomp filter in the program selects the calls. Each selected call waits for an answer from the process that has
//! the filter's *listener*. The answer lets the kernel continue the call as if there were no filter, or sets the call's
//! result. While a call waits, the program may change the memory to which its arguments point. This module therefore
//! cannot protect a host from the program. It is only used to replace one socket by another.

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
    /// The kernel executes the call as if there were no filter.
    Continue,
    /// The call returns this number.
    Return(i64),
    /// The call fails with this error number (errno(3)).
    Errno(i32),
    /// No answer is sent, because the call has been answered already or no longer waits.
    Gone,
}
