//! Which network namespace this is, and one to try things in.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::attr::{Attrs, Body};
use crate::error::{During, Error, Failure};
use crate::rtnl::Rtnl;

/// linux/socket.h; not in every libc.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// struct rtgenmsg, padded.
const HEADER: usize = 4;
/// `NETNSA_*` of linux/net_namespace.h.
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;

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

/// Runs `work` on a fresh thread in a new, unnamed network namespace, which the kernel removes with the thread; a panic
/// in it continues here. For trying what this kernel and user may do.
pub fn in_throwaway<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let apart = || {
        // SAFETY: unsound only with CLONE_FILES, which would part the threads' descriptor tables.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        Ok(work())
    };
    let outcome = std::thread::scope(|scope| scope.spawn(apart).join());
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Rtnl {
    /// The number by which this socket's network namespace knows the one behind a descriptor; `None` where
    /// it does not know it. No device has moved there from here then (Linux 4.15).
    pub fn nsid_of(&self, netns: BorrowedFd<'_>) -> Result<Option<i32>, Error> {
        let body = Body::new(&[0; HEADER]).u32(NETNSA_FD, netns.as_raw_fd().cast_unsigned());
        let answer = self.channel.request_one(libc::RTM_GETNSID, &body);
        let answer = answer.during(|| "look up a network namespace".into())?;
        Ok(nsid(&answer))
    }

    /// The numbers of all network namespaces that this socket's own one knows.
    pub fn known_nsids(&self) -> Result<Vec<i32>, Error> {
        let answers = self.channel.dump(libc::RTM_GETNSID, &Body::new(&[0; HEADER]));
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
