//! Opens connections faster than they are accepted.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;

use super::habits::{ready, rest};
use super::stream::socket;
use crate::failure::FailureContext;
use crate::faults::Error;

/// Opens connections from `clients` threads in parallel, until `until`. Each thread opens the next connection once the
/// server has closed the last.
pub(crate) fn knock(to: SocketAddr, clients: u32, until: Instant) -> Result<(), Error> {
    ready();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(move || {
                while Instant::now() < until {
                    match TcpStream::connect_timeout(&to, Duration::from_secs(2)) {
                        Ok(mut stream) => drop(stream.read(&mut [0])),
                        Err(_) => rest(Nanos::millis(10)),
                    }
                }
            });
        }
    });
    Ok(())
}

/// Accepts one connection at a time, waits for `service`, and closes it, until `until`.
pub(crate) fn open(at: SocketAddr, backlog: u32, service: Nanos, until: Instant) -> Result<(), Error> {
    let named = || format!("listen on {at}");
    let socket = socket(at)?;
    socket.set_reuse_address(true).during(named)?;
    socket.bind(&at.into()).during(named)?;
    socket.listen(backlog as i32).during(named)?;
    ready();
    while Instant::now() < until {
        let (stream, _) = socket.accept().during(named)?;
        rest(service);
        drop(stream);
    }
    Ok(())
}
