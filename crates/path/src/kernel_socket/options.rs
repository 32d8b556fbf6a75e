//! Answers the options that would reveal the protocol of a socket.

use std::os::fd::OwnedFd;

use libc::c_int;

use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::{DescriptorKind, kind, own};

/// Answers getsockopt(2) of SO_DOMAIN and SO_PROTOCOL for a socket of the kind `ours` as for the TCP socket that the
/// program opened.
pub(super) fn revealing(call: &NotifiedCall<'_>, ours: DescriptorKind) -> SyscallAnswer {
    let fd = match call.descriptor(call.int(0)) {
        Ok(fd) if kind(&fd) == ours => fd,
        _ => return SyscallAnswer::Continue,
    };
    let value = match call.int(2) {
        libc::SO_DOMAIN => domain(&fd),
        _ => Some(libc::IPPROTO_TCP),
    };
    value.map_or(SyscallAnswer::Continue, |value| call.return_option(&value.to_ne_bytes()))
}

/// Returns the address family of a socket's addresses.
fn domain(fd: &OwnedFd) -> Option<c_int> {
    own(fd).map(|address| if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 })
}
