//! Measures the goodput of TCP over loopback between two cores, that is, of the network stack without driver and link.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use landspeed_kernel::netlink::Rtnl;
use landspeed_record::units::{BitRate, Bytes, Nanos};

use crate::capacity::cores::{on_core, pin};
use crate::capacity::{AllowedCores, Error, MeasurementBudget};

/// The time for which the flow runs before its rate is measured, so that the congestion window has grown.
const WARM_UP: Duration = Duration::from_millis(50);

/// The timeout of each read and each write.
const PATIENCE: Duration = Duration::from_millis(500);

/// The number of bytes in each write.
const WRITE: usize = 128 << 10;
/// The largest number of bytes in each read.
const READ: usize = 256 << 10;

/// Measures the goodput of one flow over 127.0.0.1 for `time`, in the calling thread's network namespace. The sender
/// runs on `cores.one`, and the receiver on another core if there is one. Returns an error if the interface lo is down.
pub(crate) fn tcp(
    cores: &AllowedCores,
    time: Duration,
    budget: &MeasurementBudget<'_>,
) -> Result<BitRate, Error> {
    if !Rtnl::open()?.link("lo")?.up {
        return Err(Error::Unable(
            "loopback (lo) is down in this network namespace: its rate was not measured; 'ip link set lo up' \
             would let it be"
                .into(),
        ));
    }
    if budget.left() < WARM_UP + time {
        return Err(Error::Late("measure loopback"));
    }
    let (sender, receiver) = pair().map_err(|error| Error::io("connect over", "loopback", error))?;
    let other = cores.other().unwrap_or(cores.one);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| pin(cores.one).and_then(|()| send(sender)));
        // The receiver runs on a separate thread, so that the calling thread keeps its affinity.
        let received = on_core(other, || receive(&receiver, time, budget));
        // Whether receiving succeeded or failed, this makes the sender's next write fail, which ends the sender.
        let _ = receiver.shutdown(Shutdown::Both);
        drop(receiver);
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        received.and_then(|rate| sent.map(|()| rate))
    })
}

fn pair() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = TcpStream::connect(listener.local_addr()?)?;
    let receiver = accept_from(&listener, &sender)?;
    sender.set_write_timeout(Some(PATIENCE))?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    Ok((sender, receiver))
}

/// Accepts the connection of `sender`. Drops connections of other programs, and returns an error after 16 of them.
fn accept_from(listener: &TcpListener, sender: &TcpStream) -> std::io::Result<TcpStream> {
    for _ in 0..16 {
        let (stream, peer) = listener.accept()?;
        if peer == sender.local_addr()? {
            return Ok(stream);
        }
    }
    Err(ErrorKind::ConnectionRefused.into())
}

/// Writes to `stream` until the receiver closes it.
fn send(mut stream: TcpStream) -> Result<(), Error> {
    let data = vec![0x5a; WRITE];
    loop {
        match stream.write(&data) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Ok(());
            }
            Err(error) => return Err(Error::io("send over", "loopback", error)),
        }
    }
}

fn receive(mut stream: &TcpStream, time: Duration, budget: &MeasurementBudget<'_>) -> Result<BitRate, Error> {
    let mut buffer = vec![0; READ];
    let mut read_for = |time: Duration| {
        let start = Instant::now();
        let mut bytes = 0;
        loop {
            bytes +=
                stream.read(&mut buffer).map_err(|error| Error::io("receive over", "loopback", error))?;
            let passed = start.elapsed();
            if passed >= time {
                return Ok((bytes, passed));
            }
            if budget.cancelled() {
                return Err(Error::Late("measure loopback"));
            }
        }
    };
    read_for(WARM_UP)?;
    let (bytes, passed) = read_for(time)?;
    Ok(Bytes(bytes as u64).per(Nanos::from(passed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::SystemFiles;

    fn measure(time: Duration) -> Result<BitRate, Error> {
        let cores = AllowedCores::allowed(&SystemFiles::default(), None).unwrap();
        tcp(&cores, time, &MeasurementBudget::new(Duration::from_secs(10), &|| false))
    }

    #[test]
    fn bytes_flow_over_loopback() {
        match measure(Duration::from_millis(200)) {
            Ok(rate) => assert!(rate.0 > 1e6, "{rate}"),
            Err(error) => println!("SKIP: {error}"),
        }
    }

    #[test]
    fn a_namespace_whose_loopback_is_down_says_so() {
        let inside = landspeed_kernel::netlink::in_throwaway(|| measure(Duration::from_millis(10)));
        match inside {
            Ok(refused) => assert!(refused.unwrap_err().to_string().contains("down")),
            Err(error) => println!("SKIP: {error}"),
        }
    }
}
