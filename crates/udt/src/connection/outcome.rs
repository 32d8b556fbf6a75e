//! What a connection tells its caller: what happened, why it ended, what to send.

use thiserror::Error;

/// Why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Reason {
    /// This end closed it, and all that it wrote has arrived.
    #[error("the connection was closed")]
    Closed,
    /// This end closed it at once.
    #[error("the connection was aborted")]
    Aborted,
    /// The peer closed it.
    #[error("the peer closed the connection")]
    PeerClosed,
    /// Nothing answered a connector.
    #[error("no listener answered")]
    NoAnswer,
    /// The listener refused, with libudt's code.
    #[error("the listener refused the connection (code {0})")]
    Refused(u32),
    /// Nothing was heard of the peer for too long.
    #[error("the peer fell silent")]
    Silent,
    /// What was written did not arrive within the time that a close waits.
    #[error("the peer did not receive all data in time")]
    Linger,
    /// A message that the receive buffer cannot hold.
    #[error("the peer sent a message larger than the receive buffer")]
    MessageTooLarge,
}

/// Why nothing was written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IoError {
    /// The handshake is not done.
    #[error("the connection is not open yet")]
    NotOpen,
    /// It is closed, or is being closed.
    #[error("the connection is closed")]
    Closed,
    /// There is no room now; [`Event::Writable`] says when there is.
    #[error("the send buffer is full")]
    Full,
    /// A message without a byte, or one that the send buffer can never hold.
    #[error("the message is empty or too large")]
    Size,
    /// A message for a stream, or bytes for a connection of messages.
    #[error("the connection is of the other type")]
    Type,
    /// The buffer is smaller than the next message, which has so many bytes.
    #[error("the next message has {0} bytes")]
    Small(usize),
}

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done.
    Connected,
    /// There may be something to read.
    Readable,
    /// There is room again after a write that found none.
    Writable,
    /// The peer could not use what it received; the code is its own.
    PeerError(u32),
    /// It is over. What has arrived before can still be read.
    Closed(Reason),
}

/// Datagrams to be sent, all to the same peer: pieces of `segment` bytes, the last one possibly shorter (what UDP_SEGMENT takes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The datagrams, one after the other.
    pub bytes: &'a [u8],
    /// How long each is.
    pub segment: usize,
}

impl<'a> Transmit<'a> {
    /// One by one.
    pub fn datagrams(self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes.chunks(self.segment)
    }
}
