//! Sending from the program's own memory with MSG_ZEROCOPY (kernel documentation, networking/msg_zerocopy): the
//! setting, and the notifications by which the kernel releases the memory. TCP and UDP share both.

use std::io;
use std::mem::{MaybeUninit, size_of, size_of_val};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::factor::{Factor, FactorView, PersistMethod, Proposal, SystemSetting};
use rustix::event::{PollFd, PollFlags};
use socket2::Socket;

use crate::options::{OptionValue, SocketOption, once_on};
use crate::transport::ZeroCopyCompletions;
use crate::{raw, socket};

/// The largest number of zero-copy sends of one sender whose memory the kernel may still read.
pub(crate) const SLOTS: u32 = u64::BITS;
/// The longest time that a send waits for a notification before its caller can check whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// The interval at which a sender that is being dropped checks if the kernel has released its memory.
const LEAVING_LOOK: Duration = Duration::from_millis(1);

/// A table with only the option SO_ZEROCOPY, for the transports that support it.
pub(crate) static ROW: &[SocketOption] = &[SocketOption {
    factor: Factor {
        name: "zerocopy-send",
        system: SystemSetting::Socket("SO_ZEROCOPY"),
        persist: &[PersistMethod::Application(
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
        raw::get::<u32>(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY).map(|on| OptionValue::Number(on.into()))
    },
}];

pub(crate) static SEND: &Factor = &ROW[0].factor;

/// Proposes MSG_ZEROCOPY with the checksum and scatter-gather offloads on: without them the kernel copies, because it
/// must read the pages to compute the checksum.
fn propose(view: &FactorView) -> Vec<Proposal> {
    if view.current == "on" {
        return Vec::new();
    }
    let needs = [("tx-checksum", "on"), ("scatter-gather", "on")];
    let missing = needs.into_iter().filter(|(knob, _)| view.is_set_to(knob, "off"));
    vec![missing.fold(Proposal::new("on", 45), |on, (knob, value)| on.with(knob, value))]
}

/// The slots of a sender's zero-copy sends. A send occupies a slot until the kernel releases the send's memory.
/// Datagrams may complete in another order than they were sent, and some long after the others.
#[derive(Debug, Default)]
pub(crate) struct ZeroCopySlots {
    /// A bit for each slot in use.
    pending: u64,
    seen: ZeroCopyCompletions,
}

impl ZeroCopySlots {
    pub(crate) fn pending(&self) -> u32 {
        self.pending.count_ones()
    }

    /// Returns the indices of `count` free slots, in the first `count` entries. At least `count` slots must be free.
    /// The remaining entries have no meaning.
    pub(crate) fn free(&self, count: u32) -> [usize; SLOTS as usize] {
        let mut slots = [0; SLOTS as usize];
        slots.iter_mut().zip(ones(!self.pending)).take(count as usize).for_each(|(slot, free)| *slot = free);
        slots
    }

    pub(crate) fn keep(&mut self, slot: usize) {
        self.pending |= 1 << slot;
    }

    /// Frees the slot of a send whose memory the kernel has released, and counts the send. `copied` is true if the
    /// kernel copied the data. It is `None` if the send failed, which is not counted.
    pub(crate) fn give_back(&mut self, slot: usize, copied: Option<bool>) {
        self.pending &= !(1 << slot);
        self.seen.done += u64::from(copied.is_some());
        self.seen.copied += u64::from(copied == Some(true));
    }

    pub(crate) fn completions(&self) -> ZeroCopyCompletions {
        ZeroCopyCompletions { pending: self.pending().into(), ..self.seen }
    }
}

/// Waits until `pending` returns zero, for at most `within`. Returns true if it has returned zero.
pub(crate) fn all_returned(within: Duration, mut pending: impl FnMut() -> u32) -> bool {
    let begun = Instant::now();
    loop {
        let left = pending();
        if left == 0 || begun.elapsed() >= within {
            return left == 0;
        }
        // Sleeps and does not call poll(2), because the socket of an aborted flow is always ready.
        std::thread::sleep(LEAVING_LOOK);
    }
}

/// The zero-copy sends of one sender of a socket. The kernel numbers the sends of a socket, and a notification contains
/// a range of these numbers.
pub(crate) struct ZeroCopySends<'a> {
    socket: &'a Socket,
    /// The number that the kernel gives the next send of this socket, kept for the next sender.
    numbers: &'a AtomicU32,
    next: u32,
    slots: ZeroCopySlots,
    in_slots: [u32; SLOTS as usize],
    most: u32,
}

impl<'a> ZeroCopySends<'a> {
    /// Returns the sends of a new sender of `socket`, which must have SO_ZEROCOPY. At most `most` are pending at a
    /// time. `numbers` is the count of the socket's zero-copy sends so far.
    pub(crate) fn new(socket: &'a Socket, numbers: &'a AtomicU32, most: u32) -> Self {
        let next = numbers.load(Ordering::Relaxed);
        ZeroCopySends {
            socket,
            numbers,
            next,
            slots: ZeroCopySlots::default(),
            in_slots: [0; SLOTS as usize],
            most,
        }
    }

    /// Waits for a free slot, and then makes up to `count` sends by `call`. `call` gets the slots of the sends that
    /// it may make, and returns the number of sends that the kernel accepted, and a result for the caller.
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
                Ok((taken, answer)) => {
                    self.keep(&slots[..taken]);
                    return Ok(answer);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.make_room()?,
                Err(error) => {
                    // The kernel may have given the failed send a number. In that case there is a notification with
                    // this number.
                    let _ = self.take();
                    return Err(error);
                }
            }
        }
    }

    /// Reads the notifications that are ready, without waiting, and returns the counts of all sends.
    pub(crate) fn completions(&mut self) -> ZeroCopyCompletions {
        // Ignores errors: when a flow has ended, its error queue may be gone, but the counts so far remain valid.
        let _ = self.take();
        self.slots.completions()
    }

    /// Waits at most `within` until the kernel has released all memory. Returns true if it has.
    pub(crate) fn all_returned(&mut self, within: Duration) -> bool {
        all_returned(within, || {
            let _ = self.take();
            self.slots.pending()
        })
    }

    /// Assigns `slots` to sends that the kernel has just accepted, and notes the sends' numbers.
    fn keep(&mut self, slots: &[usize]) {
        for &slot in slots {
            self.in_slots[slot] = self.next;
            self.slots.keep(slot);
            self.go_on_at(self.next.wrapping_add(1));
        }
    }

    /// Waits for notifications after a send has failed with ENOBUFS. That error has two causes: notifications of
    /// earlier sends fill the socket's option memory, or the sends' pages reach the limit of memory that the user may
    /// lock.
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

    /// Takes all notifications of the error queue. Returns true if there were any.
    fn take(&mut self) -> io::Result<bool> {
        let mut any = false;
        while let Some(note) = next_note(self.socket)? {
            any = true;
            let copied = u32::from(note.ee_code) == ZEROCOPY_COPIED;
            // ee_info and ee_data are the numbers of the first and the last send, counted from 0 and wrapping.
            for ahead in 0..=note.ee_data.wrapping_sub(note.ee_info) {
                self.complete(note.ee_info.wrapping_add(ahead), copied);
            }
        }
        Ok(any)
    }

    fn complete(&mut self, number: u32, copied: bool) {
        // If sends complete in order, this is the first slot in use.
        if let Some(slot) = ones(self.slots.pending).find(|&slot| self.in_slots[slot] == number) {
            self.slots.give_back(slot, Some(copied));
        } else if self.next.wrapping_sub(number).wrapping_sub(1) > LATEST {
            // No accepted send has this number yet: the kernel numbered a send whose call failed. All other unknown
            // numbers are those of an earlier sender.
            self.go_on_at(number.wrapping_add(1));
        }
    }

    fn go_on_at(&mut self, next: u32) {
        self.next = next;
        self.numbers.store(next, Ordering::Relaxed);
    }
}

