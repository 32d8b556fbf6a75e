//! The application's side of a connection: reading and writing the stream.

use super::open::OpenConnection;
use super::outcome::IoError;
use super::{Connection, ConnectionPhase};

impl Connection {
    /// Returns true if [`write`](Self::write) would accept data now.
    pub fn is_writable(&self) -> bool {
        matches!(&self.phase, ConnectionPhase::Open(open) if open.sender.buffer.room() > 0)
    }

    /// Schedules an immediate acknowledgement of everything that has arrived. Call it if the connection will not be
    /// polled at the time at which the acknowledgement would be due otherwise.
    pub fn acknowledge(&mut self) {
        if let ConnectionPhase::Open(open) = &mut self.phase {
            open.receiver.acknowledge();
        }
    }

    fn open(&mut self) -> Result<&mut OpenConnection, IoError> {
        match &mut self.phase {
            ConnectionPhase::Open(open) => Ok(open),
            ConnectionPhase::Connecting(_) if self.closed.is_some() => Err(IoError::Closed),
            ConnectionPhase::Connecting(_) => Err(IoError::NotOpen),
        }
    }

    /// Writes as much of `data` to the stream as there is room for, and returns the number of bytes: at least one if
    /// `data` is not empty. Data of more than a batch is cut at a whole number of batches. The buffer holds few
    /// unsent bytes, so sending also makes room: write again after [`poll_transmit`](Self::poll_transmit).
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the connection is not open or is being closed.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, IoError> {
        if self.closed.is_some() || self.closing.is_some() {
            return Err(IoError::Closed);
        }
        let written = self.open()?.sender.buffer.write(data);
        self.flags.wants_room = written < data.len() && !self.is_writable();
        if written == 0 && !data.is_empty() { Err(IoError::Full) } else { Ok(written) }
    }

    /// Returns the stream's next bytes without copying them. The slice is empty if nothing can be read now. More
    /// bytes may follow once these are consumed.
    pub fn peek(&self) -> &[u8] {
        match &self.phase {
            ConnectionPhase::Open(open) => open.receiver.buffer.peek(open.receiver.next()),
            ConnectionPhase::Connecting(_) => &[],
        }
    }

    /// Marks the first `bytes` of what [`peek`](Self::peek) returns as read.
    pub fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.peek().len());
        if let ConnectionPhase::Open(open) = &mut self.phase
            && bytes > 0
        {
            open.receiver.buffer.consume(bytes);
            open.receiver.on_read();
        }
    }

    /// Copies the stream's next bytes into `out` and returns their number. The number is 0 if there are no bytes now.
    /// If the connection is closed, 0 is the end of the stream.
    ///
    /// # Errors
    /// Returns an error if the connection was never open.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, IoError> {
        self.open()?;
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
}
