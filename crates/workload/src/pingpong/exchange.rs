//! The send and receive calls of a ping-pong's rounds.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use landspeed_transport::{self as transport, Delivery, Flow};

use super::PingPongPlan;
use crate::Error;
use crate::buffer::PageBuffer;
use crate::stream::why;
use crate::workers::WorkerContext;

/// Number of consecutive polls without data after which a spinning receiver checks if it must stop.
const LOOKS: u32 = 256;

pub(super) struct Exchange<'a> {
    context: &'a WorkerContext<'a>,
    sender: Box<dyn transport::Sender + 'a>,
    receiver: Box<dyn transport::Receiver + 'a>,
    /// True if the receiver polls and never sleeps.
    spins: bool,
    /// True if one receive returns a whole message, as with datagrams.
    whole: bool,
    buffer: PageBuffer,
}

/// The result of waiting for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiveOutcome {
    Message(usize),
    /// No message arrived in time.
    Nothing,
    Stop,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        flow: &'a dyn Flow,
        context: &'a WorkerContext<'a>,
        plan: &PingPongPlan,
    ) -> Result<Self, Error> {
        Ok(Exchange {
            context,
            sender: flow.sender()?,
            receiver: flow.receiver()?,
            spins: plan.spins,
            whole: plan.delivery == Delivery::Datagrams,
            buffer: PageBuffer::new(plan.largest()),
        })
    }

    /// Sends a message of `size`. Returns false if the worker must stop.
    pub(super) fn send(&mut self, size: usize) -> Result<bool, Error> {
        let mut sent = 0;
        while sent < size {
            match self.sender.send(&self.buffer[sent..size], 1) {
                Ok(n) => sent += n,
                Err(error) => self.context.judge("send on", error)?,
            }
            if self.context.stopped() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Receives one message. `size` returns the message's size, and is called after each receive. No receive can
    /// return bytes of the next message, because only one message is on its way at a time.
    pub(super) fn receive(&mut self, size: impl Fn() -> usize) -> Result<ReceiveOutcome, Error> {
        self.receive_within(None, size)
    }

    /// Receives the answer to the message sent last, if it arrives within `patience`. A late answer to an earlier
    /// message is dropped.
    pub(super) fn answer(
        &mut self,
        size: usize,
        patience: Option<Duration>,
    ) -> Result<ReceiveOutcome, Error> {
        loop {
            let received = self.receive_within(patience, || size)?;
            if !matches!(received, ReceiveOutcome::Message(_)) || self.receiver.is_answer() {
                return Ok(received);
            }
        }
    }

    fn receive_within(
        &mut self,
        patience: Option<Duration>,
        size: impl Fn() -> usize,
    ) -> Result<ReceiveOutcome, Error> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        let mut got = 0;
        loop {
            let into = &mut self.buffer[got..];
            let taken =
                if self.spins { spin(self.receiver.as_mut(), into) } else { self.receiver.receive(into) };
            match taken {
                Ok(n) if n > 0 => got += n,
                ended => self.context.judge("receive on", why(ended))?,
            }
            if self.context.stopped() {
                return Ok(ReceiveOutcome::Stop);
            }
            if got > 0 && (self.whole || got >= size()) {
                return Ok(ReceiveOutcome::Message(got));
            }
            if got == 0 && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(ReceiveOutcome::Nothing);
            }
        }
    }
}

/// Polls the receiver [`LOOKS`] times at most, so that the caller can check if it must stop.
fn spin(receiver: &mut dyn transport::Receiver, into: &mut [u8]) -> io::Result<usize> {
    for _ in 0..LOOKS {
        match receiver.try_receive(into) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            other => return other,
        }
    }
    Err(ErrorKind::WouldBlock.into())
}
