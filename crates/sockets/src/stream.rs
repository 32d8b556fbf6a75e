//! A connection that sleeps in its calls, or polls.

use std::hint::spin_loop;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A peer that says nothing for so long has gone.
const SILENCE: Duration = Duration::from_secs(20);

/// One end of a connection.
pub(crate) struct Stream {
    socket: TcpStream,
    is_polling: bool,
}

impl Stream {
    /// A new connection, which sleeps until [`Stream::polls`].
    pub(crate) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
        Ok(Stream { socket, is_polling: false })
    }

    /// Calls again and again from here on, where that is asked for.
    pub(crate) fn polls(mut self, is_polling: bool) -> io::Result<Self> {
        self.is_polling = is_polling;
        self.socket.set_nonblocking(is_polling)?;
        Ok(self)
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Sleeping calls return once; polling ones until there is something.
    fn until(&self, mut call: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match call(&self.socket) {
                Err(error) if self.is_polling && error.kind() == ErrorKind::WouldBlock => spin_loop(),
                done => return done,
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.until(|mut socket| socket.read(bytes))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until(|mut socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
