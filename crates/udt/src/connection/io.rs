//! Reading and writing by the application.

use landspeed_record::units::Nanos;

use super::open::OpenConnection;
use super::outcome::{CloseReason, IoError};
use super::{Connection, ConnectionPhase};
use crate::packet::SocketType;

impl Connection {
    /// Returns true if [`write`](Self::write) would find room.
    pub fn is_writable(&self) -> bool {
        let ConnectionPhase::Open(open) = &self.phase else { return false };
        match self.config.socket_type {
            SocketType::Stream => open.sender.buffer.stream_room() > 0,
            SocketType::Datagram => open.sender.buffer.free_bytes() > 0,
        }
    }

    /// Acknowledges everything that has arrived, for a caller that will not call when the acknowledgement is due.
    pub fn acknowledge(&mut self) {
        if let ConnectionPhase::Open(open) = &mut self.phase {
            open.receiver.acknowledge();
        }
    }

    fn open(&mut self, socket_type: SocketType) -> Result<&mut OpenConnection, IoError> {
        if self.config.socket_type != socket_type {
            return Err(IoError::Type);
        }
        match &mut self.phase {
            ConnectionPhase::Open(open) => Ok(open),
            ConnectionPhase::Connecting(_) if self.closed.is_some() => Err(IoError::Closed),
            ConnectionPhase::Connecting(_) => Err(IoError::NotOpen),
        }
    }

    fn writable(&mut self, socket_type: SocketType) -> Result<&mut OpenConnection, IoError> {
        if self.closed.is_some() || self.closing.is_some() {
            return Err(IoError::Closed);
        }
        self.open(socket_type)
    }

    /// Writes at least one of a stream's bytes: as many as there is room for, but of large data only whole runs of
    /// packets. Because the buffer of unsent bytes is small, sending makes room too: write again after
    /// [`poll_transmit`](Self::poll_transmit).
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the connection is not an open stream.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, IoError> {
        let written = self.writable(SocketType::Stream)?.sender.buffer.write_stream(data);
        self.flags.wants_room = written < data.len() && !self.is_writable();
        if written == 0 && !data.is_empty() { Err(IoError::Full) } else { Ok(written) }
    }

    /// Writes a message. If it is not `in_order`, it may overtake others; if it has not arrived `ttl` after `now`, it
    /// is given up.
    ///
    /// # Errors
    /// Returns an error if the message is empty or larger than the buffer, if there is no room now, or if the
    /// connection is not open for messages.
    pub fn write_message(
        &mut self,
        now: Nanos,
        data: &[u8],
        in_order: bool,
        ttl: Option<Nanos>,
    ) -> Result<(), IoError> {
        let most = self.config.send_buffer.max(2) as usize;
        let open = self.writable(SocketType::Datagram)?;
        if data.is_empty() || data.len() > most * open.payload {
            return Err(IoError::Size);
        }
        if data.len() > open.sender.buffer.free_bytes() {
            self.flags.wants_room = true;
            return Err(IoError::Full);
        }
        open.sender.buffer.write_message(data, in_order, ttl.map(|ttl| now + ttl));
        Ok(())
    }

    /// Returns the stream's next bytes in place; more may follow once they are consumed. Empty if nothing can be read
    /// now.
    pub fn peek(&self) -> &[u8] {
        match &self.phase {
            ConnectionPhase::Open(open) if self.config.socket_type == SocketType::Stream => {
                open.receiver.buffer.peek(open.receiver.next())
            }
            _ => &[],
        }
    }

    /// Consumes the first `bytes` of what [`peek`](Self::peek) returns.
    pub fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.peek().len());
        if let ConnectionPhase::Open(open) = &mut self.phase
            && bytes > 0
        {
            open.receiver.buffer.consume(bytes);
            open.receiver.on_read();
        }
    }

    /// Copies the stream's next bytes and returns how many; 0 if there are none now, which is the end if the
    /// connection is closed.
    ///
    /// # Errors
    /// Returns an error if the connection is not a stream, or was never open.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, IoError> {
        self.open(SocketType::Stream)?;
        let mut read = 0;
        while read < out.len() {
            let piece = self.peek();
            let length = piece.len().min(out.len() - read);
            if length == 0 {
                break;
            }
            out[read..read + length].copy_from_slice(&piece[..length]);
            self.consume(length);
            read += length;
        }
        Ok(read)
    }

    /// Copies the next message into `out` and returns its length; `None` if there is none now.
    ///
    /// # Errors
    /// Returns an error if `out` is smaller than the message, or if the connection is not one of messages or was
    /// never open.
    pub fn read_message(&mut self, out: &mut [u8]) -> Result<Option<usize>, IoError> {
        let receiver = &mut self.open(SocketType::Datagram)?.receiver;
        let next = receiver.next();
        receiver.buffer.skip(next);
        let Some(found) = receiver.buffer.find(next, receiver.largest()) else {
            let is_stuck = receiver.buffer.is_full(next);
            receiver.on_read();
            if is_stuck && self.closed.is_none() {
                self.end(CloseReason::MessageTooLarge);
            }
            return Ok(None);
        };
        let room = out.get_mut(..found.bytes()).ok_or(IoError::Small(found.bytes()))?;
        receiver.buffer.read_message(found, next, room);
        receiver.on_read();
        Ok(Some(found.bytes()))
    }
}
