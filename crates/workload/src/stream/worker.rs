//! The loops that send and receive the traffic.

use std::io::{self, ErrorKind};

use landspeed_transport::{Flow, ZeroCopyCompletions};
use landspeed_units::Bytes;

use crate::Error;
use crate::buffer::Buffer;
use crate::workers::{Station, Task};

#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Results of its zero-copy sends.
    pub(crate) completions: ZeroCopyCompletions,
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
        left.completions = sender.completions();
        result
    })
}

/// Receives `size` bytes a call until stopped.
pub(crate) fn receive(flow: &dyn Flow, size: usize) -> Task<'_, Left> {
    Box::new(move |station, left| {
        let whole = Receiving { flow, size, passed: |_, _| (), is_end: |_| false };
        left.mapped = whole.run(station)?;
        Ok(())
    })
}

/// The loop of every receiving end. Generic, so that workloads without additions pay nothing for them.
pub(crate) struct Receiving<'a, P> {
    pub(crate) flow: &'a dyn Flow,
    /// Bytes requested in a call.
    pub(crate) size: usize,
    /// Called after each receive with the bytes received before it and after it.
    pub(crate) passed: P,
    /// Returns true if a call without data is the flow's end, and not an error.
    pub(crate) is_end: fn(&io::Result<usize>) -> bool,
}

impl<P: FnMut(u64, u64)> Receiving<'_, P> {
    /// Receives until stopped, or until the flow's end. Returns the bytes that were mapped, not copied.
    pub(crate) fn run(mut self, station: &Station<'_>) -> Result<Bytes, Error> {
        let mut buffer = Buffer::new(self.size);
        let mut receiver = self.flow.receiver()?;
        if !station.begin() {
            return Ok(Bytes(0));
        }
        let mut total = 0;
        while !station.stopped() {
            match receiver.receive(&mut buffer) {
                Ok(n) if n > 0 => {
                    let before = total;
                    total += n as u64;
                    (self.passed)(before, total);
                    station.tally.set(total);
                }
                ended if (self.is_end)(&ended) => break,
                ended => station.judge("receive on", why(ended))?,
            }
        }
        Ok(receiver.mapped())
    }
}

/// Returns why a receive brought no data.
pub(crate) fn why(ended: io::Result<usize>) -> io::Error {
    ended.err().unwrap_or_else(|| ErrorKind::UnexpectedEof.into())
}
