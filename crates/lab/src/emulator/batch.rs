//! Receives and sends many frames in one system call.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::ring::DueFrame;
use super::socket::{PacketSocket, is_gone};
use super::virtio::VIRTIO_LEN;

/// The largest number of frames that are received or sent in one system call.
pub(super) const BATCH: usize = 32;
/// Size in bytes of the buffer for one frame. The largest possible frame fits with its headers: 512 KiB ("BIG TCP", the
/// kernel's GSO_MAX_SIZE).
const LARGEST: usize = VIRTIO_LEN + 8 * 65_536 + 256;

/// Size of the control data of one message, in 8-byte words. It has room for one timestamp. Words keep the kernel's
/// `cmsghdr` aligned.
const CONTROL_WORDS: usize = 8;

/// Buffers for a batch of received frames.
#[derive(Debug)]
pub(super) struct ReceiveBatch {
    bytes: Box<[u8]>,
    control: [[u64; CONTROL_WORDS]; BATCH],
    arrivals: [FrameInfo; BATCH],
    count: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct FrameInfo {
    len: usize,
    truncated: bool,
    unix_ns: Option<u64>,
}

/// A received frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReceivedFrame<'a> {
    /// The virtio header and the frame.
    pub(super) frame: &'a [u8],
    /// The time at which the kernel received the frame, in nanoseconds since 1970; `None` if the kernel did not report
    /// it.
    pub(super) unix_ns: Option<u64>,
    /// True if the frame is larger than [`LARGEST`], so that its end is missing.
    pub(super) truncated: bool,
}

impl ReceiveBatch {
    pub(super) fn new() -> Self {
        ReceiveBatch {
            // The kernel allocates the pages of a vector of zeros only on first use, and few frames are that large.
            bytes: vec![0; LARGEST * BATCH].into_boxed_slice(),
            control: [[0; CONTROL_WORDS]; BATCH],
            arrivals: [FrameInfo::default(); BATCH],
            count: 0,
        }
    }

    /// Receives the frames that wait at the socket, at most [`BATCH`], without blocking. Returns their number, 0 if
    /// none wait.
    pub(super) fn fill(&mut self, socket: &PacketSocket) -> io::Result<usize> {
        self.count = 0;
        // SAFETY: zero bytes are valid for iovec and mmsghdr: null pointers and lengths of 0.
        let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        for (n, room) in self.bytes.chunks_exact_mut(LARGEST).enumerate() {
            parts[n] = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: LARGEST };
            let header = &mut messages[n].msg_hdr;
            (header.msg_iov, header.msg_iovlen) = (&raw mut parts[n], 1);
            header.msg_control = self.control[n].as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&self.control[n]);
        }
        // SAFETY: each header points to one iovec and one control buffer, with their correct lengths. All of this
        // memory stays valid, and is not used otherwise, until the call returns.
        let taken = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let Ok(taken) = usize::try_from(taken) else { return none_waiting(io::Error::last_os_error()) };
        for (arrival, message) in self.arrivals.iter_mut().zip(&messages[..taken]) {
            *arrival = FrameInfo {
                len: (message.msg_len as usize).min(LARGEST),
                truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                unix_ns: arrival_time(&message.msg_hdr),
            };
        }
        self.count = taken;
        Ok(taken)
    }

    /// Returns the frames that the last call of `fill` received.
    pub(super) fn messages(&self) -> impl Iterator<Item = ReceivedFrame<'_>> {
        self.bytes.chunks_exact(LARGEST).zip(&self.arrivals[..self.count]).map(|(bytes, arrival)| {
            ReceivedFrame {
                frame: &bytes[..arrival.len],
                unix_ns: arrival.unix_ns,
                truncated: arrival.truncated,
            }
        })
    }
}

fn none_waiting(error: io::Error) -> io::Result<usize> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

fn arrival_time(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel filled in the control data that `header` points to, and its length.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return null or a whole header within the control data.
        let found = unsafe { &*message };
        if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: the data of this kind of message is one timespec; it may be unaligned.
            let time = unsafe { libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned() };
            let seconds = u64::try_from(time.tv_sec).ok()?;
            return seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec).ok()?);
        }
        // SAFETY: as for CMSG_FIRSTHDR; `message` is a control message of `header`.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    None
}

/// The outcome of sending a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SendOutcome {
    /// Number of frames that were sent or refused, and need no further handling.
    pub(super) done: usize,
    /// True if the kernel refused the last of these `done` frames.
    pub(super) refused: bool,
}

/// Sends at most [`BATCH`] frames, and stops at the first one that the kernel refuses. Returns an error only if the
/// network device no longer exists.
pub(super) fn give<'a>(
    socket: &PacketSocket,
    frames: impl Iterator<Item = DueFrame<'a>>,
) -> io::Result<SendOutcome> {
    // SAFETY: zero bytes are valid for iovec and mmsghdr: null pointers and lengths of 0.
    let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let mut total = 0;
    for (n, due) in frames.take(BATCH).enumerate() {
        total = n + 1;
        parts[n] = libc::iovec { iov_base: due.frame.as_ptr().cast_mut().cast(), iov_len: due.frame.len() };
        let header = &mut messages[n].msg_hdr;
        (header.msg_iov, header.msg_iovlen) = (&raw mut parts[n], 1);
    }
    // SAFETY: each of the first `total` headers points to one iovec, which has the address and the length of a frame.
    // The frames are borrowed for 'a, so they are valid until the call returns. The kernel only reads them.
    let sent = unsafe {
        libc::sendmmsg(socket.as_fd().as_raw_fd(), messages.as_mut_ptr(), total as libc::c_uint, 0)
    };
    if let Ok(done) = usize::try_from(sent) {
        return Ok(SendOutcome { done, refused: false });
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(SendOutcome::default()),
        _ if is_gone(&error) => Err(error),
        // A full backlog (ENOBUFS), or a frame that the device cannot send (EMSGSIZE, EINVAL).
        _ => Ok(SendOutcome { done: 1, refused: true }),
    }
}
