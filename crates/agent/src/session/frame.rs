//! Frames: a 4-byte big-endian length, then that many bytes of JSON or of relayed data.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::decode;
use landspeed_record::units::{Bytes, Nanos};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::session::relay::{RELAY_LIMIT, RelayFrame, relayed_length};
use crate::session::text::one_line;

/// Largest frame to an agent, and to either end before the handshake is done. A request with every knob of the table
/// is a few KiB.
pub(crate) const REQUEST_LIMIT: Bytes = Bytes::kib(256);

/// Largest frame to a controller. An outcome with its samples is tens to hundreds of KiB.
pub(crate) const REPLY_LIMIT: Bytes = Bytes::mib(16);

/// Largest number of bytes read from the stream in one step, so that a length claimed by a stranger reserves no more
/// than this.
const CHUNK: usize = 64 * 1024;

/// The reason why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer claims a longer frame than it may send.
    #[error("a frame of {} bytes is over the limit of {}", .0.0, .1.0)]
    TooLarge(Bytes, Bytes),
    /// The bytes are not a message that this version knows.
    #[error("a frame that is no message of this protocol: {0}")]
    Unknown(String),
    /// The stream begins with text: a program or a login shell printed into it.
    #[error("text ({0:?}...) where a frame belongs: start-up files there must print nothing")]
    Text(String),
    /// The stream ended between frames.
    #[error("the connection was closed without a goodbye")]
    Closed,
    /// The stream ended inside a frame.
    #[error("the connection was cut inside a frame")]
    Cut,
    /// A frame began and did not end in time.
    #[error("a frame did not end within {0}")]
    Endless(Nanos),
    /// No byte arrived for this long, in seconds.
    #[error("nothing was heard for {0:.1} s")]
    Silent(f64),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Encodes `value` as one frame. Fails with [`FrameError::TooLarge`] above `limit`.
pub(crate) fn encode(value: &impl Serialize, limit: Bytes) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, value).map_err(|e| FrameError::Unknown(e.to_string()))?;
    let length = frame.len() - 4;
    let claim = u32::try_from(length).ok().filter(|claim| u64::from(*claim) <= limit.0);
    let claim = claim.ok_or(FrameError::TooLarge(Bytes(length as u64), limit))?;
    frame[..4].copy_from_slice(&claim.to_be_bytes());
    Ok(frame)
}

/// The content of a frame in an open session.
pub(crate) enum SessionFrame<T> {
    Message(T),
    Relayed(RelayFrame),
}

/// A reader of frames from a stream. It rejects a frame that is longer than its limit.
pub(crate) struct FrameReader<R> {
    stream: R,
    /// Size of the largest frame that is accepted.
    pub(crate) limit: Bytes,
    /// Longest wait for any byte; `None` waits without limit.
    pub(crate) silence: Option<Duration>,
    /// True once the user wants to stop. Checked every [`LOOK`] while a frame is arriving.
    pub(crate) stop: Arc<AtomicBool>,
}

