//! A connection whose calls either sleep or poll while they wait.

use std::hint::spin_loop;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The time limit of a read or write that sleeps. After this time, the call fails.
const SILENCE: Duration = Duration::from_secs(20);

/// One end of a connection, whose calls may poll.
pub(crate) struct PollableStream {
    socket: TcpStream,
    is_polling: bool,
}

impl PollableStream {
    /// Creates the end of a new connection. Its calls sleep while they wait, until [`PollableStream::polls`] makes
    /// them poll.
    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
        Ok(PollableStream { socket, is_polling: false })
    }

    /// Returns the connection with calls that poll if `is_polling` is true, and sleep otherwise.
    pub(crate) fn polls(mut self, is_polling: bool) -> io::Result<Self> {
        self.is_polling = is_polling;
        self.socket.set_nonblocking(is_polling)?;
        Ok(self)
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Calls `call` and returns its result. If the connection polls, repeats the call until it would no longer block.
    fn until(&self, mut call: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match call(&self.socket) {
                Err(error) if self.is_polling && error.kind() == ErrorKind::WouldBlock => spin_loop(),
                done => return done,
            }
        }
    }
}

impl Read for PollableStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.until(|mut socket| socket.read(bytes))
    }
}

impl Write for PollableStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until(|mut socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
