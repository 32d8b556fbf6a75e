//! Sends requests in two small parts, and answers them. With Nagle's algorithm the second part waits for the
//! acknowledgement of the first, which the peer delays (RFC 896, RFC 1122 4.2.3.2 and 4.2.3.4; Mogul & Minshall 2001).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;

use super::stream::socket;
use super::{ready, rest};
use crate::failure::FailureContext;
use crate::faults::Error;

pub(crate) fn ask(to: SocketAddr, part: u64, rest_every: u32, until: Instant) -> Result<(), Error> {
    let named = || format!("ask {to}");
    let socket = socket(to)?;
    socket.connect_timeout(&to.into(), Duration::from_secs(10)).during(named)?;
    let mut stream = TcpStream::from(socket);
    ready();
    let half = vec![1; part as usize];
    let mut asked = 0u32;
    while Instant::now() < until {
        let answered = stream
            .write_all(&half)
            .and_then(|()| stream.write_all(&half))
            .and_then(|()| stream.read_exact(&mut [0]));
        if answered.is_err() {
            return Ok(());
        }
        asked = asked.wrapping_add(1);
        if asked.is_multiple_of(rest_every.max(1)) {
            rest(Nanos::millis(1));
        }
    }
    Ok(())
}

pub(crate) fn answer(at: SocketAddr, request: u64, until: Instant) -> Result<(), Error> {
    let named = || format!("answer at {at}");
    let socket = socket(at)?;
    socket.set_reuse_address(true).during(named)?;
    socket.bind(&at.into()).during(named)?;
    socket.listen(8).during(named)?;
    ready();
    let mut buffer = vec![0; request as usize];
    while Instant::now() < until {
        let (stream, _) = socket.accept().during(named)?;
        let mut stream = TcpStream::from(stream);
        while Instant::now() < until && stream.read_exact(&mut buffer).is_ok() {
            if stream.write_all(&[1]).is_err() {
                break;
            }
        }
    }
    Ok(())
}
