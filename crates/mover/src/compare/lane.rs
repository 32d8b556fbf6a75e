//! The flows of a comparison. Each carries one question at a time, and none is opened again.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use landspeed_transport::{CancelFlag, Error as TransportError, Flow, Patience};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::first_error::FirstError;
use crate::link::{Flows, Opening, Pulse};
use crate::wire::{FrameReader, FrameWriter, encode};

/// The time between two looks at the request to cancel.
const LOOK: Duration = Duration::from_millis(10);

/// A flow of a comparison.
pub(super) struct LaneFlow {
    flow: Box<dyn Flow>,
    /// Always zero: a comparison repeats no message, so it need not say which it has taken.
    taken: AtomicU64,
    pulse: Pulse,
}

impl LaneFlow {
    fn of(flow: Box<dyn Flow>) -> Self {
        LaneFlow { flow, taken: AtomicU64::new(0), pulse: Pulse::new() }
    }

    /// Returns both halves of the flow.
    pub(super) fn lane(&self) -> Result<Lane<'_>, Error> {
        let writer = FrameWriter::new(self.flow.as_ref(), &self.taken);
        Ok(Lane { writer, reader: FrameReader::new(self.flow.receiver()?, &self.pulse) })
    }
}

/// Both halves of a flow, for the thread that uses it.
pub(super) struct Lane<'a> {
    writer: FrameWriter<'a>,
    reader: FrameReader<'a>,
}

impl Lane<'_> {
    pub(super) fn send(&self, message: &impl Serialize) -> Result<(), Error> {
        self.writer.send(&encode(message), &[])
    }

    /// Waits for the next message; `None` if the other end has ended the flow.
    pub(super) fn next<M: DeserializeOwned>(&mut self) -> Result<Option<M>, Error> {
        let Some(frame) = self.reader.next::<M>()? else { return Ok(None) };
        frame.message.map(Some).ok_or(Error::Protocol("it sends a frame without a message"))
    }
}

/// Opens all flows once, or accepts them.
pub(super) fn opened(flows: Flows, cancel: &CancelFlag) -> Result<Vec<LaneFlow>, Error> {
    let Flows { count, opening, patience, .. } = flows;
    let until = Instant::now() + patience;
    let all: Result<Vec<LaneFlow>, TransportError> = match opening {
        Opening::Connect(caller) => {
            let left = || until.saturating_duration_since(Instant::now());
            (0..count).map(|number| caller.open(number, left(), cancel).map(LaneFlow::of)).collect()
        }
        Opening::Accept(mut listener) => {
            (0..count).map(|_| listener.accept(&Patience { until, cancel }).map(LaneFlow::of)).collect()
        }
    };
    all.map_err(|error| match error {
        TransportError::Cancelled => Error::Cancelled,
        other => other.into(),
    })
}

/// Waits until `is_over`. Aborts all flows after an error or a request to cancel, so that no thread waits for the other end.
pub(super) fn watch(flows: &[LaneFlow], cancel: &CancelFlag, first: &FirstError, is_over: &dyn Fn() -> bool) {
    while !is_over() {
        if cancel.is_cancelled() {
            first.keep(Error::Cancelled);
        }
        if first.is_there() {
            // A flow that has ended already cannot be aborted.
            flows.iter().for_each(|lane| drop(lane.flow.abort()));
        }
        std::thread::sleep(LOOK);
    }
}
