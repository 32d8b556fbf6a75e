//! The two directions of an open session, the same at both ends.

use std::pin::Pin;
use std::time::Duration;

use landspeed_units::Nanos;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::Receiver;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::frame::FrameError;
use crate::link::{PARTING, Writing, left};
use crate::wire::{DONE, Parcel};

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Over {
    Done,
    /// The peer went away, or ended the session with a reason.
    Left(String),
    /// The peer broke the protocol or fell silent; it is sent the reason.
    Broken(String),
}

impl Over {
    /// Makes the end from the peer's last words.
    pub(crate) fn said(who: &str, why: &str) -> Over {
        if why == DONE { Over::Done } else { Over::Left(format!("{who} ended it: {}", crate::one_line(why))) }
    }

    /// Makes the end from the error of a frame that did not come.
    pub(crate) fn failed(error: &FrameError) -> Over {
        let why = error.to_string();
        if left(error) { Over::Left(why) } else { Over::Broken(why) }
    }

    pub(crate) fn why(&self) -> &str {
        match self {
            Over::Done => DONE,
            Over::Left(why) | Over::Broken(why) => why,
        }
    }
}

/// Returns the interval of beats that keeps a lease of `lease` alive: four beats per lease.
pub(crate) fn beat_every(lease: Nanos) -> Duration {
    Duration::from(lease) / 4
}

/// Sends queued parcels, and beats. Returns `Ok` once the last parcel is sent or every sender is gone.
pub(crate) async fn pump(
    writer: &mut Writing,
    queue: &mut Receiver<Parcel>,
    every: Duration,
) -> Result<(), FrameError> {
    let beat = Parcel::beat();
    let mut beats = interval(every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let parcel = tokio::select! {
            biased;
            parcel = queue.recv() => parcel,
            _ = beats.tick() => Some(beat.clone()),
        };
        let Some(parcel) = parcel else { return Ok(()) };
        writer.write_all(&parcel.bytes).await?;
        writer.flush().await?;
        if parcel.last {
            return Ok(());
        }
    }
}

/// Waits until either direction ends. The incoming direction knows the reason: if the outgoing one ends first, because
/// we said goodbye or could not write, the peer has `patience` to give its own reason. The flag is true if the
/// outgoing direction is still running; one that has ended must not be polled again.
pub(crate) async fn first_over(
    hear: Pin<&mut impl Future<Output = Over>>,
    talk: Pin<&mut impl Future<Output = Result<(), FrameError>>>,
    patience: Duration,
) -> (Over, bool) {
    let mut hear = hear;
    let sent = tokio::select! {
        over = hear.as_mut() => return (over, true),
        sent = talk => sent,
    };
    let over = match sent {
        Ok(()) => match timeout(patience, hear).await {
            Ok(Over::Broken(why)) => Over::Left(why),
            _ => Over::Done,
        },
        Err(error) => timeout(PARTING, hear).await.unwrap_or_else(|_| Over::Left(error.to_string())),
    };
    (over, false)
}
