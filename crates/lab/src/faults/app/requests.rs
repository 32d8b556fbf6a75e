//! Sends requests in small parts, and answers requests. With Nagle's algorithm the second part waits for the
//! acknowledgement of the first, which the peer delays (RFC 896, RFC 1122 4.2.3.2 and 4.2.3.4; Mogul & Minshall 2001).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;

use super::habits::{ready, rest};
use crate::failure::FailureContext;
use crate::faults::Error;

/// Sends requests of `parts` parts, each of `part` bytes.
pub(crate) fn ask(
    to: SocketAddr,
    part: u64,
    parts: u32,
    rest_every: u32,
    until: Instant,
) -> Result<(), Error> {
    let named = || format!("ask {to}");
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(10)).during(named)?;
    ready();
    let part = vec![1; part as usize];
    let mut asked = 0u32;
    while Instant::now() < until {
        let sent = (0..parts).try_for_each(|_| stream.write_all(&part));
        let answered = sent.and_then(|()| stream.read_exact(&mut [0]));
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
    let listener = TcpListener::bind(at).during(named)?;
    ready();
    let mut buffer = vec![0; request as usize];
    while Instant::now() < until {
        let (mut stream, _) = listener.accept().during(named)?;
        while Instant::now() < until && stream.read_exact(&mut buffer).is_ok() {
            if stream.write_all(&[1]).is_err() {
                break;
            }
        }
    }
    Ok(())
}
