//! Sending with MSG_ZEROCOPY.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::AsRawFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::SendFlags;
use socket2::Socket;

use crate::transport::{Completions, Sender};

/// Zero-copy sends whose completion is awaited at most: enough to fill the pipe between two looks at
/// the error queue, few enough for net.core.optmem_max, which bounds the notifications.
const MOST_PENDING: u64 = 32;

/// Sends with MSG_ZEROCOPY (kernel documentation, networking/msg_zerocopy).
pub(super) struct ZeroCopySender<'a> {
    socket: &'a Socket,
    sent: u64,
    seen: Completions,
}

impl<'a> ZeroCopySender<'a> {
    /// For a socket with SO_ZEROCOPY.
    pub(super) fn new(socket: &'a Socket) -> Self {
        ZeroCopySender { socket, sent: 0, seen: Completions::default() }
    }

    /// Takes what the error queue holds; whether there was anything.
    fn reap(&mut self) -> io::Result<bool> {
        let mut any = false;
        while let Some(note) = next_note(self.socket)? {
            any = true;
            // ee_info and ee_data: first and last send of the range, counted from 0, wrapping.
            let count = u64::from(note.ee_data.wrapping_sub(note.ee_info)) + 1;
            self.seen.done += count;
            if u32::from(note.ee_code) == ZEROCOPY_COPIED {
                self.seen.copied += count;
            }
        }
        Ok(any)
    }

    fn make_room(&mut self) -> io::Result<()> {
        while self.sent - self.seen.done >= MOST_PENDING {
            if !self.reap()? && !wait_for_note(self.socket)? {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    }
}

impl Sender for ZeroCopySender<'_> {
    fn send(&mut self, bytes: &[u8], _: u64) -> io::Result<usize> {
        loop {
            self.make_room()?;
            match rustix::net::send(self.socket, bytes, ZEROCOPY | SendFlags::NOSIGNAL) {
                Ok(n) => {
                    self.sent += 1;
                    return Ok(n);
                }
                // The notifications of earlier sends fill optmem: take them and try again.
                Err(Errno::NOBUFS) if self.sent > self.seen.done => {
                    if !self.reap()? && !wait_for_note(self.socket)? {
                        return Err(Errno::NOBUFS.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn completions(&mut self) -> Completions {
        // At the end of a flow the queue may be gone with it; what was counted is kept.
        let _ = self.reap();
        Completions { pending: self.sent - self.seen.done, ..self.seen }
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.socket.set_write_timeout(Some(wait))
    }
}

/// MSG_ZEROCOPY, which rustix has no name for. The kernel may read a send's bytes until its notification: the `Sender`
/// contract keeps them unchanged for so long.
const ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);

/// SO_EE_ORIGIN_ZEROCOPY and SO_EE_CODE_ZEROCOPY_COPIED, include/uapi/linux/errqueue.h.
const ORIGIN_ZEROCOPY: u8 = 5;
const ZEROCOPY_COPIED: u32 = 1;

/// The next zero-copy notification of the error queue, if any.
fn next_note(socket: &Socket) -> io::Result<Option<libc::sock_extended_err>> {
    // Aligned for cmsghdr; room for one sock_extended_err and the offender's address.
    let mut control = [0_u64; 16];
    // SAFETY: msghdr is valid as zeros (no name, no data, no control).
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `message` points at `control` only, which outlives the call.
    let rc =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    if rc < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    }
    // SAFETY: the kernel filled `message`; the macro checks the length that it wrote.
    let header = unsafe { libc::CMSG_FIRSTHDR(&message) };
    if header.is_null() {
        return Err(io::Error::other("a notification without content in the error queue"));
    }
    let least = size_of::<libc::cmsghdr>() + size_of::<libc::sock_extended_err>();
    // SAFETY: CMSG_FIRSTHDR returned a whole header within `control`.
    if unsafe { (*header).cmsg_len as usize } < least {
        return Err(io::Error::other("a notification that is too short in the error queue"));
    }
    // SAFETY: the header's length says that a sock_extended_err follows it.
    let note: libc::sock_extended_err =
        unsafe { libc::CMSG_DATA(header).cast::<libc::sock_extended_err>().read_unaligned() };
    if note.ee_origin != ORIGIN_ZEROCOPY {
        return Err(io::Error::from_raw_os_error(note.ee_errno as i32));
    }
    Ok(Some(note))
}

/// Waits up to 50 ms for the error queue; false when the flow has ended.
fn wait_for_note(socket: &Socket) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    // POLLERR needs not be asked for.
    let mut ready = [PollFd::new(socket, PollFlags::empty())];
    match poll(&mut ready, Some(&wait)) {
        Ok(0) => Err(io::ErrorKind::TimedOut.into()),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Ok(_) => Ok(!ready[0].revents().contains(PollFlags::HUP)),
        Err(error) => Err(error.into()),
    }
}
