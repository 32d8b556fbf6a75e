//! The listener of a seccomp filter, which receives system calls and answers them.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use libc::{seccomp_notif, seccomp_notif_addfd, seccomp_notif_resp};

use super::{NotifiedCall, SyscallAnswer};

/// Flag that makes the kernel wake the supervisor on the processor of the calling program (linux/seccomp.h, Linux 6.6).
const SYNC_WAKE_UP: u64 = 1;

/// The descriptor that receives the system calls that a filter selects.
#[derive(Debug)]
pub(crate) struct NotifyListener(OwnedFd);

impl NotifyListener {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        // SAFETY: the request takes a number by value; an older kernel refuses it, and wakes as usual.
        unsafe { libc::ioctl(fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        NotifyListener(fd)
    }

    /// Waits for the next call. Returns `None` once no process has the filter any more.
    pub(crate) fn receive(&self) -> Option<NotifiedCall<'_>> {
        loop {
            // SAFETY: the kernel requires zeros, and writes no more than the structure's size.
            let (code, asked) = unsafe {
                let mut asked: seccomp_notif = zeroed();
                (libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked), asked)
            };
            if code == 0 {
                return Some(NotifiedCall::new(self, asked));
            }
            match io::Error::last_os_error().raw_os_error() {
                // The process was killed, or a signal came, before the call was received.
                Some(libc::EINTR) => {}
                Some(libc::ENOENT) if !self.is_over() => {}
                _ => return None,
            }
        }
    }

    /// Returns true if no process has the filter any more.
    pub(crate) fn is_over(&self) -> bool {
        let mut one = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry.
        unsafe { libc::poll(&raw mut one, 1, 0) };
        one.revents & libc::POLLHUP != 0
    }

    /// Returns true if the call with this number still waits.
    pub(crate) fn waits(&self, id: u64) -> bool {
        // SAFETY: the kernel reads a number.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
    }

    /// Answers the call with this number. Returns false if the call no longer waits, or if `answer` is
    /// [`SyscallAnswer::Gone`].
    pub(crate) fn answer(&self, id: u64, answer: SyscallAnswer) -> bool {
        let (val, error, flags) = match answer {
            SyscallAnswer::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            SyscallAnswer::Return(value) => (value, 0, 0),
            SyscallAnswer::Errno(number) => (0, -number, 0),
            SyscallAnswer::Gone => return false,
        };
        let response = seccomp_notif_resp { id, val, error, flags };
        // SAFETY: the kernel reads the structure.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) == 0 }
    }

    /// Adds a copy of `fd` to the descriptors of the calling program, and returns its number there. Does not use
    /// SECCOMP_ADDFD_FLAG_SEND, which also answers the call: if this process were killed in that step, the call would
    /// return 0 without a descriptor (seccomp_notify_addfd()).
    pub(crate) fn give(&self, id: u64, fd: &OwnedFd, closes: bool) -> io::Result<RawFd> {
        self.add(id, fd, None, closes)
    }

    /// Replaces the descriptor `at` of the calling program by a copy of `fd`.
    pub(crate) fn replace(&self, id: u64, fd: &OwnedFd, at: RawFd, closes: bool) -> io::Result<()> {
        self.add(id, fd, Some(at), closes).map(drop)
    }

    fn add(&self, id: u64, fd: &OwnedFd, at: Option<RawFd>, closes: bool) -> io::Result<RawFd> {
        let added = seccomp_notif_addfd {
            id,
            flags: at.map_or(0, |_| libc::SECCOMP_ADDFD_FLAG_SETFD as u32),
            srcfd: fd.as_raw_fd() as u32,
            newfd: at.unwrap_or(0) as u32,
            newfd_flags: if closes { libc::O_CLOEXEC as u32 } else { 0 },
        };
        // SAFETY: the kernel reads the structure.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added) } {
            -1 => Err(io::Error::last_os_error()),
            number => Ok(number),
        }
    }
}

impl AsFd for NotifyListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
