//! The system calls that send and receive datagrams: one datagram per call, many per call, or many joined into one
//! buffer (UDP_SEGMENT, UDP_GRO).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, size_of, size_of_val};
use std::os::fd::{AsRawFd, BorrowedFd};

/// The largest number of datagrams in one call of sendmmsg or recvmmsg.
pub(crate) const BATCH: usize = 32;
/// The largest number of datagrams that one call with UDP_SEGMENT sends: UDP_MAX_SEGMENTS of kernels before 6.9.
pub(crate) const SEGMENTS: usize = 64;

/// How datagrams are handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendMode {
    Plain,
    Batch,
    Uring,
    Gso,
}

impl SendMode {
    /// Returns the mode called `word`. An unknown word gives `Plain`: one datagram per call.
    pub(crate) fn named(word: &str) -> Self {
        match word {
            "batch" => SendMode::Batch,
            "uring" => SendMode::Uring,
            "gso" => SendMode::Gso,
            _ => SendMode::Plain,
        }
    }
}

/// How datagrams are taken from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiveMode {
    Plain,
    Batch,
    Gro,
}

impl ReceiveMode {
    /// Returns the mode called `word`. An unknown word gives `Plain`: one datagram per call.
    pub(crate) fn named(word: &str) -> Self {
        match word {
            "batch" => ReceiveMode::Batch,
            "gro" => ReceiveMode::Gro,
            _ => ReceiveMode::Plain,
        }
    }
}

/// An aligned buffer for one control message of one int.
type ControlBuffer = [u64; 4];

/// Sends `parts` as one datagram, or cut into datagrams of `segment` bytes (UDP_SEGMENT). If `flags` contain
/// MSG_ZEROCOPY, the kernel may read `parts` after the call.
pub(crate) fn send(
    fd: BorrowedFd<'_>,
    parts: &[IoSlice<'_>],
    flags: i32,
    segment: Option<u16>,
) -> io::Result<()> {
    let mut control: ControlBuffer = [0; 4];
    let mut message = header(parts);
    if let Some(segment) = segment {
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: CMSG_SPACE only computes.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as _;
        // SAFETY: `control` is aligned for a cmsghdr and has room for one of this length.
        unsafe {
            let cmsg = libc::CMSG_FIRSTHDR(&message);
            (*cmsg).cmsg_level = libc::IPPROTO_UDP;
            (*cmsg).cmsg_type = libc::UDP_SEGMENT;
            (*cmsg).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            libc::CMSG_DATA(cmsg).cast::<u16>().write_unaligned(segment);
        }
    }
    // SAFETY: `message` points at `parts` and `control`, which outlive the call; the kernel only reads.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &message, flags | libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends each group of `each` entries of `parts` as one datagram, at most [`BATCH`] datagrams in the call. Returns the
/// number of datagrams sent. If `flags` contain MSG_ZEROCOPY, the kernel may read `parts` after the call.
pub(crate) fn send_many(
    fd: BorrowedFd<'_>,
    parts: &[IoSlice<'_>],
    each: usize,
    flags: i32,
) -> io::Result<usize> {
    // SAFETY: an mmsghdr is valid as zeros.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { MaybeUninit::zeroed().assume_init() };
    let datagrams = parts.chunks_exact(each);
    let count = datagrams.len().min(BATCH);
    let flags = flags | libc::MSG_NOSIGNAL;
    for (message, datagram) in messages.iter_mut().zip(datagrams) {
        message.msg_hdr = header(datagram);
    }
    // SAFETY: the first `count` messages point at `parts`, which outlive the call. The kernel reads them and writes
    // `msg_len` of `messages`, which are exclusively borrowed.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count as u32, flags as _) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Returns the header that sends `parts` as one datagram. The header contains a pointer to `parts`.
pub(crate) fn header(parts: &[IoSlice<'_>]) -> libc::msghdr {
    // SAFETY: msghdr is valid as zeros (no name, no data, no control).
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    // IoSlice is documented to have the layout of iovec; sends do not write to it.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    message
}

/// Receives one datagram and returns its length, which is larger than `into` if the datagram was truncated.
pub(crate) fn receive(fd: BorrowedFd<'_>, into: &mut [u8], flags: i32) -> io::Result<usize> {
    let flags = flags | libc::MSG_TRUNC;
    // SAFETY: the kernel writes at most `into.len()` bytes at `into`, which is exclusively borrowed.
    let got = unsafe { libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Receives up to [`BATCH`] datagrams in one call, each into the next `each` entries of `parts`, and waits only for the
/// first datagram. Returns the number of datagrams, and writes their lengths into `lengths`. A length is larger than
/// the space of the entries if the datagram was truncated.
pub(crate) fn receive_many(
    fd: BorrowedFd<'_>,
    parts: &mut [IoSliceMut<'_>],
    each: usize,
    flags: i32,
    lengths: &mut [usize],
) -> io::Result<usize> {
    // SAFETY: an mmsghdr is valid as zeros.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { MaybeUninit::zeroed().assume_init() };
    let rooms = parts.chunks_exact_mut(each);
    let count = rooms.len().min(BATCH);
    for (message, room) in messages.iter_mut().zip(rooms) {
        message.msg_hdr = receiving_header(room);
    }
    let flags = flags | libc::MSG_WAITFORONE | libc::MSG_TRUNC;
    // SAFETY: each of the first `count` messages points at `each` entries of `parts`, which point at exclusively
    // borrowed memory. All outlive the call. No timeout is given.
    let got = unsafe {
        libc::recvmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count as u32, flags as _, std::ptr::null_mut())
    };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    for (length, message) in lengths.iter_mut().zip(&messages[..got]) {
        *length = message.msg_len as usize;
    }
    Ok(got)
}

/// Receives one datagram, or several that UDP_GRO joined. Returns the total number of bytes, and the length of each
/// datagram except the last, which may be shorter. The total exceeds the space in `parts` if data was truncated.
pub(crate) fn receive_joined(
    fd: BorrowedFd<'_>,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
) -> io::Result<(usize, usize)> {
    let mut control: ControlBuffer = [0; 4];
    let mut message = receiving_header(parts);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `message` points at `control` and at `parts`, whose entries point at exclusively borrowed memory. All
    // outlive the call.
    let got = unsafe { libc::recvmsg(fd.as_raw_fd(), &mut message, flags | libc::MSG_TRUNC) };
    let total = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    Ok((total, segment(&message).unwrap_or(total)))
}

/// Returns the header that receives a datagram into `parts`. The header contains a pointer to `parts`.
fn receiving_header(parts: &mut [IoSliceMut<'_>]) -> libc::msghdr {
    // SAFETY: msghdr is valid as zeros (no name, no data, no control).
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    // IoSliceMut is documented to have the layout of iovec.
    message.msg_iov = parts.as_mut_ptr().cast();
    message.msg_iovlen = parts.len() as _;
    message
}

/// Returns the length of each joined datagram, which UDP_GRO reports; `None` if no datagrams were joined.
fn segment(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel filled `message`; the macro checks the length that it wrote.
    let cmsg = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    let least = size_of::<libc::cmsghdr>() + size_of::<i32>();
    if cmsg.cmsg_level != libc::IPPROTO_UDP
        || cmsg.cmsg_type != libc::UDP_GRO
        || (cmsg.cmsg_len as usize) < least
    {
        return None;
    }
    // SAFETY: the header's length says that an int follows it.
    let length = unsafe { libc::CMSG_DATA(cmsg).cast::<i32>().read_unaligned() };
    usize::try_from(length).ok().filter(|&length| length > 0)
}
