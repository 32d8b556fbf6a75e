//! Which network namespace this is.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::error::{During, Error, Failure};

/// linux/socket.h; not in every libc.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// The kernel's number for this thread's network namespace: unique among all namespaces of this boot,
/// never used again (Linux 5.14).
pub fn netns_cookie() -> Result<u64, Error> {
    cookie().map_err(Failure::from).during(|| "read the network namespace cookie".into())
}

fn cookie() -> io::Result<u64> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut value: u64 = 0;
    let mut len = size_of::<u64>() as libc::socklen_t;
    // SAFETY: `value` and `len` outlive the call, and `len` says how large `value` is.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    if rc == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn stays_the_same() {
        let first = super::netns_cookie().unwrap();
        assert_ne!(first, 0);
        assert_eq!(super::netns_cookie().unwrap(), first);
    }
}
