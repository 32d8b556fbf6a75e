//! Sending and receiving by copying.

use std::io;
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use crate::noun::{Receiver, Sender};

/// Sends by copying.
pub(super) struct PlainSender<'a>(pub(super) &'a Socket);

impl Sender for PlainSender<'_> {
    fn send(&mut self, bytes: &[u8], _: u64) -> io::Result<usize> {
        // The system call itself: libc's `send` is a cancellation point, which costs two atomic operations wherever there are
        // threads, of which a round trip of 5 us on one core shows one percent.
        Ok(rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.0.set_write_timeout(Some(wait))
    }
}

/// Receives by copying.
pub(super) struct PlainReceiver<'a>(pub(super) &'a Socket);

impl Receiver for PlainReceiver<'_> {
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive(self.0, into, RecvFlags::empty())
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive(self.0, into, RecvFlags::DONTWAIT)
    }
}

/// By the system call itself, as sends are.
pub(crate) fn receive(socket: &Socket, into: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    let (_, got) = rustix::net::recv(socket, into, flags)?;
    Ok(got)
}
