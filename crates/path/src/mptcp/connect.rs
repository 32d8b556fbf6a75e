//! Answers connect(2) for the path `mptcp`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::MptcpCarrier;
use crate::FallbackReason;
use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::{DescriptorKind, blocks, cookie, from_bytes, kind, wait};

/// How long the supervisor watches a connection after connect(2) has returned EINPROGRESS. It keeps the socket open for
/// that time, even if the program closes it.
const WATCHED: Duration = Duration::from_secs(5);
/// The largest number of connections that are watched at the same time. Each takes a descriptor and a thread of the
/// supervisor.
const MOST_PENDING: usize = 256;
/// How long the final counts wait for connections that are still being established.
const SETTLES: Duration = Duration::from_millis(50);
/// The largest number of sockets that are remembered as connecting. At this limit all are forgotten, because those of
/// killed programs would never be removed.
const MOST_UNANSWERED: usize = 1024;

impl MptcpCarrier {
    /// Connects as the program would, and counts the result.
    pub(super) fn connect(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        let Some(to) = destination(call) else { return SyscallAnswer::Continue };
        let Ok(fd) = call.descriptor(call.int(0)) else { return SyscallAnswer::Continue };
        match kind(&fd) {
            DescriptorKind::Mptcp => {}
            DescriptorKind::Tcp => {
                self.count.left(FallbackReason::PlainSocket);
                return SyscallAnswer::Continue;
            }
            _ => return SyscallAnswer::Continue,
        }
        // The program repeats a call that a signal has ended, possibly while another thread still works on the first
        // call.
        let of = cookie(&fd).unwrap_or_default();
        let again = self.begins_again(of);
        match connected(&fd, &to).err().and_then(|error| error.raw_os_error()) {
            None => {
                call.is_done();
                self.seen_once(of, &fd);
                drop(fd);
                self.answered(call, of, SyscallAnswer::Return(0));
            }
            Some(libc::EINPROGRESS) => {
                // Begins to count bytes now, because the program may send before it is known if the path carries the
                // connection.
                self.count.expect(&fd);
                self.is_counted(of);
                self.answered(call, of, SyscallAnswer::Errno(libc::EINPROGRESS));
                // The program runs again from here on.
                self.watch(&fd);
            }
            Some(libc::EISCONN) if again => {
                self.seen_once(of, &fd);
                drop(fd);
                self.answered(call, of, SyscallAnswer::Return(0));
            }
            Some(libc::EALREADY) if again && !blocks(&fd) => {
                drop(fd);
                self.answered(call, of, SyscallAnswer::Errno(libc::EINPROGRESS));
            }
            Some(errno) => {
                drop(fd);
                self.answered(call, of, SyscallAnswer::Errno(errno));
            }
        }
        SyscallAnswer::Gone
    }

    /// Returns true if an earlier call is connecting this socket, or has connected it and could not be answered. Always
    /// returns true in a keeper, which has no record of earlier calls.
    fn begins_again(&self, cookie: u64) -> bool {
        let mut unanswered = self.unanswered.lock();
        if unanswered.len() >= MOST_UNANSWERED {
            unanswered.clear();
        }
        let is_there = unanswered.contains_key(&cookie);
        unanswered.entry(cookie).or_insert(false);
        is_there || !self.opens
    }

    /// Counts a connection unless it was counted before. Call it before the answer to connect(2), because after the
    /// answer the program may close the connection.
    fn seen_once(&self, cookie: u64, fd: &OwnedFd) {
        if let Some(is_counted) = self.unanswered.lock().get_mut(&cookie)
            && !std::mem::replace(is_counted, true)
        {
            self.seen(fd);
        }
    }

    /// Marks the connection of this socket as counted, because `watch` counts it.
    fn is_counted(&self, cookie: u64) {
        if let Some(is_counted) = self.unanswered.lock().get_mut(&cookie) {
            *is_counted = true;
        }
    }

    /// Answers the call. If the call got the answer, removes its socket from `unanswered`. The caller must first close
    /// its own descriptor of the socket, unless it watches the connection. Otherwise the connection would not end when
    /// the program closes its descriptor.
    fn answered(&self, call: &NotifiedCall<'_>, cookie: u64, answer: SyscallAnswer) {
        let mut unanswered = self.unanswered.lock();
        if call.answer(answer) {
            unanswered.remove(&cookie);
        }
    }

    /// Waits for at most `WATCHED` until the connection of a non-blocking socket is established, and counts it.
    fn watch(&self, fd: &OwnedFd) {
        if self.pending.fetch_add(1, Ordering::AcqRel) >= MOST_PENDING {
            self.count.left(FallbackReason::TooManyAtOnce);
        } else if wait([(fd.as_fd(), PollFlags::OUT)], Some(WATCHED)).iter().all(|flags| flags.is_empty()) {
            self.count.left(FallbackReason::NotConnected);
        } else {
            self.seen(fd);
        }
        self.pending.fetch_sub(1, Ordering::AcqRel);
    }

    /// Waits up to `SETTLES` for connections that are still being established. Counts the rest as not connected.
    pub(super) fn settle(&self) {
        let until = Instant::now() + SETTLES;
        while self.pending.load(Ordering::Acquire) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        (0..self.pending.load(Ordering::Acquire)).for_each(|_| self.count.left(FallbackReason::NotConnected));
    }
}

/// Returns the destination of connect(2), in the bytes that the program passed; `None` if it is not an IP address.
fn destination(call: &NotifiedCall<'_>) -> Option<Vec<u8>> {
    let length = usize::try_from(call.int(2)).ok()?;
    let mut bytes = vec![0; length.min(size_of::<libc::sockaddr_storage>())];
    call.read(call.address(1), &mut bytes).ok()?;
    from_bytes(&bytes).map(|_| bytes)
}

fn connected(fd: &OwnedFd, to: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads `to.len()` bytes of an address.
    let code = unsafe { libc::connect(fd.as_raw_fd(), to.as_ptr().cast(), to.len() as libc::socklen_t) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
