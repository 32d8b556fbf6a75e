//! Copies socket options from TCP sockets to the sockets that replace them, and answers calls on TCP and IP options.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libc::{IPPROTO_TCP, SOL_SOCKET, c_int};
use parking_lot::Mutex;
use rustix::net::{AddressFamily, SocketType, socket};

use super::LocalCarrier;
use super::info::{SEGMENT, new_like, tcp_info};
use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::{cookie, int, option, set_option};

/// Size in bytes of the send buffer of an AF_UNIX socket whose program sets no size. TCP's send buffer can grow to the
/// same size (tcp_wmem).
const BUFFER: c_int = 4 << 20;
/// The socket option that reports which buffer sizes the program has set (linux/sock.h, Linux 5.16).
const SO_BUF_LOCK: c_int = 72;
const SOCK_SNDBUF_LOCK: c_int = 1;
const SOCK_RCVBUF_LOCK: c_int = 2;
/// Options that TCP and AF_UNIX sockets share. Each is listed with its value on a new socket: the first four bytes,
/// after which all bytes are zeros.
const SAME: &[(c_int, c_int)] = &[
    (libc::SO_RCVTIMEO, 0),
    (libc::SO_SNDTIMEO, 0),
    (libc::SO_LINGER, 0),
    (libc::SO_OOBINLINE, 0),
    (libc::SO_KEEPALIVE, 0),
    (libc::SO_RCVLOWAT, 1),
    (libc::SO_REUSEADDR, 0),
    (libc::SO_PRIORITY, 0),
];
/// Options of TCP that programs set before they connect or accept. Their values on a new socket depend on the host.
const OF_TCP: &[c_int] =
    &[libc::TCP_NODELAY, libc::TCP_KEEPIDLE, libc::TCP_KEEPINTVL, libc::TCP_KEEPCNT, libc::TCP_USER_TIMEOUT];
/// The largest length of an option's value that is remembered, in bytes.
const LONGEST: usize = 64;
/// The largest number of options that are remembered.
const MOST: usize = 1 << 16;

/// The values of TCP and IP options that programs have set on carried sockets, by the socket's cookie, the level and
/// the name. Programs may read them back.
#[derive(Default)]
pub(super) struct RememberedOptions(Mutex<BTreeMap<(u64, c_int, c_int), Vec<u8>>>);

impl RememberedOptions {
    fn keep(&self, cookie: u64, level: c_int, name: c_int, value: Vec<u8>) {
        let mut all = self.0.lock();
        all.insert((cookie, level, name), value);
        if all.len() > MOST {
            // Removes an option of the oldest socket, which has the lowest cookie.
            all.pop_first();
        }
    }

    fn get(&self, cookie: u64, level: c_int, name: c_int) -> Option<Vec<u8>> {
        self.0.lock().get(&(cookie, level, name)).cloned()
    }
}

/// Copies the options of `from` to `to`, a new socket. Options that the kernel refuses keep their values.
fn mirror(from: impl AsFd, to: impl AsFd) {
    for (name, new) in SAME {
        let mut value = [0; 16];
        let Ok(length) = option(&from, SOL_SOCKET, *name, &mut value) else { continue };
        let (first, rest) = value.split_at(4);
        if first != new.to_ne_bytes() || rest.iter().any(|byte| *byte != 0) {
            let _ = set_option(&to, SOL_SOCKET, *name, &value[..length]);
        }
    }
    let set = int(&from, SOL_SOCKET, SO_BUF_LOCK).unwrap_or(0);
    // The kernel returns twice the size that was set (socket(7)).
    let half = |name| int(&from, SOL_SOCKET, name).ok().map(|size| size / 2);
    let size = if set & SOCK_SNDBUF_LOCK != 0 { half(libc::SO_SNDBUF) } else { None };
    resize(&to, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], size.unwrap_or(BUFFER));
    if set & SOCK_RCVBUF_LOCK != 0
        && let Some(size) = half(libc::SO_RCVBUF)
    {
        resize(&to, [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], size);
    }
    mirror_owner(&from, &to);
}

