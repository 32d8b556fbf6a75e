//! Sending by an io_uring (io_uring_enter(2)): many datagrams in one call, each a send of its own, and from the program's own
//! memory where the kernel is lent it. Its word that it is done with memory comes by the ring as well: there is no error queue to
//! read.

use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use rustix::event::{PollFd, PollFlags};
use socket2::Socket;

use super::outgoing::Outgoing;
use crate::message::{self, BATCH};
use crate::socket;
use crate::transport::Completions;
use crate::zerocopy::{self, SLOTS, Slots};

/// The longest that a send waits without its caller looking whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// What completes between two looks at most: a word for each send of a batch, and one for each slot.
const WORDS: u32 = BATCH as u32 + SLOTS;
/// IORING_SEND_ZC_REPORT_USAGE and IORING_NOTIF_USAGE_ZC_COPIED, include/uapi/linux/io_uring.h: Linux 6.2.
const REPORT_USAGE: u16 = 1 << 3;
const COPIED: u32 = 1 << 31;

pub(super) struct Ring {
    ring: IoUring,
    /// The sends whose memory the kernel may read, where it is lent any.
    slots: Slots,
    /// A bit for each slot whose send failed: the kernel gives back what it had lent for it, and nothing was sent.
    failed: u64,
    lend: bool,
}

/// What one send came to.
type Answer = Result<(), i32>;

impl Ring {
    /// # Errors
    /// Where this host has no ring, or none that lends memory, and why.
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
        Ok(Ring { ring, slots: Slots::default(), failed: 0, lend })
    }

    /// Sends up to `count` datagrams in their order, as many as have a slot; how many were taken. The first that fails ends it.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] and [`ErrorKind::WouldBlock`] where there is no room within 50 ms, [`ErrorKind::Interrupted`] where
    /// there is now.
    pub(super) fn send(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        message: &[u8],
        count: usize,
    ) -> io::Result<usize> {
        let (slots, count) = self.room(count)?;
        let slots = &slots[..count];
        let flow = outgoing.flow;
        let parts = outgoing.gathered(message, count, |at| slots[at]);
        let answers = self.handed_over(&flow.socket, &parts, slots)?;
        // Each goes after the one before it: what follows an error is not sent.
        let taken = answers[..count].iter().take_while(|answer| answer.is_ok()).count();
        match answers[..count].get(taken) {
            Some(Err(error)) if taken == 0 => {
                Err(self.why(&flow.socket, io::Error::from_raw_os_error(*error)))
            }
            _ => Ok(taken),
        }
    }

    /// What became of them; takes what is there, without waiting.
    pub(super) fn completions(&mut self) -> Completions {
        self.look();
        self.slots.completions()
    }

    /// Waits until the kernel is done with all memory, at most so long; whether it is.
    pub(super) fn all_returned(&mut self, within: Duration) -> bool {
        zerocopy::all_returned(within, || {
            self.look();
            self.slots.pending()
        })
    }

    /// Slots for up to `count` sends, and for how many: one at least.
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

    /// Sends every two of `parts` as a datagram, one in each slot, and waits for what each came to.
    fn handed_over(
        &mut self,
        socket: &Socket,
        parts: &[IoSlice<'_>],
        slots: &[usize],
    ) -> io::Result<[Answer; SLOTS as usize]> {
        // SAFETY: a msghdr is valid as zeros.
        let mut messages: [libc::msghdr; BATCH] = unsafe { MaybeUninit::zeroed().assume_init() };
        for ((message, pair), (at, slot)) in
            messages.iter_mut().zip(parts.chunks_exact(2)).zip(slots.iter().enumerate())
        {
            *message = message::header(pair);
            let is_last = at + 1 == slots.len();
            let order = if is_last { squeue::Flags::empty() } else { squeue::Flags::IO_LINK };
            let entry = self.entry(socket, message).flags(order).user_data(*slot as u64);
            // SAFETY: the socket, `messages` and `parts` outlive the send, whose word is waited for below. What `parts` point at is
            // read until then, or where it is lent until its slot is free: it has been promised for so long.
            unsafe { self.ring.submission().push(&entry) }.expect("the ring has room for a batch");
        }
        self.answers(slots)
    }

    /// One send, which does not wait for room: waiting, it could be overtaken.
    fn entry(&self, socket: &Socket, message: &libc::msghdr) -> squeue::Entry {
        let (fd, flags) = (Fd(socket.as_raw_fd()), (libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) as u32);
        if self.lend {
            return opcode::SendMsgZc::new(fd, message).ioprio(REPORT_USAGE).flags(flags).build();
        }
        opcode::SendMsg::new(fd, message).flags(flags).build()
    }

    /// Waits for the words of all sends of a call: none waits, so that neither does this. In the order of `slots`.
    fn answers(&mut self, slots: &[usize]) -> io::Result<[Answer; SLOTS as usize]> {
        let mut by_slot: [Option<Answer>; SLOTS as usize] = [None; SLOTS as usize];
        let mut left = slots.len();
        while left > 0 {
            match self.ring.submit_and_wait(left) {
                Err(error) if !is_passing(&error) => {
                    // What the kernel has not taken in must not be found by the next call.
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

    /// Takes all words that there are, and tells what sends came to.
    fn take(&mut self, mut tell: impl FnMut(usize, Answer)) {
        for word in self.ring.completion() {
            let slot = word.user_data() as usize;
            if cqueue::notif(word.flags()) {
                let copied = word.result() as u32 & COPIED != 0;
                self.slots.give_back(slot, (self.failed & (1 << slot) == 0).then_some(copied));
                continue;
            }
            let answer = if word.result() < 0 { Err(-word.result()) } else { Ok(()) };
            // A second word comes, for what failed too, unless it failed before it had lent anything.
            if cqueue::more(word.flags()) {
                self.slots.keep(slot);
                self.failed = self.failed & !(1 << slot) | u64::from(answer.is_err()) << slot;
            }
            tell(slot, answer);
        }
    }

    fn look(&mut self) {
        // A call lets the kernel say what it has to say; where it cannot, there is nothing to take.
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

    /// What is told in place of an error: room that was waited for, or that there is none at all.
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
    // Words wait for the next call in place of interrupting the sender.
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
    fn a_host_without_rings_is_told_what_stops_it() {
        let told = |code| no_ring(&io::Error::from_raw_os_error(code)).to_string();
        assert!(told(libc::EPERM).contains("kernel.io_uring_disabled"));
        assert!(told(libc::ENOSYS).contains("5.19"));
        assert!(told(libc::ENOMEM).contains("ulimit -l"));
    }
}
