//! Answers socket(2) with sockets of the protocol.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use libc::{IPPROTO_TCP, SOCK_CLOEXEC, c_int};

use super::{KernelProtocol, KernelSocketCarrier};
use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::cookie;

/// A socket whose descriptor number the program never received, because a signal ended the call.
pub(super) struct UndeliveredSocket {
    number: RawFd,
    cookie: Option<u64>,
    domain: c_int,
    kind: c_int,
}

impl<P: KernelProtocol> KernelSocketCarrier<P> {
    pub(super) fn open(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        let (domain, kind, protocol) = (call.int(0), call.int(1), call.int(2));
        if ![0, IPPROTO_TCP].contains(&protocol) {
            return SyscallAnswer::Continue;
        }
        if let Some(number) = self.left_there(call) {
            return SyscallAnswer::Return(i64::from(number));
        }
        // If no socket of the protocol can be opened, the kernel opens a TCP socket or returns its own error.
        let Ok(fd) = self.protocol.open(domain, kind) else { return SyscallAnswer::Continue };
        // The lock is held until the call is answered. A repeated call waits for it in `left_there`.
        let mut unknown = self.unknown.lock();
        let cookie = cookie(&fd);
        let Ok(number) = call.give(&fd, kind & SOCK_CLOEXEC != 0) else { return SyscallAnswer::Continue };
        // The program may soon close its own descriptor, and then expect the port to be free.
        drop(fd);
        if !call.answer(SyscallAnswer::Return(i64::from(number))) {
            unknown.insert(call.thread, UndeliveredSocket { number, cookie, domain, kind });
        }
        SyscallAnswer::Gone
    }

    /// Returns the descriptor of the socket that an earlier, identical call of this thread opened without returning its
    /// number.
    fn left_there(&self, call: &NotifiedCall<'_>) -> Option<RawFd> {
        let left = self.unknown.lock().remove(&call.thread)?;
        let is_it = (left.domain, left.kind) == (call.int(0), call.int(1))
            && call.descriptor(left.number).ok().and_then(cookie) == left.cookie;
        is_it.then_some(left.number)
    }
}

/// Opens a socket, which is closed where this process executes another program.
pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the arguments are numbers; the returned descriptor is ours.
    unsafe {
        match libc::socket(domain, kind | SOCK_CLOEXEC, protocol) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}
