//! Sending and receiving with copies between program and kernel.

use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::StreamSocket;
use crate::socket;
use crate::transport::{Receiver, Sender};

/// The fewest bytes for which a receiver waits: less than a packet of the kernel's own (GRO).
const LEAST_AWAITED: usize = 32 << 10;
/// The most bytes for which it waits at a time. Meanwhile they are not there in the window.
const MOST_AWAITED: usize = 128 << 10;
/// The longest wait for them. After it, what has come is taken.
const AWAITED_FOR: Duration = Duration::from_millis(20);

pub(super) struct PlainSender<'a>(pub(super) &'a StreamSocket);

impl PlainSender<'_> {
    fn hand_over(&self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        // Makes the system call directly: libc's `send` is a cancellation point, which costs two atomic operations in a
        // program with threads. That is one percent of a round trip of 5 us on one core.
        let taken = rustix::net::send(&self.0.socket, bytes, SendFlags::NOSIGNAL | flags)?;
        // There is only one sender at a time, so that a load and a store suffice.
        self.0.sent.store(self.0.sent.load(Ordering::Relaxed) + taken as u64, Ordering::Relaxed);
        Ok(taken)
    }
}

impl Sender for PlainSender<'_> {
    fn send(&mut self, bytes: &[u8], _: u64) -> io::Result<usize> {
        self.hand_over(bytes, SendFlags::empty())
    }

    fn try_send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hand_over(bytes, SendFlags::DONTWAIT)
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.0.socket.set_write_timeout(Some(wait))
    }
}

pub(super) struct PlainReceiver<'a> {
    socket: &'a Socket,
    /// The number of bytes from which on the socket is readable (SO_RCVLOWAT, socket(7)).
    readable_from: usize,
}

impl<'a> PlainReceiver<'a> {
    pub(super) fn new(socket: &'a Socket) -> Self {
        PlainReceiver { socket, readable_from: 1 }
    }

    /// Makes the socket readable from this number of bytes on. One that does not take the option is readable from the first.
    fn be_readable_from(&mut self, bytes: usize) {
        if self.readable_from != bytes && set_low_water(self.socket, bytes).is_ok() {
            self.readable_from = bytes;
        }
    }

    /// Waits for this number of bytes, for a short time. Returns false if they have not come, or not so many.
    fn await_bytes(&mut self, bytes: usize) -> io::Result<bool> {
        self.be_readable_from(bytes);
        socket::wait(&mut [PollFd::new(self.socket, PollFlags::IN)], AWAITED_FOR)
    }
}

impl Receiver for PlainReceiver<'_> {
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // A call that waits would take what is there, and then wait for as many again.
        self.be_readable_from(1);
        receive(self.socket, into, RecvFlags::empty())
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive(self.socket, into, RecvFlags::DONTWAIT)
    }

    fn receive_at_least(&mut self, into: &mut [u8], least: usize) -> io::Result<usize> {
        let least = least.min(into.len()).min(MOST_AWAITED);
        if least < LEAST_AWAITED || !self.await_bytes(least)? {
            return self.receive(into);
        }
        match self.try_receive(into) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.receive(into),
            received => received,
        }
    }
}

impl Drop for PlainReceiver<'_> {
    fn drop(&mut self) {
        // Others may wait for the end of the stream.
        self.be_readable_from(1);
    }
}

/// Sets SO_RCVLOWAT. TCP wakes no thread before as many bytes have come, the buffer is full, or the stream has ended.
fn set_low_water(socket: &Socket, bytes: usize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let (value, length) = ((&raw const bytes).cast(), size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: `value` points to an int, which outlives the call, and `length` is its size.
    let rc =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, value, length) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives by a direct system call. libc's function is slower, because it is a cancellation point.
pub(crate) fn receive(socket: &Socket, into: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    let (_, got) = rustix::net::recv(socket, into, flags)?;
    Ok(got)
}
