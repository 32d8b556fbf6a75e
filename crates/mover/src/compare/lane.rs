//! The flows of a comparison. Each carries one question at a time, and none is opened again.
//!
//! Both ends give up after the same silence. An end that is alive is never silent for as long: it sends keep-alives
//! while it reads a file or waits for the walk, and receives at the same time.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use landspeed_transport::{CancelFlag, Error as TransportError, Flow, Patience};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::first_error::FirstError;
use crate::link::{BEATS, Flows, Opening, Pulse, beat_until_end, drive};
use crate::wire::{FrameReader, FrameWriter, encode};
use crate::{CopyProgress, Error};

/// The interval at which an end checks whether a comparison is over.
const LOOK: Duration = Duration::from_millis(10);

/// All flows of a comparison.
pub(super) struct Lanes {
    pub(super) flows: Vec<LaneFlow>,
    /// The silence of the other end after which this end gives up.
    give_up_after: Duration,
}

/// A flow of a comparison.
pub(super) struct LaneFlow {
    flow: Box<dyn Flow>,
    /// Always zero: a comparison repeats no message, so it need not say which it has taken.
    taken: AtomicU64,
    pulse: Pulse,
    /// The interval of this end's keep-alives.
    beat: Duration,
}

/// A flow, for the thread that uses it. Messages of the other end are `M`.
pub(super) struct Lane<'a, M> {
    writer: &'a FrameWriter<'a>,
    heard: Receiver<Result<M, Error>>,
}

impl<M> Lane<'_, M> {
    pub(super) fn send(&self, message: &impl Serialize) -> Result<(), Error> {
        self.writer.send(&encode(message), &[])
    }

    /// Waits for the next message; `None` if the other end has ended the flow.
    pub(super) fn next(&self) -> Result<Option<M>, Error> {
        self.heard.recv().ok().transpose()
    }
}

impl LaneFlow {
    /// Lets `work` use the flow, then ends the flow. A separate thread receives meanwhile, because a flow on which
    /// `work` cannot send must be noticed too.
    pub(super) fn carry<M: DeserializeOwned + Send>(
        &self,
        work: impl FnOnce(&Lane<'_, M>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let writer = FrameWriter::new(self.flow.as_ref(), &self.taken);
        // Most questions have one answer. Where there are more, the other end waits until they are taken.
        let (messages, heard) = sync_channel(1);
        let (over, asked) = sync_channel(1);
        std::thread::scope(|scope| {
            let writer = &writer;
            scope.spawn(move || beat_until_end(writer, self.beat, &asked));
            scope.spawn(move || {
                if let Err(error) = self.hear(&messages) {
                    // Once the work is done, no one waits for it.
                    let _ = messages.send(Err(error));
                }
            });
            let worked = work(&Lane { writer, heard });
            drop(over);
            // The thread that hears waits for the end of the flow.
            drop(self.flow.abort());
            worked
        })
    }

    /// Hands over the messages of the other end until the flow ends, or no one takes them any more.
    fn hear<M: DeserializeOwned>(&self, messages: &SyncSender<Result<M, Error>>) -> Result<(), Error> {
        let mut reader = FrameReader::new(self.flow.receiver()?, &self.pulse);
        while let Some(frame) = reader.next::<M>()? {
            // A frame without a message is a keep-alive.
            if let Some(message) = frame.message
                && messages.send(Ok(message)).is_err()
            {
                break;
            }
        }
        Ok(())
    }
}

impl Lanes {
    /// Opens all flows once, or accepts them. A setting that differs from the requested one changes no answer, except
    /// the congestion control: with another one, no question is asked.
    pub(super) fn open(flows: Flows, progress: &CopyProgress, cancel: &CancelFlag) -> Result<Lanes, Error> {
        let Flows { count, opening, patience, give_up_after } = flows;
        let until = Instant::now() + patience;
        let lane =
            |flow| LaneFlow { flow, taken: AtomicU64::new(0), pulse: Pulse::new(), beat: patience / BEATS };
        let all: Result<Vec<LaneFlow>, TransportError> = match opening {
            Opening::Connect(caller) => {
                let left = || until.saturating_duration_since(Instant::now());
                (0..count).map(|number| caller.open(number, left(), cancel).map(lane)).collect()
            }
            Opening::Accept(mut listener) => {
                (0..count).map(|_| listener.accept(&Patience { until, cancel }).map(lane)).collect()
            }
        };
        let flows = all.map_err(|error| match error {
            TransportError::Cancelled => Error::Cancelled,
            other => other.into(),
        })?;
        for lane in &flows {
            progress.has_opened(lane.flow.as_ref())?;
        }
        Ok(Lanes { flows, give_up_after })
    }

    /// Waits until `is_over`. Aborts all flows after an error, after a request to cancel, and once a flow has been
    /// silent for too long, so that no thread waits for the other end.
    pub(super) fn watch(&self, cancel: &CancelFlag, first: &FirstError, is_over: &dyn Fn() -> bool) {
        while !is_over() {
            if cancel.is_cancelled() {
                first.keep(Error::Cancelled);
            }
            let longest = self.flows.iter().map(|lane| lane.pulse.silence()).max().unwrap_or_default();
            if longest > self.give_up_after {
                first.keep(Error::Unheard { waited: longest.into() });
            }
            self.flows.iter().for_each(|lane| drive(lane.flow.as_ref()));
            if first.is_there() {
                // A flow that has ended already cannot be aborted.
                self.flows.iter().for_each(|lane| drop(lane.flow.abort()));
            }
            std::thread::sleep(LOOK);
        }
    }
}
