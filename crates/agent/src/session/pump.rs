//! The two directions of an open session, the same at both ends.

use std::pin::Pin;
use std::time::Duration;

use landspeed_record::units::Nanos;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::Receiver;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::session::connection::{PARTING, WriteHalf, left};
use crate::session::frame::FrameError;
use crate::session::wire::{DONE, OutgoingFrame};

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    Done,
    /// The peer went away, or ended the session with a reason.
    Left(String),
    /// The peer broke the protocol or fell silent; it is sent the reason.
    Broken(String),
}

impl SessionEnd {
    /// Returns how the session ended, from the reason in the peer's last message.
    pub(crate) fn said(who: &str, why: &str) -> SessionEnd {
        if why == DONE {
            SessionEnd::Done
        } else {
            SessionEnd::Left(format!("{who} ended it: {}", crate::session::one_line(why)))
        }
    }

    /// Returns how the session ended if a frame could not be read.
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

/// Returns the interval of beats that keeps a lease of `lease` alive: four beats per lease.
pub(crate) fn beat_every(lease: Nanos) -> Duration {
    Duration::from(lease) / 4
}

/// Sends queued frames, and beats. Returns `Ok` once the last frame is sent or every sender is gone.
pub(crate) async fn pump(
    writer: &mut WriteHalf,
    queue: &mut Receiver<OutgoingFrame>,
    every: Duration,
) -> Result<(), FrameError> {
    let beat = OutgoingFrame::beat();
    let mut beats = interval(every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let frame = tokio::select! {
            biased;
            frame = queue.recv() => frame,
            _ = beats.tick() => Some(beat.clone()),
        };
        let Some(frame) = frame else { return Ok(()) };
        writer.write_all(&frame.bytes).await?;
        writer.flush().await?;
        if frame.last {
            return Ok(());
        }
    }
}

/// Waits until either direction ends. The incoming direction knows the reason: if the outgoing one ends first, because
/// we said goodbye or could not write, the peer has `patience` to give its own reason. The flag is true if the
/// outgoing direction is still running; one that has ended must not be polled again.
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