/// Half of the range of the kernel's numbers, which wrap. Numbers up to this distance before the next number belong to
/// earlier sends, all others to later sends.
const LATEST: u32 = u32::MAX / 2;

/// Iterates over the positions of the set bits, from the lowest.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lowest)
    })
}

/// SO_EE_ORIGIN_ZEROCOPY of include/uapi/linux/errqueue.h; the next constant is SO_EE_CODE_ZEROCOPY_COPIED.
const ORIGIN_ZEROCOPY: u8 = 5;
const ZEROCOPY_COPIED: u32 = 1;

/// Returns the next zero-copy notification of the error queue, if any.
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

/// Waits for a notification, for at most [`LOOK`]. Returns `TimedOut` after that, so that the caller can check if it
/// must stop.
fn wait_for_note(socket: &Socket) -> io::Result<()> {
    // poll(2) always reports POLLERR, even if it is not requested.
    let mut ready = [PollFd::new(socket, PollFlags::empty())];
    if !socket::wait(&mut ready, LOOK)? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    if ready[0].revents().contains(PollFlags::HUP) {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    // An error of the socket itself also makes the socket ready, and reading the error clears it. Otherwise the socket
    // would stay ready.
    socket.take_error()?.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sends of a sender, of which `sends` are pending.
    fn zerocopy_sends<'a>(socket: &'a Socket, numbers: &'a AtomicU32, sends: u32) -> ZeroCopySends<'a> {
        let mut zerocopy_sends = ZeroCopySends::new(socket, numbers, SLOTS);
        zerocopy_sends.send(sends, |slots| Ok((slots.len(), ()))).expect("there is room");
        zerocopy_sends
    }

    fn udp() -> Socket {
        Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).expect("a UDP socket")
    }

    #[test]
    fn completions_in_any_order_free_their_own_slots() {
        let (socket, numbers) = (udp(), AtomicU32::new(u32::MAX - 1));
        let mut zerocopy_sends = zerocopy_sends(&socket, &numbers, 4);
        assert_eq!(numbers.load(Ordering::Relaxed), 2);
        zerocopy_sends.complete(1, true);
        zerocopy_sends.complete(u32::MAX, false);
        let seen = zerocopy_sends.completions();
        assert_eq!((seen.done, seen.copied, seen.pending), (2, 1, 2));
        // The first and the third are still pending: no send gets their slots, and all others go out.
        let slots =
            zerocopy_sends.send(SLOTS, |slots| Ok((slots.len(), slots.to_vec()))).expect("there is room");
        assert_eq!((slots.len(), &slots[..3]), (62, &[1, 3, 4][..]));
    }

    #[test]
    fn numbers_of_others_are_not_counted() {
        let (socket, numbers) = (udp(), AtomicU32::new(100));
        let mut zerocopy_sends = zerocopy_sends(&socket, &numbers, 2);
        // These numbers are an earlier sender's.
        for number in [99, 30, u32::MAX] {
            zerocopy_sends.complete(number, true);
        }
        assert_eq!(zerocopy_sends.completions(), ZeroCopyCompletions { done: 0, copied: 0, pending: 2 });
        // The kernel numbered a call that failed: the next send gets the number after it.
        zerocopy_sends.complete(102, false);
        assert_eq!((zerocopy_sends.completions().pending, zerocopy_sends.next), (2, 103));
    }

    #[test]
    fn without_room_for_one_notification_the_error_names_the_limit() {
        let (socket, numbers) = (udp(), AtomicU32::new(0));
        let mut zerocopy_sends = ZeroCopySends::new(&socket, &numbers, SLOTS);
        let full =
            zerocopy_sends.send(1, |_| Err::<(usize, ()), _>(io::Error::from_raw_os_error(libc::ENOBUFS)));
        let full = full.expect_err("nothing is out that could make room").to_string();
        assert!(full.contains("optmem_max"), "{full}");
    }

    #[test]
    fn a_send_without_room_lets_its_caller_look() {
        let (socket, numbers) = (udp(), AtomicU32::new(0));
        let mut zerocopy_sends = zerocopy_sends(&socket, &numbers, SLOTS);
        let waited = zerocopy_sends.send(1, |_| Ok((1, ()))).expect_err("nothing comes back");
        assert!(
            matches!(waited.kind(), io::ErrorKind::TimedOut | io::ErrorKind::ConnectionAborted),
            "{waited}"
        );
        assert!(!zerocopy_sends.all_returned(Duration::from_millis(5)));
    }
}
