//! Carries messages on one flow of a link.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use landspeed_record::CopyStage;
use landspeed_transport::Flow;
use serde::de::DeserializeOwned;

use super::{Link, OpenFlow};
use crate::stage::{self, Pause, StageTotals};
use crate::wire::{FrameReader, FrameWriter};
use crate::{CopyProgress, Error};

/// The number of messages after which an end says at once how many it has taken, so that the other end keeps few.
const SAY_AFTER: u32 = 256;

/// One end of a copy, as its links see it.
pub(crate) trait End: Sync {
    /// A message of this end while it is kept.
    type Kept: Clone + Send;
    /// A message of the other end.
    type Heard: DeserializeOwned;

    /// Sends the messages of a link from [`OpenFlow::next`] on, until the flow breaks or no message is left.
    fn send(&self, link: &Link<Self::Kept>, flow: &OpenFlow<'_>) -> Result<(), Error>;

    /// Takes a message of the other end. Returns false if it is the last one.
    fn take(&self, link: &Arc<Link<Self::Kept>>, message: Self::Heard, body: &[u8]) -> Result<bool, Error>;

    /// Wakes the thread that sends on a link, so that it sees that its flow is broken.
    fn wake(&self, link: &Link<Self::Kept>);

    /// Ends the copy because of an error.
    fn end(&self);

    /// Returns true if no message is to be sent any more, at the end or after an error.
    fn is_over(&self) -> bool;

    /// Returns true if this end has done all that it has to do, although the other end may not know.
    fn is_done(&self) -> bool;

    /// Returns the counts of the copy at this end.
    fn progress(&self) -> &CopyProgress;

    /// Returns the times to which the threads of this end add.
    fn stages(&self) -> &Arc<StageTotals>;
}

/// Carries messages over a flow, and sends a keep-alive each `beat`. Returns an error once the flow is broken, or if
/// the copy cannot continue. Returns `Ok` after the last message.
pub(super) fn carry<E: End>(
    link: &Arc<Link<E::Kept>>,
    flow: &dyn Flow,
    end: &E,
    beat: Duration,
) -> Result<(), Error> {
    let writer = FrameWriter::new(flow, &link.taken);
    let mut reader = FrameReader::new(flow.receiver()?, &link.pulse);
    writer.beat()?;
    let next = taken::<E::Heard>(&mut reader)?;
    link.outbox.forget(next)?;
    let open = OpenFlow { writer: &writer, next, is_broken: AtomicBool::new(false) };
    let (say, asked) = sync_channel(1);
    std::thread::scope(|scope| {
        let open = &open;
        let sender = scope.spawn(move || {
            let sent = end.send(link, open);
            if sent.is_err() {
                // The thread that hears waits for the end of the flow.
                drop(flow.abort());
            }
            sent
        });
        scope.spawn(move || beat_until_end(open.writer, beat, &asked));
        let heard = hear(link, &mut reader, end, &say);
        open.is_broken.store(true, Ordering::Release);
        drop(flow.abort());
        drop(say);
        end.wake(link);
        let sent = sender.join().expect("sending does not panic");
        heard.and(sent)
    })
}

/// Waits for the first frame, and returns how many messages the other end has taken on earlier flows.
fn taken<M: DeserializeOwned>(reader: &mut FrameReader<'_>) -> Result<u64, Error> {
    let frame = reader.next::<M>()?.ok_or_else(ended)?;
    match frame.message {
        None => Ok(frame.taken),
        Some(_) => Err(Error::Protocol("its first frame does not acknowledge messages")),
    }
}

/// Takes the messages of the other end until the flow is broken or the last one has come.
fn hear<E: End>(
    link: &Arc<Link<E::Kept>>,
    reader: &mut FrameReader<'_>,
    end: &E,
    say: &SyncSender<()>,
) -> Result<(), Error> {
    let mut unsaid = 0;
    let _life = end.stages().begin(CopyStage::Receive);
    loop {
        stage::enter(CopyStage::Receive);
        let frame = reader.next::<E::Heard>()?.ok_or_else(ended)?;
        stage::settle(Pause::Starved);
        link.outbox.forget(frame.taken)?;
        let Some(message) = frame.message else { continue };
        let goes_on = end.take(link, message, frame.body)?;
        stage::settle(Pause::Device);
        link.taken.fetch_add(1, Ordering::Release);
        if !goes_on {
            return Ok(());
        }
        unsaid += 1;
        if unsaid == SAY_AFTER {
            unsaid = 0;
            // If the channel is full, an acknowledgement is about to be sent.
            let _ = say.try_send(());
        }
    }
}

fn ended() -> Error {
    Error::Flow(ErrorKind::UnexpectedEof.into())
}

/// Sends keep-alives with acknowledgements, each `beat` and when asked. The thread that sends cannot do it, because it
/// may wait for a disk.
pub(crate) fn beat_until_end(writer: &FrameWriter<'_>, beat: Duration, asked: &Receiver<()>) {
    loop {
        match asked.recv_timeout(beat) {
            // If the flow is broken, the receiving thread reports it.
            Ok(()) | Err(RecvTimeoutError::Timeout) => drop(writer.beat()),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
