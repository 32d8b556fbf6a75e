//! The sending end of a flow.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use landspeed_transport::{Flow, Sender};

use super::{RunClock, StaggeredFlow, StaggeredFlowResult};
use crate::Error;
use crate::buffer::PageBuffer;
use crate::workers::{WorkerContext, WorkerTask};

/// The longest time that a send call waits for buffer space before the sender checks if its time is over.
const LOOK: Duration = Duration::from_millis(5);

/// Returns a task that sends `size` bytes per call from the time at which the flow enters until it leaves, and then
/// resets the connection.
pub(super) fn send<'a>(
    flow: &'a dyn Flow,
    planned: &'a StaggeredFlow,
    clock: &'a RunClock,
    size: usize,
) -> WorkerTask<'a, StaggeredFlowResult> {
    Box::new(move |context, result| {
        let buffer = PageBuffer::new(size);
        let mut sender = flow.sender()?;
        // Without a limit, a call that waits for room would overrun the flow's time, by seconds on a slow path.
        let refused = |error| Error::refused("limit the waits of", "a flow", error);
        sender.give_up_after(LOOK).map_err(refused)?;
        if !context.begin() {
            return Ok(());
        }
        if context.sleep_until(clock.at(planned.enters_ns)) {
            let total = planned.data_bytes.map_or(u64::MAX, |data| data.0);
            let sending = SendLoop { flow, context, until: clock.at(planned.leaves_ns), total };
            result.took = sending.run(&buffer, sender.as_mut())?;
            result.sent = context.tally.get();
            result.completions = sender.completions();
            flow.abort().map_err(|error| Error::refused("reset", "a flow", error))?;
        }
        context.rest();
        Ok(())
    })
}

/// The loop of a worker that sends a flow from its entry to its end.
struct SendLoop<'a> {
    flow: &'a dyn Flow,
    context: &'a WorkerContext<'a>,
    until: Instant,
    total: u64,
}

impl SendLoop<'_> {
    /// Sends until `total` bytes are sent and acknowledged, and returns the time that this took; `None` if `until` is
    /// reached first.
    fn run(&self, buffer: &PageBuffer, sender: &mut dyn Sender) -> Result<Option<Nanos>, Error> {
        let entered = Instant::now();
        let before = self.acked()?;
        let mut sent = 0;
        while sent < self.total {
            if self.is_over() {
                return Ok(None);
            }
            let rest = (self.total - sent).min(buffer.len() as u64);
            match sender.send(&buffer[..rest as usize], 1) {
                Ok(n) => {
                    sent += n as u64;
                    self.context.tally.set(sent);
                }
                Err(error) => self.context.judge("send on", error)?,
            }
        }
        let is_acked = self.await_acknowledgement(before + sent)?;
        Ok(is_acked.then(|| entered.elapsed().into()))
    }

    fn is_over(&self) -> bool {
        self.context.stopped() || Instant::now() >= self.until
    }

    /// Waits until the peer has acknowledged `all` bytes. Returns false if `until` is reached first. It checks 32
    /// times a round trip, which limits the precision of the flow's duration.
    fn await_acknowledgement(&self, all: u64) -> Result<bool, Error> {
        loop {
            let progress = self.progress()?;
            if !progress.outstanding && progress.acked.0 >= all {
                return Ok(true);
            }
            if !progress.outstanding {
                // A connection that was reset has nothing outstanding either.
                self.context.judge("send on", ErrorKind::ConnectionReset.into())?;
            }
            if self.is_over() {
                return Ok(false);
            }
            let pause = Duration::from(progress.rtt) / 32;
            let pause = pause.clamp(Duration::from_micros(100), Duration::from_millis(10));
            self.context.sleep_until((Instant::now() + pause).min(self.until));
        }
    }

    fn acked(&self) -> Result<u64, Error> {
        self.progress().map(|progress| progress.acked.0)
    }

    fn progress(&self) -> Result<landspeed_transport::AckProgress, Error> {
        self.flow.progress().map_err(|error| Error::refused("ask the kernel about", "a flow", error))
    }
}