/// Longest time between the length and the end of a frame. The largest frame takes about this long at 2 Mb/s.
const LONGEST: Duration = Duration::from_secs(60);
/// Longest time that a frame may still take after the user wants to stop.
const LONGEST_STOPPED: Duration = Duration::from_secs(3);
/// Interval at which `stop` and the age of a frame are checked.
const LOOK: Duration = Duration::from_millis(100);

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(stream: R) -> Self {
        FrameReader { stream, limit: REQUEST_LIMIT, silence: None, stop: Arc::default() }
    }

    /// Reads the next message. Every byte that arrives counts as a sign of life, so that a peer that sends a large
    /// frame on a slow path is not considered dead. Not cancel-safe: the bytes of a partly read frame are lost.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<T, FrameError> {
        let head = self.head().await?;
        self.message(head).await
    }

    /// Reads the next message or relayed frame of an open session. Otherwise like [`FrameReader::next`].
    pub(crate) async fn next_in_session<T: DeserializeOwned>(
        &mut self,
    ) -> Result<SessionFrame<T>, FrameError> {
        let head = self.head().await?;
        match relayed_length(head).filter(|length| Bytes(u64::from(*length)) <= RELAY_LIMIT) {
            Some(length) => self.relayed(length).await.map(SessionFrame::Relayed),
            // A frame that is longer than any relayed frame is also longer than any message.
            None => self.message(head).await.map(SessionFrame::Message),
        }
    }

    /// Reads the length of a frame.
    async fn head(&mut self) -> Result<[u8; 4], FrameError> {
        let head = self.take(4).await.map_err(|(error, read)| if read == 0 { error } else { cut(error) })?;
        Ok([head[0], head[1], head[2], head[3]])
    }

    /// Reads the message whose length is `head`.
    async fn message<T: DeserializeOwned>(&mut self, head: [u8; 4]) -> Result<T, FrameError> {
        let length = u64::from(u32::from_be_bytes(head));
        if length > self.limit.0 {
            return Err(self.oversized(&head, length).await);
        }
        // The length is at most the limit, which is far below the address space.
        let body = self.body(length as usize, LONGEST).await?;
        decode(&body).map_err(|e| FrameError::Unknown(one_line(&e.to_string())))
    }

    /// Reads a relayed frame. A path often breaks within such a frame, so its time limit is the longest allowed
    /// silence.
    async fn relayed(&mut self, length: u32) -> Result<RelayFrame, FrameError> {
        let longest = self.silence.map_or(LONGEST, |silence| silence.max(LONGEST));
        let body = self.body(length as usize, longest).await?;
        RelayFrame::parse(&body).ok_or_else(|| FrameError::Unknown("nothing that is relayed".to_owned()))
    }

    /// Reads the body of a frame. It must arrive within `longest`.
    async fn body(&mut self, length: usize, longest: Duration) -> Result<Vec<u8>, FrameError> {
        let stop = Arc::clone(&self.stop);
        tokio::select! {
            body = self.take(length) => body.map_err(|(error, _)| cut(error)),
            took = overdue(&stop, longest) => Err(FrameError::Endless(took.into())),
        }
    }

    /// Reads `count` bytes. Returns the error together with the number of bytes that had arrived before it.
    async fn take(&mut self, count: usize) -> Result<Vec<u8>, (FrameError, usize)> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            bytes.reserve((count - bytes.len()).min(CHUNK));
            match self.some(&mut bytes, count).await {
                Ok(0) => return Err((FrameError::Closed, bytes.len())),
                Ok(_) => {}
                Err(error) => return Err((error, bytes.len())),
            }
        }
        Ok(bytes)
    }

    /// Reads once from the stream and appends the bytes to `bytes`, up to a length of `count`. Returns the number of
    /// bytes read; 0 at the end of the stream.
    async fn some(&mut self, bytes: &mut Vec<u8>, count: usize) -> Result<usize, FrameError> {
        let missing = (count - bytes.len()) as u64;
        let mut part = (&mut self.stream).take(missing);
        let read = part.read_buf(bytes);
        match self.silence {
            None => Ok(read.await?),
            Some(limit) => unless_silent(limit, read)
                .await
                .ok_or(FrameError::Silent(limit.as_secs_f64()))?
                .map_err(FrameError::Io),
        }
    }

    /// Returns the error for a frame whose length is over the limit. If the four bytes of the length are printable,
    /// they are more likely the greeting of a login shell than an attack.
    async fn oversized(&mut self, head: &[u8], length: u64) -> FrameError {
        if !head.iter().all(|byte| matches!(byte, b' '..=b'~')) {
            return FrameError::TooLarge(Bytes(length), self.limit);
        }
        let mut text = head.to_vec();
        // Reads some more of the text, so that a person can recognise it. If that fails, the four bytes must do.
        let _ = tokio::time::timeout(Duration::from_millis(200), self.some(&mut text, 40)).await;
        FrameError::Text(one_line(&String::from_utf8_lossy(&text)))
    }

    /// Reads and drops what still arrives, for at most `limit`. Closing a TCP socket with unread bytes would reset the
    /// connection, and the peer could lose our last message.
    pub(crate) async fn drain(&mut self, limit: Duration) {
        let mut sink = tokio::io::sink();
        let _ = tokio::time::timeout(limit, tokio::io::copy(&mut self.stream, &mut sink)).await;
    }
}

/// Number of timers into which the time limit of a silence is divided.
const PARTS: u32 = 20;

/// Returns the result of `read`, or `None` if it does not come within `limit`. When this machine is suspended, or
/// paused by its hypervisor, time passes in which no byte could arrive. Therefore a pause counts as at most one of
/// [`PARTS`] parts of `limit`.
async fn unless_silent<T>(limit: Duration, read: impl Future<Output = T>) -> Option<T> {
    let mut read = std::pin::pin!(read);
    for _ in 0..PARTS {
        if let Ok(read) = tokio::time::timeout(limit / PARTS, read.as_mut()).await {
            return Some(read);
        }
    }
    None
}

/// Waits until a frame that begins now has taken longer than `longest`, and returns the time that it has taken.
async fn overdue(stop: &AtomicBool, longest: Duration) -> Duration {
    let begun = Instant::now();
    let mut asked = None;
    loop {
        tokio::time::sleep(LOOK).await;
        if stop.load(Ordering::Relaxed) {
            asked.get_or_insert_with(Instant::now);
        }
        let stopped = asked.is_some_and(|asked| asked.elapsed() >= LONGEST_STOPPED);
        if stopped || begun.elapsed() >= longest {
            return begun.elapsed();
        }
    }
}

/// Converts the error for an end of the stream into the one for an end inside a frame, [`FrameError::Cut`].
fn cut(error: FrameError) -> FrameError {
    if matches!(error, FrameError::Closed) { FrameError::Cut } else { error }
}

#[cfg(test)]
mod tests;
