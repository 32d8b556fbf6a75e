//! The receiving end of a flow.

use std::io::{self, ErrorKind};

use landspeed_transport::Flow;

use super::Left;
use crate::buffer::Buffer;
use crate::crew::Task;
use crate::stream::why;

/// Receives `size` bytes a call until the flow leaves.
pub(super) fn receive(flow: &dyn Flow, size: usize) -> Task<'_, Left> {
    Box::new(move |station, left| {
        let mut buffer = Buffer::new(size);
        let mut receiver = flow.receiver()?;
        if !station.begin() {
            return Ok(());
        }
        let mut total = 0;
        while !station.stopped() {
            match receiver.receive(&mut buffer) {
                Ok(n) if n > 0 => {
                    total += n as u64;
                    station.tally.set(total);
                }
                ended if has_left(&ended) => break,
                ended => station.judge("receive on", why(ended))?,
            }
        }
        left.mapped = receiver.mapped();
        station.rest();
        Ok(())
    })
}

/// Whether the flow has come to its end. That the peer itself is gone is seen on the signal flow.
pub(super) fn has_left(ended: &io::Result<usize>) -> bool {
    match ended {
        Ok(n) => *n == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}
