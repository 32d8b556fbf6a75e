//! The loops that send and receive the traffic.

use std::io::{self, ErrorKind};

use landspeed_record::units::Bytes;
use landspeed_transport::{Flow, ZeroCopyCompletions};

use crate::Error;
use crate::buffer::PageBuffer;
use crate::workers::{WorkerContext, WorkerTask};

#[derive(Debug, Default)]
pub(crate) struct ZeroCopyResult {
    /// Results of the worker's zero-copy sends.
    pub(crate) completions: ZeroCopyCompletions,
    /// Bytes that the worker received by mapping.
    pub(crate) mapped: Bytes,
}

/// Returns a task that sends `size` bytes per call until it is stopped.
pub(crate) fn send(flow: &dyn Flow, size: usize) -> WorkerTask<'_, ZeroCopyResult> {
    Box::new(move |context, zero_copy| {
        let buffer = PageBuffer::new(size);
        let mut sender = flow.sender()?;
        if !context.begin() {
            return Ok(());
        }
        let mut total = 0;
        let result = loop {
            if context.stopped() {
                break Ok(());
            }
            match sender.send(&buffer, u64::MAX) {
                Ok(n) => {
                    total += n as u64;
                    context.tally.set(total);
                }
                Err(error) => {
                    if let Err(error) = context.judge("send on", error) {
                        break Err(error);
                    }
                }
            }
        };
        zero_copy.completions = sender.completions();
        result
    })
}

/// Returns a task that receives at most `size` bytes per call until it is stopped.
pub(crate) fn receive(flow: &dyn Flow, size: usize) -> WorkerTask<'_, ZeroCopyResult> {
    Box::new(move |context, zero_copy| {
        let whole = ReceiveLoop { flow, size, passed: |_, _| (), is_end: |_| false };
        zero_copy.mapped = whole.run(context)?;
        Ok(())
    })
}

/// The receive loop of all workloads. It is generic over the function that is called after each receive, so that an
/// empty function costs no time.
pub(crate) struct ReceiveLoop<'a, P> {
    pub(crate) flow: &'a dyn Flow,
    /// The most bytes to receive in one call.
    pub(crate) size: usize,
    /// The function called after each receive, with the bytes received before it and after it.
    pub(crate) passed: P,
    /// A function that returns true if the result of a call without data is the flow's expected end, and not an
    /// error.
    pub(crate) is_end: fn(&io::Result<usize>) -> bool,
}

impl<P: FnMut(u64, u64)> ReceiveLoop<'_, P> {
    /// Receives until stopped, or until the flow's end. Returns the bytes that were mapped, not copied.
    pub(crate) fn run(mut self, context: &WorkerContext<'_>) -> Result<Bytes, Error> {
        let mut buffer = PageBuffer::new(self.size);
        let mut receiver = self.flow.receiver()?;
        if !context.begin() {
            return Ok(Bytes(0));
        }
        let mut total = 0;
        while !context.stopped() {
            match receiver.receive(&mut buffer) {
                Ok(n) if n > 0 => {
                    let before = total;
                    total += n as u64;
                    (self.passed)(before, total);
                    context.tally.set(total);
                }
                ended if (self.is_end)(&ended) => break,
                ended => context.judge("receive on", why(ended))?,
            }
        }
        Ok(receiver.mapped())
    }
}

/// Returns the error of a receive that returned no data; the end of the stream becomes `UnexpectedEof`.
pub(crate) fn why(ended: io::Result<usize>) -> io::Error {
    ended.err().unwrap_or_else(|| ErrorKind::UnexpectedEof.into())
}
