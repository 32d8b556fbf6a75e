//! The identity of network namespaces, and temporary namespaces in which to try operations.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::namespace::{on_fresh_thread, unshare_network};
use crate::netlink::attr::{Attrs, MessageBody};
use crate::netlink::error::{Error, FailureContext};
use crate::netlink::rtnl::Rtnl;
use crate::sockopt::get_option;

/// Socket option that returns the cookie of the socket's network namespace (linux/socket.h; not every libc has it).
const SO_NETNS_COOKIE: libc::c_int = 71;

/// Size of struct rtgenmsg in bytes, padded.
const HEADER: usize = 4;
/// `NETNSA_*` of linux/net_namespace.h.
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;

/// Returns the kernel's cookie of this thread's network namespace, a number that no other namespace of this boot has or
/// will have (Linux 5.14).
pub fn netns_cookie() -> Result<u64, Error> {
    let operation = || "read the network namespace cookie".into();
    cookie().map_err(|source| Error::Kernel { operation: operation(), source, detail: None })
}

fn cookie() -> io::Result<u64> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut cookie = [0; 8];
    get_option(socket, libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut cookie).map_err(with_the_kernel_it_needs)?;
    Ok(u64::from_ne_bytes(cookie))
}

fn with_the_kernel_it_needs(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel cannot tell network namespaces apart for sure: it needs Linux 5.14",
        ),
        _ => error,
    }
}

/// Runs `work` on a new thread in a new, unnamed network namespace and returns its result. The kernel removes the
/// namespace when the thread ends. A panic in `work` is raised again in the calling thread. Use this to test whether
/// the kernel and the user's permissions allow an operation, without changing the host.
pub fn in_throwaway<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_fresh_thread(|| {
        unshare_network()?;
        Ok(work())
    })
}

impl Rtnl {
    /// Returns the id that the namespace behind `netns` has in this socket's network namespace (Linux 4.15). Returns
    /// `None` if it has no id, in which case no device has moved from this socket's namespace to it.
    pub fn nsid_of(&self, netns: BorrowedFd<'_>) -> Result<Option<i32>, Error> {
        let body = MessageBody::new(&[0; HEADER]).u32(NETNSA_FD, netns.as_raw_fd().cast_unsigned());
        let answer = self.channel.request_one(libc::RTM_GETNSID, &body);
        let answer = answer.during(|| "look up a network namespace".into())?;
        Ok(nsid(&answer))
    }

    /// Returns the ids of all network namespaces that have an id in this socket's namespace.
    pub fn known_nsids(&self) -> Result<Vec<i32>, Error> {
        let answers = self.channel.dump(libc::RTM_GETNSID, &MessageBody::new(&[0; HEADER]));
        let answers = answers.during(|| "list network namespaces".into())?;
        Ok(answers.iter().filter_map(|answer| nsid(answer)).collect())
    }
}

fn nsid(message: &[u8]) -> Option<i32> {
    Attrs::after(message, HEADER).i32(NETNSA_NSID).filter(|id| *id >= 0)
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
