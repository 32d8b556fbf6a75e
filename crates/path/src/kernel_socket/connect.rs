//! Answers connect(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::{KernelProtocol, KernelSocketCarrier};
use crate::FallbackReason;
use crate::notify::{NotifiedCall, SyscallAnswer};
use crate::socket::{DescriptorKind, blocks, from_bytes, inode, kind, peer, wait};

/// The largest number of connections that are watched at the same time. Each takes a descriptor and a thread of the
/// supervisor.
const MOST_PENDING: usize = 256;
/// The time for which the final counts wait for connections that are still being established.
const SETTLES: Duration = Duration::from_millis(50);
/// The largest number of sockets that are remembered as connecting. At this limit all are forgotten, because those of
/// killed programs would never be removed.
const MOST_UNANSWERED: usize = 1024;

impl<P: KernelProtocol> KernelSocketCarrier<P> {
    /// Connects as the program would, and counts the result.
    pub(super) fn connect(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        let Some(to) = destination(call) else { return SyscallAnswer::Continue };
        let Ok(fd) = call.descriptor(call.int(0)) else { return SyscallAnswer::Continue };
        // The program repeats a call that a signal has ended, possibly while another thread still works on the first
        // call.
        let of = inode(&fd).unwrap_or_default();
        match kind(&fd) {
            of_fd if of_fd == P::KIND => {}
            // It has fallen back to TCP since the first call.
            DescriptorKind::Tcp if self.is_unanswered(of) => {}
            DescriptorKind::Tcp => return self.stays_on_tcp(&fd),
            _ => return SyscallAnswer::Continue,
        }
        let again = self.begins_again(of);
        match connected(&fd, &to).err().and_then(|error| error.raw_os_error()) {
            None => {
                call.is_done();
                // A non-blocking socket had EINPROGRESS first, and `watch` counts its connection.
                if again || blocks(&fd) {
                    self.seen_once(of, &fd, call);
                }
                drop(fd);
                self.answered(call, of, SyscallAnswer::Return(0));
            }
            Some(libc::EINPROGRESS) => {
                // Begins to count bytes now, because the program may send before it is known if the path carries the
                // connection.
                self.count.expect(&fd);
                self.is_counted(of);
                self.answered(call, of, SyscallAnswer::Errno(libc::EINPROGRESS));
                // The program runs again, while the connection is still being made.
                self.watch(&fd, call);
            }
            Some(libc::EISCONN) if again => {
                self.seen_once(of, &fd, call);
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

    /// Counts the connection of a TCP socket, which the kernel makes.
    fn stays_on_tcp(&self, fd: &OwnedFd) -> SyscallAnswer {
        // A keeper's counts are not read. A connected socket gets no other connection.
        if self.opens && peer(fd).is_none() {
            self.count.left(self.protocol.why_tcp(fd));
        }
        SyscallAnswer::Continue
    }

    /// Returns true if an earlier call is connecting the socket with this inode number, or has connected it and could
    /// not be answered.
    fn is_unanswered(&self, inode: u64) -> bool {
        self.unanswered.lock().contains_key(&inode)
    }

    /// Returns true if an earlier call is connecting this socket, or has connected it and could not be answered. Always
    /// returns true in a keeper, which has no record of earlier calls.
    fn begins_again(&self, inode: u64) -> bool {
        let mut unanswered = self.unanswered.lock();
        if unanswered.len() >= MOST_UNANSWERED {
            unanswered.clear();
        }
        let is_there = unanswered.contains_key(&inode);
        unanswered.entry(inode).or_insert(false);
        is_there || !self.opens
    }

    /// Counts a connection unless it was counted before. Call it before the answer to connect(2), because after the
    /// answer the program may close the connection.
    fn seen_once(&self, inode: u64, fd: &OwnedFd, call: &NotifiedCall<'_>) {
        if let Some(is_counted) = self.unanswered.lock().get_mut(&inode)
            && !std::mem::replace(is_counted, true)
        {
            self.seen(fd, call);
        }
    }

    /// Marks the connection of this socket as counted, because `watch` counts it.
    fn is_counted(&self, inode: u64) {
        if let Some(is_counted) = self.unanswered.lock().get_mut(&inode) {
            *is_counted = true;
        }
    }

    /// Answers the call. If the call got the answer, removes its socket from `unanswered`. The caller must first close
    /// its own descriptor of the socket, unless it watches the connection. Otherwise the connection would not end when
    /// the program closes its descriptor.
    fn answered(&self, call: &NotifiedCall<'_>, inode: u64, answer: SyscallAnswer) {
        let mut unanswered = self.unanswered.lock();
        if call.answer(answer) {
            unanswered.remove(&inode);
        }
    }

    /// Waits for at most `P::WATCHED` until the connection of a non-blocking socket is established, and counts it.
    fn watch(&self, fd: &OwnedFd, call: &NotifiedCall<'_>) {
        let events = || wait([(fd.as_fd(), PollFlags::OUT)], Some(P::WATCHED));
        if self.pending.fetch_add(1, Ordering::AcqRel) >= MOST_PENDING {
            self.count.left(FallbackReason::TooManyAtOnce);
        } else if events().iter().all(|flags| flags.is_empty()) {
            self.count.left(FallbackReason::NotConnected);
        } else {
            self.seen(fd, call);
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
