//! What a connection reports to its caller: events, the reason of its end, and the datagrams to send.

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
    /// The listener refused the connection. Holds libudt's code for the reason.
    #[error("the listener refused the connection (code {0})")]
    Refused(u32),
    /// The peer was silent for too long.
    #[error("the peer fell silent")]
    Silent,
    /// This end closed the connection, and the written data did not arrive within
    /// [`UdtConfig::linger`](super::UdtConfig::linger).
    #[error("the peer did not receive all data in time")]
    Linger,
}

/// The reason why a read or a write failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IoError {
    /// The handshake is not complete.
    #[error("the connection is not open yet")]
    NotOpen,
    /// The connection is closed, or is being closed.
    #[error("the connection is closed")]
    Closed,
    /// The send buffer has no room now. [`UdtEvent::Writable`] follows once it has room.
    #[error("the send buffer is full")]
    Full,
}

/// An event of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UdtEvent {
    /// The handshake is complete.
    Connected,
    /// There may be new data to read.
    Readable,
    /// There is room for data again after a write that did not accept all of its data.
    Writable,
    /// The peer could not process a packet that it received. Holds the peer's code for the reason.
    PeerError(u32),
    /// The connection has ended. Data that arrived before can still be read.
    Closed(CloseReason),
}

/// Datagrams to send to the peer. Each has `segment` bytes, except that the last one may be shorter (as UDP_SEGMENT
/// takes them).
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
