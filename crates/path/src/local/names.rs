//! Remembers the TCP addresses of carried sockets, and answers getsockname(2) and getpeername(2) with them.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use super::LocalCarrier;
use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::{DescriptorKind, cookie, kind, to_bytes};

impl LocalCarrier {
    /// Records the addresses of the TCP connection that the AF_UNIX socket `fd` replaces.
    pub(super) fn keep_names(&self, fd: impl AsFd, own: SocketAddr, peer: SocketAddr) {
        if let Some(cookie) = cookie(fd) {
            self.shared.keep_names(cookie, own, peer);
        }
    }

    /// Returns the recorded addresses of a socket of a pair: its own and its peer's. `None` if none are recorded.
    pub(super) fn names_of(&self, fd: impl AsFd) -> Option<(SocketAddr, SocketAddr)> {
        self.shared.names(cookie(fd)?)
    }

    /// Returns the cookie, the own address and the peer's address of the socket in a call's first argument. `None` if
    /// the socket is not carried.
    pub(super) fn names(&self, call: &NotifiedCall<'_>) -> Option<(u64, SocketAddr, SocketAddr)> {
        let fd = call.descriptor(call.int(0)).ok()?;
        let cookie = if kind(&fd) == DescriptorKind::Unix { cookie(&fd)? } else { return None };
        self.shared.names(cookie).map(|(own, peer)| (cookie, own, peer))
    }

    /// Answers getsockname(2), or getpeername(2) if `of_peer` is true.
    pub(super) fn name(&self, call: &NotifiedCall<'_>, of_peer: bool) -> SyscallAnswer {
        let Some((_, own, peer)) = self.names(call) else { return SyscallAnswer::Continue };
        let address = to_bytes(if of_peer { peer } else { own });
        match call.write_address(&address) {
            Ok(()) => SyscallAnswer::Return(0),
            Err(error) => SyscallAnswer::Errno(error.raw_os_error().unwrap_or(libc::EFAULT)),
        }
    }
}