fn resize(of: impl AsFd, [by_root, by_all]: [c_int; 2], size: c_int) {
    let size = size.to_ne_bytes();
    let _ =
        set_option(&of, SOL_SOCKET, by_root, &size).or_else(|_| set_option(&of, SOL_SOCKET, by_all, &size));
}

/// Copies the setting that names the process that receives SIGIO and SIGURG (F_SETOWN).
fn mirror_owner(from: impl AsFd, to: impl AsFd) {
    let (from, to) = (from.as_fd().as_raw_fd(), to.as_fd().as_raw_fd());
    // SAFETY: the arguments are numbers.
    unsafe {
        let owner = libc::fcntl(from, libc::F_GETOWN);
        if owner != 0 {
            libc::fcntl(to, libc::F_SETOWN, owner);
        }
    }
}

impl LocalCarrier {
    /// Copies the options of a TCP socket to the socket of a pair that replaces it.
    pub(super) fn mirror(&self, tcp: &OwnedFd, pair: &OwnedFd) {
        mirror(tcp, pair);
        let Some(cookie) = cookie(pair) else { return };
        for (name, new) in OF_TCP.iter().zip(&self.new_tcp) {
            if let Ok(value) = int(tcp, IPPROTO_TCP, *name)
                && value != *new
            {
                self.set.keep(cookie, IPPROTO_TCP, *name, value.to_ne_bytes().to_vec());
            }
        }
    }

    /// Answers setsockopt(2) of a TCP or IP option on a carried socket. The value is remembered, and has no effect. An
    /// invalid value gets the error that a new TCP socket returns.
    pub(super) fn set_option(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        let Some((cookie, own, _)) = self.names(call) else { return SyscallAnswer::Continue };
        let (level, name) = (call.int(1), call.int(2));
        let set = || -> io::Result<()> {
            let length =
                usize::try_from(call.int(4)).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
            let mut value = vec![0; length.min(LONGEST)];
            call.read(call.address(3), &mut value)?;
            set_option(new_like(own)?, level, name, &value)?;
            self.set.keep(cookie, level, name, value);
            Ok(())
        };
        match set() {
            Ok(()) => SyscallAnswer::Return(0),
            Err(error) => SyscallAnswer::Errno(error.raw_os_error().unwrap_or(libc::EINVAL)),
        }
    }

    /// Answers getsockopt(2) on a carried socket with the value that the program has set, or else with the value of a
    /// new TCP socket.
    pub(super) fn get_option(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        let Some((cookie, own, _)) = self.names(call) else { return SyscallAnswer::Continue };
        let (level, name) = (call.int(1), call.int(2));
        let value = match (level, name) {
            (SOL_SOCKET, libc::SO_PROTOCOL) => Ok(IPPROTO_TCP.to_ne_bytes().to_vec()),
            (SOL_SOCKET, libc::SO_DOMAIN) if own.is_ipv6() => Ok(libc::AF_INET6.to_ne_bytes().to_vec()),
            (SOL_SOCKET, libc::SO_DOMAIN) => Ok(libc::AF_INET.to_ne_bytes().to_vec()),
            (IPPROTO_TCP, libc::TCP_MAXSEG) => Ok(SEGMENT.to_ne_bytes().to_vec()),
            (IPPROTO_TCP, libc::TCP_INFO) => call.descriptor(call.int(0)).and_then(|fd| tcp_info(fd, own)),
            _ => new_like(own).and_then(|new| {
                if let Some(value) = self.set.get(cookie, level, name) {
                    set_option(&new, level, name, &value)?;
                }
                let mut value = [0; LONGEST];
                let length = option(&new, level, name, &mut value)?;
                Ok(value[..length].to_vec())
            }),
        };
        match value {
            Ok(value) => call.return_option(&value),
            Err(error) => SyscallAnswer::Errno(error.raw_os_error().unwrap_or(libc::EFAULT)),
        }
    }
}

/// Returns the values of [`OF_TCP`] on a new TCP socket. IPv4 and IPv6 have the same values.
pub(super) fn of_new() -> Vec<c_int> {
    let new = socket(AddressFamily::INET, SocketType::STREAM, None);
    OF_TCP
        .iter()
        .map(|name| new.as_ref().map_or(0, |new| int(new, IPPROTO_TCP, *name).unwrap_or(0)))
        .collect()
}
