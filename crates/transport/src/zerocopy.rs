//! Sending from the program's own memory with MSG_ZEROCOPY (kernel documentation, networking/msg_zerocopy): the setting, and
//! what the kernel says of memory that it was lent. TCP and UDP have both.

use std::io;
use std::mem::{MaybeUninit, size_of, size_of_val};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use landspeed_factor::{Factor, Persist, Proposal, System, View};
use rustix::event::{PollFd, PollFlags};
use socket2::Socket;

use crate::options::{SocketOption, Value, once_on};
use crate::transport::Completions;
use crate::{raw, socket};

/// Sends of a socket whose memory the kernel may have at a time.
pub(crate) const SLOTS: u32 = u64::BITS;
/// The longest that a send waits for a notification without its caller looking whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Time between two looks of a sender that is leaving.
const LEAVING_LOOK: Duration = Duration::from_millis(1);

/// The option, alone: for the tables of those transports that can do it.
pub(crate) static ROW: &[SocketOption] = &[SocketOption {
    factor: Factor {
        name: "zerocopy-send",
        system: System::Socket("SO_ZEROCOPY"),
        persist: &[Persist::Application(
            "setsockopt(SOL_SOCKET, SO_ZEROCOPY), then send with MSG_ZEROCOPY and read its completions",
        )],
        about: "MSG_ZEROCOPY: send from the application's pages; the kernel may still copy, and says so",
        interacts: &["tx-checksum", "scatter-gather", "tso", "write-size", "optmem-max"],
        source: "jin-yoo-2007 3.3, figure 5 (checksum and zero-copy: 2.56x); \
                 Documentation/networking/msg_zerocopy.rst; lab: copied on veth, costs 10 %, over UDP 30 %",
        propose,
        ..Factor::FLOW
    },
    hint: "it needs Linux 4.14, over UDP 5.0",
    asked: once_on,
    set: |socket, value| raw::set(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, value.small()),
    get: |socket| {
        raw::get::<u32>(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY).map(|on| Value::Number(on.into()))
    },
}];

pub(crate) static SEND: &Factor = &ROW[0].factor;

/// Pages that a checksum must read are no longer free to skip: without the offloads the kernel copies.
fn propose(view: &View) -> Vec<Proposal> {
    if view.current == "on" {
        return Vec::new();
    }
    let needs = [("tx-checksum", "on"), ("scatter-gather", "on")];
    let missing = needs.into_iter().filter(|(knob, _)| view.stands(knob, "off"));
    vec![missing.fold(Proposal::new("on", 45), |on, (knob, value)| on.with(knob, value))]
}

/// Which slots zero-copy sends have, each until the kernel is done with its memory. Datagrams may complete in another order than
/// they were sent, and some long after the rest.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// A bit for each slot that a send has.
    pending: u64,
    seen: Completions,
}

impl Slots {
    pub(crate) fn pending(&self) -> u32 {
        self.pending.count_ones()
    }

    /// So many free slots, which there are; what comes after them is none.
    pub(crate) fn free(&self, count: u32) -> [usize; SLOTS as usize] {
        let mut slots = [0; SLOTS as usize];
        slots.iter_mut().zip(ones(!self.pending)).take(count as usize).for_each(|(slot, free)| *slot = free);
        slots
    }

    pub(crate) fn keep(&mut self, slot: usize) {
        self.pending |= 1 << slot;
    }

    /// The kernel is done with the memory of a send, which it had copied or not; `None` where the send had failed.
    pub(crate) fn give_back(&mut self, slot: usize, copied: Option<bool>) {
        self.pending &= !(1 << slot);
        self.seen.done += u64::from(copied.is_some());
        self.seen.copied += u64::from(copied == Some(true));
    }

    pub(crate) fn completions(&self) -> Completions {
        Completions { pending: self.pending().into(), ..self.seen }
    }
}

