//! The two calls that a round is made of.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;

use landspeed_record::Receiver;
use landspeed_transport::{self as transport, Flow};
use rustix::net::{RecvFlags, recv};

use crate::Error;
use crate::buffer::Buffer;
use crate::crew::Station;
use crate::stream::why;

/// How many empty-handed looks a spinning receiver takes before it sees whether it shall stop.
const LOOKS: u32 = 256;

/// One end of a ping-pong.
pub(super) struct Exchange<'a> {
    station: &'a Station<'a>,
    sender: Box<dyn transport::Sender + 'a>,
    waiter: Waiter<'a>,
    buffer: Buffer,
}

enum Waiter<'a> {
    /// Sleeps, or polls, in the call.
    Call(Box<dyn transport::Receiver + 'a>),
    /// Never sleeps.
    Spin(BorrowedFd<'a>),
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        flow: &'a dyn Flow,
        station: &'a Station<'a>,
        (receiver, largest): (Receiver, usize),
    ) -> Result<Self, Error> {
        let waiter = match receiver {
            Receiver::Blocking | Receiver::BusyPoll => Waiter::Call(flow.receiver()?),
            Receiver::Spinning => Waiter::Spin(flow.socket()),
        };
        Ok(Exchange { station, sender: flow.sender()?, waiter, buffer: Buffer::new(largest) })
    }

    /// Sends a message of `size`; false when the worker shall stop.
    pub(super) fn send(&mut self, size: usize) -> Result<bool, Error> {
        let mut sent = 0;
        while sent < size {
            match self.sender.send(&self.buffer[sent..size]) {
                Ok(n) => sent += n,
                Err(error) => self.station.judge("send on", error)?,
            }
            if self.station.stopped() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Receives one message, whose size `size` tells anew after each call; `None` when the worker shall
    /// stop. Only one message is ever under way, so no call can take bytes of the next.
    pub(super) fn receive(&mut self, size: impl Fn() -> usize) -> Result<Option<usize>, Error> {
        let mut got = 0;
        loop {
            let taken = match &mut self.waiter {
                Waiter::Call(receiver) => receiver.receive(&mut self.buffer[got..]),
                Waiter::Spin(socket) => spin(*socket, &mut self.buffer[got..]),
            };
            match taken {
                Ok(n) if n > 0 => got += n,
                ended => self.station.judge("receive on", why(ended))?,
            }
            if self.station.stopped() {
                return Ok(None);
            }
            if got > 0 && got >= size() {
                return Ok(Some(got));
            }
        }
    }
}

/// Looks again and again; gives up after a while, so that the caller can look whether to stop.
fn spin(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    for _ in 0..LOOKS {
        match recv(socket, &mut *into, RecvFlags::DONTWAIT) {
            Ok((n, _)) => return Ok(n),
            Err(rustix::io::Errno::AGAIN) => std::hint::spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
    Err(ErrorKind::WouldBlock.into())
}
