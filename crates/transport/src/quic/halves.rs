//! The sending and the receiving half of a flow.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use super::connection::{FlowHalf, SharedConnection};
use crate::transport::{Receiver, Sender};

/// The longest time that a call waits. After it, the caller can check if it must stop.
const LOOK: Duration = Duration::from_millis(50);

pub(super) struct QuicSender<'a> {
    shared: &'a SharedConnection,
    gives_up_after: Option<Duration>,
}

impl<'a> QuicSender<'a> {
    pub(super) fn new(shared: &'a SharedConnection) -> Self {
        QuicSender { shared, gives_up_after: None }
    }
}

impl Sender for QuicSender<'_> {
    /// Writes a part of `message`, and sends it before the call returns, because there is no thread that would send
    /// it later.
    fn send(&mut self, message: &[u8], _: u64) -> io::Result<usize> {
        if message.is_empty() {
            return Ok(0);
        }
        let begun = Instant::now();
        let shared = self.shared;
        let until = begun + self.gives_up_after.unwrap_or(LOOK);
        let mut state = shared.lock();
        let taken = loop {
            match state.driver.write(message)? {
                0 if Instant::now() >= until => return Err(ErrorKind::WouldBlock.into()),
                0 => state = shared.advance(state, FlowHalf::Send, until)?,
                taken => break taken,
            }
        };
        // Transmits before it processes acknowledgements, because quinn does not increase the congestion window of a
        // sender that has nothing to send.
        state.driver.transmit(Instant::now());
        state.driver.drive(Instant::now());
        while !state.driver.is_clear() && state.driver.broken().is_none() {
            let now = Instant::now();
            if self.gives_up_after.is_some() && now >= until {
                break;
            }
            state = shared.advance(state, FlowHalf::Send, until.max(now + LOOK))?;
        }
        Ok(taken)
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.gives_up_after = Some(wait);
        Ok(())
    }
}

pub(super) struct QuicReceiver<'a>(pub(super) &'a SharedConnection);

impl Receiver for QuicReceiver<'_> {
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let shared = self.0;
        let mut state = shared.lock();
        if let Some(taken) = shared.take(&mut state, into) {
            return taken;
        }
        let until = Instant::now() + LOOK;
        loop {
            state = shared.advance(state, FlowHalf::Receive, until)?;
            if let Some(taken) = shared.take(&mut state, into) {
                return taken;
            }
            if Instant::now() >= until {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let shared = self.0;
        let taken = shared.take(&mut shared.lock(), into);
        let taken = taken.or_else(|| shared.take(&mut shared.look(), into));
        taken.unwrap_or_else(|| Err(ErrorKind::WouldBlock.into()))
    }
}

impl Drop for QuicReceiver<'_> {
    /// Acknowledges everything received, because there may be no later call that does so.
    fn drop(&mut self) {
        self.0.lock().driver.acknowledge();
    }
}
