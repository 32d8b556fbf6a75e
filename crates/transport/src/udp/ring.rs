//! Sends through an io_uring (io_uring_enter(2)): many datagrams in one system call, each as a separate send, with or
//! without zero-copy. The kernel reports through the ring that it has released memory, so there is no error queue to
//! read.

use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use rustix::event::{PollFd, PollFlags};
use socket2::Socket;

use super::outgoing::OutgoingDatagrams;
use crate::message::{self, BATCH};
use crate::socket;
use crate::transport::ZeroCopyCompletions;
use crate::zerocopy::{self, SLOTS, ZeroCopySlots};

/// The longest time that a send waits before its caller can check whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// The capacity of the completion queue. Between two checks there is at most one completion for each send of a batch
/// and one for each slot.
const WORDS: u32 = BATCH as u32 + SLOTS;
/// IORING_SEND_ZC_REPORT_USAGE of include/uapi/linux/io_uring.h, since Linux 6.2; the next constant is
/// IORING_NOTIF_USAGE_ZC_COPIED.
const REPORT_USAGE: u16 = 1 << 3;
const COPIED: u32 = 1 << 31;

pub(super) struct UringSender {
    ring: IoUring,
    /// The sends whose memory the kernel may still read; empty unless `lend` is true.
    slots: ZeroCopySlots,
    /// A bit for each slot whose send failed: the kernel releases its memory, but nothing was sent.
    failed: u64,
    lend: bool,
}

/// The result of one send. The error is an error number of the kernel.
type SendResult = Result<(), i32>;

impl UringSender {
    /// Returns a sender with a new ring. If `lend` is true, its sends are zero-copy.
    ///
    /// # Errors
    /// Returns an error that names the reason if this host has no io_uring, or none with zero-copy sends.
    pub(super) fn new(lend: bool) -> io::Result<Self> {
        let ring = opened().map_err(|error| no_ring(&error))?;
        if lend {
            let mut probe = Probe::new();
            let known = ring.submitter().register_probe(&mut probe);
            if known.is_err() || !probe.is_supported(opcode::SendMsgZc::CODE) {
                return Err(io::Error::other(
                    "this kernel has no io_uring that sends without a copy, which came with Linux 6.2",
                ));
            }
        }
        Ok(UringSender { ring, slots: ZeroCopySlots::default(), failed: 0, lend })
    }

    /// Sends up to `count` datagrams in order, but no more than there are free slots. Returns the number of datagrams
    /// that the kernel accepted. After the first failed send, the rest are not sent.
    ///
    /// # Errors
    /// Returns [`ErrorKind::TimedOut`] if no slot becomes free within 50 ms, and [`ErrorKind::WouldBlock`] if the
    /// socket's buffer stays full for that time. Returns [`ErrorKind::Interrupted`] if the buffer was full but now
    /// has space.
    pub(super) fn send(
        &mut self,
        outgoing: &mut OutgoingDatagrams<'_>,
        message: &[u8],
        count: usize,
    ) -> io::Result<usize> {
        let (slots, count) = self.room(count)?;
        let slots = &slots[..count];
        let flow = outgoing.flow;
        let parts = outgoing.gathered(message, count, |at| slots[at]);
        let answers = self.handed_over(&flow.socket, &parts, slots)?;
        // The sends are linked: after an error, the rest are not sent.
        let taken = answers[..count].iter().take_while(|answer| answer.is_ok()).count();
        match answers[..count].get(taken) {
            Some(Err(error)) if taken == 0 => {
                Err(self.why(&flow.socket, io::Error::from_raw_os_error(*error)))
            }
            _ => Ok(taken),
        }
    }

    /// Processes the completions that are ready, without waiting, and returns the counts of zero-copy sends.
    pub(super) fn completions(&mut self) -> ZeroCopyCompletions {
        self.look();
        self.slots.completions()
    }

    /// Waits at most `within` until the kernel has released all memory. Returns true if it has.
    pub(super) fn all_returned(&mut self, within: Duration) -> bool {
        zerocopy::all_returned(within, || {
            self.look();
            self.slots.pending()
        })
    }

    /// Returns free slots for up to `count` sends, and their number, which is at least one. Waits if no slot is free.
    fn room(&mut self, count: usize) -> io::Result<([usize; SLOTS as usize], usize)> {
        if self.slots.pending() >= SLOTS {
            self.look();
        }
        if self.slots.pending() >= SLOTS {
            self.wait_for_word()?;
            self.take(|_, _| ());
        }
        let count = count.min(BATCH).min((SLOTS - self.slots.pending()) as usize);
        if count == 0 { Err(ErrorKind::TimedOut.into()) } else { Ok((self.slots.free(count as u32), count)) }
    }