/// Waits until nothing of a sender is pending, which `pending` looks for, at most so long; whether nothing is.
pub(crate) fn all_returned(within: Duration, mut pending: impl FnMut() -> u32) -> bool {
    let begun = Instant::now();
    loop {
        let left = pending();
        if left == 0 || begun.elapsed() >= within {
            return left == 0;
        }
        // By sleeping: the socket of a flow that was aborted is ready for ever.
        std::thread::sleep(LEAVING_LOOK);
    }
}

/// The zero-copy sends of a socket's sender, told apart by the numbers that the kernel gives them.
pub(crate) struct Lent<'a> {
    socket: &'a Socket,
    /// Where the next sender of the socket goes on.
    numbers: &'a AtomicU32,
    next: u32,
    slots: Slots,
    in_slots: [u32; SLOTS as usize],
    most: u32,
}

impl<'a> Lent<'a> {
    /// For a socket with SO_ZEROCOPY, of whose sends `numbers` were numbered, for `most` sends at a time.
    pub(crate) fn new(socket: &'a Socket, numbers: &'a AtomicU32, most: u32) -> Self {
        let next = numbers.load(Ordering::Relaxed);
        Lent { socket, numbers, next, slots: Slots::default(), in_slots: [0; SLOTS as usize], most }
    }

    /// Hands over up to `count` sends by `call`, as soon as one can be. It gets a slot for each that can, and tells how many
    /// the kernel took, and what else there is to know.
    pub(crate) fn send<T>(
        &mut self,
        count: u32,
        mut call: impl FnMut(&[usize]) -> io::Result<(usize, T)>,
    ) -> io::Result<T> {
        loop {
            while self.slots.pending() >= self.most {
                self.take_or_wait()?;
            }
            let count = count.min(self.most - self.slots.pending());
            let slots = self.slots.free(count);
            let slots = &slots[..count as usize];
            match call(slots) {
                Ok((taken, told)) => {
                    self.keep(&slots[..taken]);
                    return Ok(told);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.make_room()?,
                Err(error) => {
                    // The kernel may have numbered it all the same, and has said so then.
                    let _ = self.take();
                    return Err(error);
                }
            }
        }
    }

    /// What became of them; takes what is there, without waiting.
    pub(crate) fn completions(&mut self) -> Completions {
        // At the end of a flow the queue may be gone with it; what was counted is kept.
        let _ = self.take();
        self.slots.completions()
    }

    /// Waits until the kernel is done with all memory, at most so long; whether it is.
    pub(crate) fn all_returned(&mut self, within: Duration) -> bool {
        all_returned(within, || {
            let _ = self.take();
            self.slots.pending()
        })
    }

    /// The next sends have these slots now.
    fn keep(&mut self, slots: &[usize]) {
        for &slot in slots {
            self.in_slots[slot] = self.next;
            self.slots.keep(slot);
            self.go_on_at(self.next.wrapping_add(1));
        }
    }

    /// After ENOBUFS: the notifications of earlier sends fill what the socket has for them, or their pages what the user may lock.
    fn make_room(&mut self) -> io::Result<()> {
        if self.slots.pending() == 0 {
            return Err(io::Error::other(
                "no room for one MSG_ZEROCOPY send: raise net.core.optmem_max, SO_SNDBUF or ulimit -l",
            ));
        }
        self.take_or_wait()
    }

    fn take_or_wait(&mut self) -> io::Result<()> {
        if self.take()? { Ok(()) } else { wait_for_note(self.socket) }
    }

    /// Takes what the error queue holds; whether there was anything.
    fn take(&mut self) -> io::Result<bool> {
        let mut any = false;
        while let Some(note) = next_note(self.socket)? {
            any = true;
            let copied = u32::from(note.ee_code) == ZEROCOPY_COPIED;
            // ee_info and ee_data: numbers of the first send and of the last, from 0, wrapping.
            for ahead in 0..=note.ee_data.wrapping_sub(note.ee_info) {
                self.complete(note.ee_info.wrapping_add(ahead), copied);
            }
        }
        Ok(any)
    }

    fn complete(&mut self, number: u32, copied: bool) {
        // In the usual order it is the first.
        if let Some(slot) = ones(self.slots.pending).find(|&slot| self.in_slots[slot] == number) {
            self.slots.give_back(slot, Some(copied));
        } else if self.next.wrapping_sub(number).wrapping_sub(1) > LATEST {
            // Not counted as sent: the call failed after the kernel had numbered it. All else is an earlier sender's.
            self.go_on_at(number.wrapping_add(1));
        }
    }

    fn go_on_at(&mut self, next: u32) {
        self.next = next;
        self.numbers.store(next, Ordering::Relaxed);
    }
}

/// Half of all numbers lie before the next, half after it.
const LATEST: u32 = u32::MAX / 2;

/// The places of the bits that are set, from the lowest.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lowest)
    })
}

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

