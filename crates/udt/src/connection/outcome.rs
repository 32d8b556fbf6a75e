//! The results of a connection for its caller: events, the reason of its end, and the datagrams to send.

use thiserror::Error;

/// The reason why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// This end closed the connection, and everything that it wrote has arrived.
    #[error("the connection was closed")]
    Closed,
    /// This end aborted the connection.
    #[error("the connection was aborted")]
    Aborted,
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    PeerClosed,
    /// No listener answered the connector.
    #[error("no listener answered")]
    NoAnswer,
    /// The listener refused, with libudt's code.
    #[error("the listener refused the connection (code {0})")]
    Refused(u32),
    /// The peer was silent for too long.
    #[error("the peer fell silent")]
    Silent,
    /// The written data did not arrive within the time that a close waits.
    #[error("the peer did not receive all data in time")]
    Linger,
}

/// The reason why nothing was written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IoError {
    /// The handshake is not complete.
    #[error("the connection is not open yet")]
    NotOpen,
    /// The connection is closed, or is being closed.
    #[error("the connection is closed")]
    Closed,
    /// There is no room now; [`UdtEvent::Writable`] follows when there is.
    #[error("the send buffer is full")]
    Full,
}

/// An event of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UdtEvent {
    /// The handshake is complete.
    Connected,
    /// There may be something to read.
    Readable,
    /// There is room again after a write that found none.
    Writable,
    /// The peer could not process what it received; the code is the peer's.
    PeerError(u32),
    /// The connection has ended. What has arrived before can still be read.
    Closed(CloseReason),
}

/// Datagrams to send to the peer: pieces of `segment` bytes, the last one possibly shorter (as UDP_SEGMENT takes
/// them).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransmitBatch<'a> {
    /// The datagrams, one after the other.
    pub bytes: &'a [u8],
    /// The length of each datagram, in bytes.
    pub segment: usize,
}

impl<'a> TransmitBatch<'a> {
    /// Iterates over the datagrams.
    pub fn datagrams(self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes.chunks(self.segment)
    }
}
