//! The two directions of an open session, which work alike at both ends.

use std::pin::Pin;
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::Receiver;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::session::connection::{PARTING, WriteHalf, left};
use crate::session::frame::FrameError;
use crate::session::relay::{RelayFrame, RelayMeter};
use crate::session::wire::{DONE, OutgoingFrame};

/// The way in which a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    Done,
    /// The peer went away, or ended the session with a reason.
    Left(String),
    /// The peer broke the protocol or fell silent. The reason is sent to the peer.
    Broken(String),
}

impl SessionEnd {
    /// Returns the end of a session whose last message, from the end called `who`, had the reason `why`.
    pub(crate) fn said(who: &str, why: &str) -> SessionEnd {
        if why == DONE {
            SessionEnd::Done
        } else {
            SessionEnd::Left(format!("{who} ended it: {}", crate::session::one_line(why)))
        }
    }

    /// Returns the end of a session in which a frame could not be read.
    pub(crate) fn failed(error: &FrameError) -> SessionEnd {
        let why = error.to_string();
        if left(error) { SessionEnd::Left(why) } else { SessionEnd::Broken(why) }
    }

    pub(crate) fn why(&self) -> &str {
        match self {
            SessionEnd::Done => DONE,
            SessionEnd::Left(why) | SessionEnd::Broken(why) => why,
        }
    }
}

/// The longest interval between beats. Firewalls forget a connection on which nothing passes for minutes.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// Returns the interval between beats for a peer whose lease is `lease`: a quarter of it, or less.
pub(crate) fn beat_every(lease: Nanos) -> Duration {
    (Duration::from(lease) / 4).min(LONGEST_INTERVAL)
}

/// Sends the frames of `queue`, a beat at each interval `every`, and between them the frames of `relayed`, which
/// `meter` counts. Returns `Ok` once the last frame is sent or every sender of the queue is gone.
pub(crate) async fn pump(
    writer: &mut WriteHalf,
    queue: &mut Receiver<OutgoingFrame>,
    relayed: &mut Receiver<RelayFrame>,
    every: Duration,
    meter: &RelayMeter,
) -> Result<(), FrameError> {
    let beat = OutgoingFrame::beat();
    let mut beats = interval(every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (frame, is_relayed) = tokio::select! {
            biased;
            frame = queue.recv() => (frame, false),
            _ = beats.tick() => (Some(beat.clone()), false),
            Some(frame) = relayed.recv() => (Some(OutgoingFrame::relayed(&frame)), true),
        };
        let Some(frame) = frame else { return Ok(()) };
        let begun = Instant::now();
        writer.write_all(&frame.bytes).await?;
        writer.flush().await?;
        if is_relayed {
            meter.handed(begun);
        }
        if frame.last {
            return Ok(());
        }
    }
}

/// Waits until one direction ends: `hear`, which receives, or `talk`, which sends. Returns how the session ended, and
/// true if `talk` is still running. If `talk` has ended, it must not be polled again. The result of `hear` is the
/// reason of the end. If `talk` ends first, the peer still has time to send its reason: `patience` after this end's
/// goodbye, [`PARTING`] after a failed write.
pub(crate) async fn first_end(
    hear: Pin<&mut impl Future<Output = SessionEnd>>,
    talk: Pin<&mut impl Future<Output = Result<(), FrameError>>>,
    patience: Duration,
) -> (SessionEnd, bool) {
    let mut hear = hear;
    let sent = tokio::select! {
        end = hear.as_mut() => return (end, true),
        sent = talk => sent,
    };
    let end = match sent {
        Ok(()) => match timeout(patience, hear).await {
            Ok(SessionEnd::Broken(why)) => SessionEnd::Left(why),
            _ => SessionEnd::Done,
        },
        Err(error) => timeout(PARTING, hear).await.unwrap_or_else(|_| SessionEnd::Left(error.to_string())),
    };
    (end, false)
}
