//! Writes and reads a TCP stream, as well or as badly as the part requires.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use super::disk::DiskFile;
use super::habits::{ready, rest};
use crate::failure::FailureContext;
use crate::faults::Error;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamWriterSettings {
    pub(crate) to: SocketAddr,
    pub(crate) write: u64,
    pub(crate) pause: Nanos,
    pub(crate) writes_between: u32,
    /// True if the data are read from a disk before they are written.
    pub(crate) from_disk: bool,
    pub(crate) control: String,
    pub(crate) buffer: Option<u64>,
    pub(crate) nodelay: bool,
    /// True if another connection is opened and closed first, so that TCP remembers the route's metrics.
    pub(crate) rehearsed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamReaderSettings {
    pub(crate) at: SocketAddr,
    pub(crate) read: u64,
    pub(crate) pause: Nanos,
    pub(crate) buffer: Option<u64>,
}

/// Time limit of a call, so that the program ends in time.
const PATIENCE: Duration = Duration::from_millis(500);
/// The time from the connection to the first write.
const GREETING: Nanos = Nanos::millis(20);

pub(crate) fn write(settings: &StreamWriterSettings, until: Instant) -> Result<(), Error> {
    if settings.rehearsed {
        rehearse(settings.to).during(|| format!("rehearse with {}", settings.to))?;
    }
    let socket = socket(settings.to)?;
    let named = || format!("connect to {}", settings.to);
    let chosen = socket.set_tcp_congestion(settings.control.as_bytes());
    chosen.during(|| format!("choose {}", settings.control))?;
    if let Some(size) = settings.buffer {
        socket.set_send_buffer_size(size as usize).during(|| "set SO_SNDBUF".into())?;
    }
    socket.set_tcp_nodelay(settings.nodelay).during(|| "set TCP_NODELAY".into())?;
    socket.connect_timeout(&settings.to.into(), Duration::from_secs(10)).during(named)?;
    let mut stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(PATIENCE)).during(named)?;
    let mut disk = settings.from_disk.then(|| DiskFile::new(settings.write)).transpose()?;
    ready();
    // The reader waits for data when the first come, as where a program answers a greeting.
    rest(GREETING);
    let payload = vec![0x5a; settings.write as usize];
    let mut written = 0;
    while Instant::now() < until {
        if let Some(disk) = &mut disk {
            disk.read()?;
        }
        match stream.write(&payload) {
            Ok(_) => {}
            Err(e) if is_patience(&e) => continue,
            // The reader has left, which ends the part.
            Err(_) => return Ok(()),
        }
        written += 1;
        if written % settings.writes_between.max(1) == 0 {
            rest(settings.pause);
        }
    }
    Ok(())
}

/// Opens a connection, sends some bytes, and closes it in order.
fn rehearse(to: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(10))?;
    stream.write_all(&[0; 4096])?;
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.read(&mut [0]).map(drop)
}

pub(crate) fn read(settings: &StreamReaderSettings, until: Instant) -> Result<(), Error> {
    let socket = socket(settings.at)?;
    let named = || format!("listen on {}", settings.at);
    if let Some(size) = settings.buffer {
        socket.set_recv_buffer_size(size as usize).during(|| "set SO_RCVBUF".into())?;
    }
    socket.set_reuse_address(true).during(named)?;
    socket.bind(&settings.at.into()).during(named)?;
    socket.listen(8).during(named)?;
    ready();
    let mut buffer = vec![0; settings.read as usize];
    while Instant::now() < until {
        let (stream, _) = socket.accept().during(named)?;
        let mut stream = TcpStream::from(stream);
        stream.set_read_timeout(Some(PATIENCE)).during(named)?;
        while Instant::now() < until {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => rest(settings.pause),
                Err(e) if is_patience(&e) => {}
                Err(_) => break,
            }
        }
    }
    Ok(())
}

pub(super) fn socket(at: SocketAddr) -> Result<Socket, Error> {
    Ok(Socket::new(Domain::for_address(at), Type::STREAM, None).during(|| "open a TCP socket".into())?)
}

pub(super) fn is_patience(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
