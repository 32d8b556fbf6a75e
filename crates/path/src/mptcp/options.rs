//! Reads and answers the options that reveal the kind of a socket.

use std::os::fd::BorrowedFd;

use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::{DescriptorKind, kind, option};

/// The level of Multipath TCP's socket options (linux/mptcp.h).
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;

/// Returns true if a connected socket carries Multipath TCP. A socket that has fallen back to TCP has no MPTCP_INFO.
pub(super) fn is_multipath(fd: BorrowedFd<'_>) -> bool {
    option(fd, SOL_MPTCP, MPTCP_INFO, &mut [0; 256]).is_ok()
}

/// Answers getsockopt(2) of SO_PROTOCOL with IPPROTO_TCP, because the program opened a TCP socket.
pub(super) fn protocol(call: &NotifiedCall<'_>) -> SyscallAnswer {
    let is_ours = |fd| kind(fd) == DescriptorKind::Mptcp;
    if !call.descriptor(call.int(0)).is_ok_and(is_ours) {
        return SyscallAnswer::Continue;
    }
    call.return_option(&libc::IPPROTO_TCP.to_ne_bytes())
}
