//! Options: what a carried socket takes over, and what it says to those of TCP and IP.

use std::os::fd::AsFd;

use libc::{SOL_SOCKET, c_int};

use super::Carried;
use crate::notify::{Answer, Call};
use crate::socket::{int, option, set_option};

/// What an AF_UNIX socket buffers where the program sets no size: as much as TCP's send buffer grows to (tcp_wmem).
const BUFFER: c_int = 4 << 20;
/// Whether the program has set the size of a buffer (linux/sock.h, Linux 5.16).
const SO_BUF_LOCK: c_int = 72;
const SOCK_SNDBUF_LOCK: c_int = 1;
/// Options that both kinds of sockets have, and that a new socket has as zeros, or as this number.
const SAME: &[(c_int, c_int)] = &[
    (libc::SO_RCVTIMEO, 0),
    (libc::SO_SNDTIMEO, 0),
    (libc::SO_LINGER, 0),
    (libc::SO_OOBINLINE, 0),
    (libc::SO_KEEPALIVE, 0),
    (libc::SO_RCVLOWAT, 1),
];

/// Gives `to`, a new socket, what `from` has. What the kernel refuses is left as it is.
pub(super) fn mirror(from: impl AsFd, to: impl AsFd) {
    for (name, new) in SAME {
        let mut value = [0; 16];
        let Ok(length) = option(&from, (SOL_SOCKET, *name), &mut value) else { continue };
        let (first, rest) = value.split_at(4);
        if first != new.to_ne_bytes() || rest.iter().any(|byte| *byte != 0) {
            let _ = set_option(&to, (SOL_SOCKET, *name), &value[..length]);
        }
    }
    let is_set = int(&from, SOL_SOCKET, SO_BUF_LOCK).is_ok_and(|set| set & SOCK_SNDBUF_LOCK != 0);
    // The kernel tells twice of what was set (socket(7)).
    let size =
        if is_set { int(&from, SOL_SOCKET, libc::SO_SNDBUF).map_or(BUFFER, |size| size / 2) } else { BUFFER };
    let size = size.to_ne_bytes();
    let _ = set_option(&to, (SOL_SOCKET, libc::SO_SNDBUFFORCE), &size)
        .or_else(|_| set_option(&to, (SOL_SOCKET, libc::SO_SNDBUF), &size));
}

impl Carried {
    /// setsockopt(2) of an option of TCP or IP: there is no network that could obey it.
    pub(super) fn set_option(&self, call: &Call<'_>) -> Answer {
        if self.names(call).is_some() { Answer::Return(0) } else { Answer::Continue }
    }

    /// getsockopt(2): what a connection within one host has.
    pub(super) fn get_option(&self, call: &Call<'_>) -> Answer {
        let Some((own, _)) = self.names(call) else { return Answer::Continue };
        let value = match (call.int(1), call.int(2)) {
            (SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_TCP,
            (SOL_SOCKET, libc::SO_DOMAIN) if own.is_ipv6() => libc::AF_INET6,
            (SOL_SOCKET, libc::SO_DOMAIN) => libc::AF_INET,
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => 1,
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => 65_483,
            // TCP_INFO and its like are of a connection that is not there.
            (libc::IPPROTO_TCP, _) => return Answer::Errno(libc::EOPNOTSUPP),
            _ => 0,
        };
        call.return_option(value)
    }
}
