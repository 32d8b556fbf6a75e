//! Tests of failures: an end that does not exist, that refuses, or that silently disappears. The other end reports an
//! error, and its port can be used again.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use landspeed_record::units::Nanos;
use landspeed_udt::{CloseReason, UdtConfig};

use crate::end::{ClockedSocket, ConnectionEnd, listen};
use crate::peer::{self, LibudtPeer};

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const BYTES: usize = 20_000;

/// Returns an address at which nothing listens.
fn empty_port() -> SocketAddr {
    ClockedSocket::bind(ANY_PORT).address()
}

fn impatient() -> UdtConfig {
    let (connect_patience, silence) = (Nanos::millis(700), Nanos::secs(2));
    UdtConfig { connect_patience, silence, ..UdtConfig::default() }
}

/// Returns an end of this crate that has sent some hundred packets to libudt at `to` and is still sending.
fn busy_sender(socket: ClockedSocket, to: SocketAddr) -> ConnectionEnd {
    let mut end = ConnectionEnd::connect(socket, impatient(), to);
    while end.connection.counts().sent < 300 {
        let _ = end.connection.write(&[1; BYTES]);
        end.drive(Nanos::millis(5));
        assert_eq!(end.connection.closed(), None);
    }
    end
}

/// Sends a little data to libudt at `to`, and closes the connection.
fn sends_all(socket: ClockedSocket, to: SocketAddr, mut out: impl Read) -> ClockedSocket {
    let mut end = ConnectionEnd::connect(socket, UdtConfig::default(), to);
    let mut written = 0;
    while written < BYTES {
        written += end.connection.write(&vec![2; BYTES - written]).unwrap_or(0);
        end.drive(Nanos::millis(5));
        assert_eq!(end.connection.closed(), None);
    }
    end.connection.close(end.socket.now());
    assert_eq!(end.until_closed(Nanos::secs(60)), CloseReason::Closed);
    end.drive(Nanos(0));
    let mut read = Vec::new();
    out.read_to_end(&mut read).expect("a pipe");
    assert!(read == [2; BYTES], "{} bytes", read.len());
    end.socket
}

/// Receives data from libudt until at least `least` bytes have arrived or the connection has ended. Returns the
/// number of bytes.
fn receives(end: &mut ConnectionEnd, least: usize) -> usize {
    let (mut read, mut room) = (0, vec![0; 1 << 16]);
    while read < least && end.connection.closed().is_none() {
        end.drive(Nanos::millis(5));
        read += end.connection.read(&mut room).expect("a stream");
    }
    read
}

#[test]
fn nothing_listens() {
    let mut end = ConnectionEnd::connect(ClockedSocket::bind(ANY_PORT), impatient(), empty_port());
    assert_eq!(end.until_closed(Nanos::secs(60)), CloseReason::NoAnswer);
    if peer::program().is_some() {
        let (mut peer, _input) = LibudtPeer::connect(empty_port(), 1500);
        let (status, said) = peer.wait(Duration::from_secs(30));
        assert!(!status.success() && said.starts_with("connect: "), "{status}: {said}");
    }
}

#[test]
fn messages_are_refused_both_ways() {
    if peer::program().is_none() {
        return;
    }
    let (_peer, at, _out) = LibudtPeer::listen_for("messages", ANY_PORT, 1500);
    let mut end = ConnectionEnd::connect(ClockedSocket::bind(ANY_PORT), impatient(), at);
    assert_eq!(end.until_closed(Nanos::secs(60)), CloseReason::Refused(1002));
    let mut socket = ClockedSocket::bind(ANY_PORT);
    let (mut peer, _input) = LibudtPeer::connect_for("messages", socket.address(), 1500);
    while peer.has_ended().is_none() {
        let request = listen(&mut socket, Nanos::millis(50));
        assert_eq!(request, None);
    }
    let (status, said) = peer.wait(Duration::from_secs(30));
    assert!(!status.success() && said.contains("rejected"), "{status}: {said}");
}

/// Checks that libudt does not answer padded requests. A connector to libudt must therefore not set `probes_path`.
#[test]
fn libudt_does_not_answer_padded_requests() {
    if peer::program().is_none() {
        return;
    }
    let (_peer, at, _out) = LibudtPeer::listen(ANY_PORT, 1500);
    let config = UdtConfig { probes_path: true, ..impatient() };
    let mut end = ConnectionEnd::connect(ClockedSocket::bind(ANY_PORT), config, at);
    assert_eq!(end.until_closed(Nanos::secs(60)), CloseReason::NoAnswer);
}

#[test]
fn a_receiver_that_is_killed_and_its_port_used_again() {
    if peer::program().is_none() {
        return;
    }
    let (mut peer, at, _out) = LibudtPeer::listen(ANY_PORT, 1500);
    let mut end = busy_sender(ClockedSocket::bind(ANY_PORT), at);
    peer.kill();
    assert_eq!(end.until_closed(Nanos::secs(60)), CloseReason::Silent);
    let (_peer, again, out) = LibudtPeer::listen(at, 1500);
    assert_eq!(again, at);
    sends_all(end.socket, at, out);
}

#[test]
fn a_sender_that_is_killed_and_our_port_used_again() {
    if peer::program().is_none() {
        return;
    }
    let socket = ClockedSocket::bind(ANY_PORT);
    let at = socket.address();
    let (mut peer, mut input) = LibudtPeer::connect(at, 1500);
    let writer = std::thread::spawn(move || while input.write_all(&[3; BYTES]).is_ok() {});
    let mut end = ConnectionEnd::accept(socket, impatient(), Nanos::secs(60));
    receives(&mut end, 10 * BYTES);
    peer.kill();
    receives(&mut end, usize::MAX);
    assert_eq!(end.connection.closed(), Some(CloseReason::Silent));
    writer.join().expect("a writer does not panic");
    let (mut peer, mut input) = LibudtPeer::connect(at, 1500);
    let mut end = ConnectionEnd::accept(end.socket, impatient(), Nanos::secs(60));
    input.write_all(&[4; BYTES]).expect("a pipe");
    drop(input);
    assert_eq!(receives(&mut end, BYTES), BYTES);
    // libudt ends once it knows that everything has arrived.
    while peer.has_ended().is_none() {
        end.drive(Nanos::millis(5));
        assert!(matches!(end.connection.closed(), None | Some(CloseReason::PeerClosed)));
    }
    assert!(peer.wait(Duration::from_secs(30)).0.success());
}

/// Checks that libudt gives up a peer that has disappeared. libudt takes most of a minute for it.
#[test]
fn libudt_learns_that_we_are_gone() {
    if std::env::var_os("LANDSPEED_UDT_FULL").is_none() {
        println!("SKIP: a minute: make interop-udt");
        return;
    }
    if peer::program().is_none() {
        return;
    }
    let (mut peer, at, mut out) = LibudtPeer::listen(ANY_PORT, 1500);
    drop(busy_sender(ClockedSocket::bind(ANY_PORT), at));
    let mut read = Vec::new();
    out.read_to_end(&mut read).expect("a pipe");
    assert!(!read.is_empty() && read.iter().all(|byte| *byte == 1), "{} bytes", read.len());
    assert!(peer.wait(Duration::from_secs(30)).0.success());
}