    /// Sends one datagram for each of `slots`, and waits for the results. The header and the payload of each datagram
    /// are two consecutive elements of `parts`.
    fn handed_over(
        &mut self,
        socket: &Socket,
        parts: &[IoSlice<'_>],
        slots: &[usize],
    ) -> io::Result<[SendResult; SLOTS as usize]> {
        // SAFETY: a msghdr is valid as zeros.
        let mut messages: [libc::msghdr; BATCH] = unsafe { MaybeUninit::zeroed().assume_init() };
        for ((message, pair), (at, slot)) in
            messages.iter_mut().zip(parts.chunks_exact(2)).zip(slots.iter().enumerate())
        {
            *message = message::header(pair);
            let is_last = at + 1 == slots.len();
            let order = if is_last { squeue::Flags::empty() } else { squeue::Flags::IO_LINK };
            let entry = self.entry(socket, message).flags(order).user_data(*slot as u64);
            // SAFETY: the socket, `messages` and `parts` outlive the send, because its completion is awaited below.
            // The memory that `parts` point at is read until then, or for a zero-copy send until its slot is free;
            // the caller keeps it unchanged for that long.
            unsafe { self.ring.submission().push(&entry) }.expect("the ring has room for a batch");
        }
        self.answers(slots)
    }

    /// Returns the ring's entry for one send. The send fails if the socket's buffer is full, and does not wait,
    /// because later sends could overtake a waiting one.
    fn entry(&self, socket: &Socket, message: &libc::msghdr) -> squeue::Entry {
        let (fd, flags) = (Fd(socket.as_raw_fd()), (libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) as u32);
        if self.lend {
            return opcode::SendMsgZc::new(fd, message).ioprio(REPORT_USAGE).flags(flags).build();
        }
        opcode::SendMsg::new(fd, message).flags(flags).build()
    }

    /// Submits the queued entries of the sends in `slots`, waits for all their results, and returns them in the order
    /// of `slots`. The remaining elements of the array are ECANCELED. The wait is short, because no send waits for
    /// buffer space.
    fn answers(&mut self, slots: &[usize]) -> io::Result<[SendResult; SLOTS as usize]> {
        let mut by_slot: [Option<SendResult>; SLOTS as usize] = [None; SLOTS as usize];
        let mut left = slots.len();
        while left > 0 {
            match self.ring.submit_and_wait(left) {
                Err(error) if !is_passing(&error) => {
                    // A new ring drops the entries that the kernel has not taken, which the next call would otherwise
                    // submit.
                    self.ring = opened()?;
                    return Err(error);
                }
                _ => {}
            }
            self.take(|slot, answer| {
                left -= 1;
                by_slot[slot] = Some(answer);
            });
        }
        let mut answers = [Err(libc::ECANCELED); SLOTS as usize];
        for (answer, slot) in answers.iter_mut().zip(slots) {
            *answer = by_slot[*slot].unwrap_or(*answer);
        }
        Ok(answers)
    }

    /// Processes all completions that are ready. Passes the slot and the result of each send to `tell`.
    fn take(&mut self, mut tell: impl FnMut(usize, SendResult)) {
        for word in self.ring.completion() {
            let slot = word.user_data() as usize;
            if cqueue::notif(word.flags()) {
                let copied = word.result() as u32 & COPIED != 0;
                self.slots.give_back(slot, (self.failed & (1 << slot) == 0).then_some(copied));
                continue;
            }
            let answer = if word.result() < 0 { Err(-word.result()) } else { Ok(()) };
            // A notification follows, even for a failed send, unless the send failed before the kernel held any of the
            // memory.
            if cqueue::more(word.flags()) {
                self.slots.keep(slot);
                self.failed = self.failed & !(1 << slot) | u64::from(answer.is_err()) << slot;
            }
            tell(slot, answer);
        }
    }

    fn look(&mut self) {
        // The call lets the kernel post completions; if it fails, there is nothing to take.
        let _ = self.ring.submit();
        self.take(|_, _| ());
    }

    fn wait_for_word(&self) -> io::Result<()> {
        let look = Timespec::from(LOOK);
        match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&look)) {
            Err(error) if error.raw_os_error() == Some(libc::ETIME) || is_passing(&error) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Returns the error to report for the error of a send. If the socket's buffer is full, first waits for space. If
    /// the kernel cannot accept the memory of a single datagram, the error names the limit.
    fn why(&self, socket: &Socket, error: io::Error) -> io::Error {
        match error.raw_os_error() {
            Some(libc::EAGAIN) => {
                let mut ready = [PollFd::new(socket, PollFlags::OUT)];
                match socket::wait(&mut ready, LOOK) {
                    Ok(true) => ErrorKind::Interrupted.into(),
                    Ok(false) => error,
                    Err(error) => error,
                }
            }
            Some(libc::ENOBUFS) if self.lend && self.slots.pending() == 0 => {
                io::Error::other("no room to lend the memory of one datagram: raise SO_SNDBUF or ulimit -l")
            }
            _ => error,
        }
    }
}

fn opened() -> io::Result<IoUring> {
    // With IORING_SETUP_COOP_TASKRUN, completions wait for the next system call and do not interrupt the sender.
    IoUring::builder().setup_coop_taskrun().setup_cqsize(WORDS).build(BATCH as u32)
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

fn no_ring(error: &io::Error) -> io::Error {
    io::Error::other(match error.raw_os_error() {
        Some(libc::EPERM) => {
            "io_uring is switched off on this host (kernel.io_uring_disabled, or a seccomp filter)".to_owned()
        }
        Some(libc::ENOSYS | libc::EINVAL) => {
            format!("this kernel has no io_uring as it is since Linux 5.19 ({error})")
        }
        Some(libc::ENOMEM) => {
            format!("there is no memory to lock for an io_uring ({error}): raise ulimit -l")
        }
        _ => format!("this host opens no io_uring ({error})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_rings_gets_the_reason() {
        let text = |code| no_ring(&io::Error::from_raw_os_error(code)).to_string();
        assert!(text(libc::EPERM).contains("kernel.io_uring_disabled"));
        assert!(text(libc::ENOSYS).contains("5.19"));
        assert!(text(libc::ENOMEM).contains("ulimit -l"));
    }
}
