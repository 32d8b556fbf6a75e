//! Captures what two programs of libudt send to each other, for tests/recorded.rs.
//!
//! `LANDSPEED_UDT_RECORD=$PWD/crates/udt/tests/recorded.txt cargo test -p landspeed-udt --test libudt -- record`

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::Ipv4Addr;
use std::time::Duration;

use landspeed_udt::SocketType;

use crate::peer::{self, LibudtPeer};
use crate::relay::{CapturedDatagram, NetworkImpairments, Relay};

const MSS: u32 = 200;
const BYTES: usize = 6000;

/// Returns byte `at` of the content; tests/recorded.rs has the same function.
fn byte(at: usize) -> u8 {
    ((at as u32).wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Returns the content as a stream, or as messages of up to 1000 bytes.
fn input(socket_type: SocketType) -> Vec<u8> {
    let bytes: Vec<u8> = (0..BYTES).map(byte).collect();
    match socket_type {
        SocketType::Stream => bytes,
        SocketType::Datagram => {
            let (mut framed, mut at) = (Vec::new(), 0);
            while at < BYTES {
                let length = (BYTES - at).min(1 + at * 7 % 1000);
                framed.extend_from_slice(&(length as u32).to_ne_bytes());
                framed.extend_from_slice(&bytes[at..at + length]);
                at += length;
            }
            framed
        }
    }
}

fn exchange(socket_type: SocketType, seed: u64) -> Vec<CapturedDatagram> {
    let (_listener, at, mut out) = LibudtPeer::listen((Ipv4Addr::LOCALHOST, 0).into(), socket_type, MSS);
    let delay = Duration::from_millis(3);
    let relay =
        Relay::start(at, NetworkImpairments { lost: 0.1, doubled: 0.02, reordered: 0.1, delay }, seed);
    let (mut connector, mut sink) = LibudtPeer::connect(relay.address, socket_type, MSS);
    let input = input(socket_type);
    sink.write_all(&input).expect("a pipe");
    drop(sink);
    assert!(connector.wait(Duration::from_secs(60)).0.success());
    let mut read = Vec::new();
    out.read_to_end(&mut read).expect("a pipe");
    assert_eq!(read, input);
    relay.stop()
}

fn lines(name: &str, captured: &[CapturedDatagram]) -> String {
    let mut text = format!("{name}\n");
    for one in captured {
        let arrow = if one.from_connector { '>' } else { '<' };
        let _ = write!(text, "{} {arrow} ", one.at.as_micros());
        one.bytes.iter().for_each(|byte| {
            let _ = write!(text, "{byte:02x}");
        });
        text.push('\n');
    }
    text
}

#[test]
fn record() {
    let Some(path) = std::env::var_os("LANDSPEED_UDT_RECORD") else { return };
    peer::program().expect("libudt is needed to record it");
    let stream = lines("stream", &exchange(SocketType::Stream, 4));
    let messages = lines("messages", &exchange(SocketType::Datagram, 5));
    std::fs::write(path, stream + &messages).expect("the file can be written");
}
