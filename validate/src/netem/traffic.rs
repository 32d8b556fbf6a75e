//! Numbered datagrams that carry the time at which they were sent. Sender and receiver are in one process, and so read one
//! clock.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use landspeed_record::units::Nanos;
use serde::{Deserialize, Serialize};

use super::condition::PACKET_BYTES;

/// The headers of IPv4 and UDP, in bytes.
const HEADERS: usize = 28;
/// The number and the time in a datagram, in bytes.
const STAMP: usize = 12;
/// A receiver that hears nothing for this time after the last datagram was sent has all that arrive.
const SILENCE: Duration = Duration::from_millis(500);
/// How often a first datagram is tried, because the link may lose it, and the time in which it must arrive.
const GREETINGS: u32 = 10;
const GREETING: Duration = Duration::from_millis(100);

/// A datagram that arrived. Times count from the start of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DatagramArrival {
    pub(super) number: u32,
    pub(super) sent_ns: Nanos,
    pub(super) arrived_ns: Nanos,
}

/// Sends datagrams until one arrives, so that each host knows the hardware address of the other.
pub(super) fn greet(near: &UdpSocket, far: &UdpSocket) -> Result<()> {
    far.set_read_timeout(Some(GREETING))?;
    for _ in 0..GREETINGS {
        near.send(&[0])?;
        match far.recv(&mut [0; 1]) {
            Err(e) if is_silence(&e) => {}
            other => return Ok(other.map(drop)?),
        }
    }
    bail!("none of {GREETINGS} datagrams arrives")
}

/// Sends datagrams at a fixed rate, and returns those that arrive, in the order in which they do.
pub(super) fn exchange(
    near: &UdpSocket,
    far: &UdpSocket,
    count: u32,
    per_second: f64,
) -> io::Result<Vec<DatagramArrival>> {
    far.set_read_timeout(Some(SILENCE))?;
    let (begun, is_over) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(far, begun, &is_over));
        let sent = send(near, begun, count, per_second);
        is_over.store(true, Ordering::Relaxed);
        let arrived = receiver.join().expect("a receiver ends");
        sent?;
        arrived
    })
}

fn send(socket: &UdpSocket, begun: Instant, count: u32, per_second: f64) -> io::Result<()> {
    let mut datagram = [0; PACKET_BYTES as usize - HEADERS];
    for number in 0..count {
        // Each has a time of its own, so that one that is late does not delay the others.
        let due = Duration::from_secs_f64(f64::from(number) / per_second);
        thread::sleep(due.saturating_sub(begun.elapsed()));
        stamp(&mut datagram, number, begun.elapsed().into());
        socket.send(&datagram)?;
    }
    Ok(())
}

fn receive(socket: &UdpSocket, begun: Instant, is_over: &AtomicBool) -> io::Result<Vec<DatagramArrival>> {
    let (mut arrivals, mut buffer) = (Vec::new(), [0; PACKET_BYTES as usize]);
    loop {
        match socket.recv(&mut buffer) {
            Ok(len) => {
                let arrived_ns = begun.elapsed().into();
                let arrival = |(number, sent_ns)| DatagramArrival { number, sent_ns, arrived_ns };
                arrivals.extend(read(&buffer[..len]).map(arrival));
            }
            Err(e) if !is_silence(&e) => return Err(e),
            Err(_) if is_over.load(Ordering::Relaxed) => return Ok(arrivals),
            Err(_) => {}
        }
    }
}

/// Returns true for the error of a read that nothing ended within its time limit.
fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn stamp(datagram: &mut [u8], number: u32, sent: Nanos) {
    datagram[..4].copy_from_slice(&number.to_be_bytes());
    datagram[4..STAMP].copy_from_slice(&sent.0.to_be_bytes());
}

/// Returns the number and the time in a datagram; `None` for a greeting, which has neither.
fn read(datagram: &[u8]) -> Option<(u32, Nanos)> {
    let (number, rest) = datagram.split_first_chunk::<4>()?;
    let (sent, _) = rest.split_first_chunk::<8>()?;
    Some((u32::from_be_bytes(*number), Nanos(u64::from_be_bytes(*sent))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        (near, far)
    }

    #[test]
    fn all_that_is_sent_arrives_with_its_number_and_time() {
        let (near, far) = pair();
        greet(&near, &far).unwrap();
        near.send(&[0]).unwrap();
        let arrived = exchange(&near, &far, 80, 20_000.0).unwrap();
        let numbers: Vec<u32> = arrived.iter().map(|one| one.number).collect();
        assert_eq!(numbers, (0..80).collect::<Vec<_>>(), "the late greeting is none of them");
        assert!(arrived.iter().all(|one| one.sent_ns <= one.arrived_ns));
        let due = |one: &DatagramArrival| Nanos(u64::from(one.number) * 50_000);
        assert!(arrived.iter().all(|one| one.sent_ns >= due(one)), "none is sent before its time");
    }

    #[test]
    fn a_link_that_carries_nothing_is_named() {
        let [near, other] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        near.connect(other.local_addr().unwrap()).unwrap();
        let (_, far) = pair();
        assert!(greet(&near, &far).unwrap_err().to_string().contains("none of 10"));
    }
}
