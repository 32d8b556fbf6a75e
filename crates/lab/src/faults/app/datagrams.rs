//! Sends and receives datagrams, as well or as badly as the settings require.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use landspeed_record::units::{BitRate, Nanos};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use super::habits::{ready, rest};
use crate::failure::FailureContext;
use crate::faults::Error;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatagramSenderSettings {
    pub(crate) to: SocketAddr,
    pub(crate) size: u64,
    pub(crate) rate: Option<BitRate>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatagramReceiverSettings {
    pub(crate) at: SocketAddr,
    pub(crate) buffer: Option<u64>,
    pub(crate) pause: Nanos,
    pub(crate) reads_between: u32,
}

/// Sends datagrams at an even rate, in steps of a millisecond, or as fast as possible if the settings have no rate.
pub(crate) fn shoot(settings: &DatagramSenderSettings, until: Instant) -> Result<(), Error> {
    let named = || format!("send datagrams to {}", settings.to);
    let any: SocketAddr = if settings.to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0; 8], 0).into() };
    let socket = UdpSocket::bind(any).during(named)?;
    socket.connect(settings.to).during(named)?;
    ready();
    let payload = vec![0x5a; settings.size as usize];
    let (began, mut sent) = (Instant::now(), 0u64);
    while Instant::now() < until {
        let due =
            settings.rate.map_or(u64::MAX, |rate| (began.elapsed().as_secs_f64() * rate.0 / 8.0) as u64);
        if sent >= due {
            rest(Nanos::millis(1));
            continue;
        }
        // A refused datagram (no receiver yet, a full queue) counts as lost.
        let _ = socket.send(&payload);
        sent += settings.size;
    }
    Ok(())
}

pub(crate) fn catch(settings: &DatagramReceiverSettings, until: Instant) -> Result<(), Error> {
    let named = || format!("receive datagrams at {}", settings.at);
    let socket = Socket::new(Domain::for_address(settings.at), Type::DGRAM, None)
        .during(|| "open a UDP socket".into())?;
    if let Some(size) = settings.buffer {
        socket.set_recv_buffer_size(size as usize).during(|| "set SO_RCVBUF".into())?;
    }
    socket.bind(&settings.at.into()).during(named)?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(Duration::from_millis(500))).during(named)?;
    ready();
    let (mut buffer, mut received) = (vec![0; 65_536], 0u32);
    while Instant::now() < until {
        if socket.recv(&mut buffer).is_ok() {
            received = received.wrapping_add(1);
            if received.is_multiple_of(settings.reads_between.max(1)) {
                rest(settings.pause);
            }
        }
    }
    Ok(())
}
