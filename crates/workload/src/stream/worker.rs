//! The loops that the traffic comes from and goes to.

use std::io::{self, ErrorKind};

use landspeed_transport::{Flow, ZeroCopy};
use landspeed_units::Bytes;

use crate::buffer::Buffer;
use crate::crew::Task;

/// What a worker leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// What became of its zero-copy sends.
    pub(crate) zero_copy: ZeroCopy,
    /// Bytes that it received by mapping.
    pub(crate) mapped: Bytes,
}

/// Sends `size` bytes a call until stopped.
pub(crate) fn send(flow: &dyn Flow, size: usize) -> Task<'_, Left> {
    Box::new(move |station, left| {
        let buffer = Buffer::new(size);
        let mut sender = flow.sender()?;
        if !station.begin() {
            return Ok(());
        }
        let mut total = 0;
        let result = loop {
            if station.stopped() {
                break Ok(());
            }
            match sender.send(&buffer, u64::MAX) {
                Ok(n) => {
                    total += n as u64;
                    station.tally.set(total);
                }
                Err(error) => {
                    if let Err(error) = station.judge("send on", error) {
                        break Err(error);
                    }
                }
            }
        };
        left.zero_copy = sender.zero_copy();
        result
    })
}

/// Receives `size` bytes a call until stopped.
pub(crate) fn receive(flow: &dyn Flow, size: usize) -> Task<'_, Left> {
    Box::new(move |station, left| {
        let mut buffer = Buffer::new(size);
        let mut receiver = flow.receiver()?;
        if !station.begin() {
            return Ok(());
        }
        let mut total = 0;
        let result = loop {
            if station.stopped() {
                break Ok(());
            }
            match receiver.receive(&mut buffer) {
                Ok(n) if n > 0 => {
                    total += n as u64;
                    station.tally.set(total);
                }
                ended => {
                    if let Err(error) = station.judge("receive on", why(ended)) {
                        break Err(error);
                    }
                }
            }
        };
        left.mapped = receiver.mapped();
        result
    })
}

/// Why a receive brought nothing.
pub(crate) fn why(ended: io::Result<usize>) -> io::Error {
    ended.err().unwrap_or_else(|| ErrorKind::UnexpectedEof.into())
}