/// Waits for the error queue, at most so long that the caller can look whether to stop.
fn wait_for_note(socket: &Socket) -> io::Result<()> {
    // POLLERR needs not be asked for.
    let mut ready = [PollFd::new(socket, PollFlags::empty())];
    if !socket::wait(&mut ready, LOOK)? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    if ready[0].revents().contains(PollFlags::HUP) {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    // An error of the socket's own makes it ready too, and would for ever.
    socket.take_error()?.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender whose next number is `next`, with these sends out.
    fn lent<'a>(socket: &'a Socket, numbers: &'a AtomicU32, sends: u32) -> Lent<'a> {
        let mut lent = Lent::new(socket, numbers, SLOTS);
        lent.send(sends, |slots| Ok((slots.len(), ()))).expect("there is room");
        lent
    }

    fn udp() -> Socket {
        Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).expect("a UDP socket")
    }

    #[test]
    fn what_completes_in_any_order_frees_its_own_slot() {
        let (socket, numbers) = (udp(), AtomicU32::new(u32::MAX - 1));
        let mut lent = lent(&socket, &numbers, 4);
        assert_eq!(numbers.load(Ordering::Relaxed), 2);
        lent.complete(1, true);
        lent.complete(u32::MAX, false);
        let seen = lent.completions();
        assert_eq!((seen.done, seen.copied, seen.pending), (2, 1, 2));
        // The first and the third are still out: no send has a slot of theirs, and all others go on.
        let slots = lent.send(SLOTS, |slots| Ok((slots.len(), slots.to_vec()))).expect("there is room");
        assert_eq!((slots.len(), &slots[..3]), (62, &[1, 3, 4][..]));
    }

    #[test]
    fn numbers_of_others_are_not_counted() {
        let (socket, numbers) = (udp(), AtomicU32::new(100));
        let mut lent = lent(&socket, &numbers, 2);
        // An earlier sender's.
        for number in [99, 30, u32::MAX] {
            lent.complete(number, true);
        }
        assert_eq!(lent.completions(), Completions { done: 0, copied: 0, pending: 2 });
        // The kernel numbered a call that failed: the next send has the number after it.
        lent.complete(102, false);
        assert_eq!((lent.completions().pending, lent.next), (2, 103));
    }

    #[test]
    fn without_room_for_one_notification_it_says_what_limits_it() {
        let (socket, numbers) = (udp(), AtomicU32::new(0));
        let mut lent = Lent::new(&socket, &numbers, SLOTS);
        let full = lent.send(1, |_| Err::<(usize, ()), _>(io::Error::from_raw_os_error(libc::ENOBUFS)));
        let full = full.expect_err("nothing is out that could make room").to_string();
        assert!(full.contains("optmem_max"), "{full}");
    }

    #[test]
    fn a_send_without_room_lets_its_caller_look() {
        let (socket, numbers) = (udp(), AtomicU32::new(0));
        let mut lent = lent(&socket, &numbers, SLOTS);
        let waited = lent.send(1, |_| Ok((1, ()))).expect_err("nothing comes back");
        assert!(
            matches!(waited.kind(), io::ErrorKind::TimedOut | io::ErrorKind::ConnectionAborted),
            "{waited}"
        );
        assert!(!lent.all_returned(Duration::from_millis(5)));
    }
}
