//! Sending and receiving with copies between program and kernel.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use super::StreamSocket;
use crate::transport::{Receiver, Sender};

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

pub(super) struct PlainReceiver<'a>(pub(super) &'a Socket);

impl Receiver for PlainReceiver<'_> {
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive(self.0, into, RecvFlags::empty())
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive(self.0, into, RecvFlags::DONTWAIT)
    }
}

/// Receives by a direct system call. libc's function is slower, because it is a cancellation point.
pub(crate) fn receive(socket: &Socket, into: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    let (_, got) = rustix::net::recv(socket, into, flags)?;
    Ok(got)
}
