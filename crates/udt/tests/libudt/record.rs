//! Captures the datagrams that two programs of libudt send to each other, for tests/recorded.rs.
//!
//! `LANDSPEED_UDT_RECORD=$PWD/crates/udt/tests/recorded.txt cargo test -p landspeed-udt --test libudt -- record`

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::peer::{self, LibudtPeer};
use crate::relay::{CapturedDatagram, NetworkImpairments, Relay};

const MSS: u32 = 200;
const BYTES: usize = 6000;

/// Returns byte `at` of the transferred content. tests/recorded.rs has the same function.
fn byte(at: usize) -> u8 {
    ((at as u32).wrapping_mul(2_654_435_761) >> 13) as u8
}

fn exchange(seed: u64) -> Vec<CapturedDatagram> {
    let (_listener, at, mut out) = LibudtPeer::listen((Ipv4Addr::LOCALHOST, 0).into(), MSS);
    let delay = Duration::from_millis(3);
    let relay =
        Relay::start(at, NetworkImpairments { lost: 0.1, doubled: 0.02, reordered: 0.1, delay }, seed);
    let (mut connector, mut sink) = LibudtPeer::connect(relay.address, MSS);
    let input: Vec<u8> = (0..BYTES).map(byte).collect();
    sink.write_all(&input).expect("a pipe");
    drop(sink);
    assert!(connector.wait(Duration::from_secs(60)).0.success());
    let mut read = Vec::new();
    out.read_to_end(&mut read).expect("a pipe");
    assert_eq!(read, input);
    relay.stop()
}

fn lines(captured: &[CapturedDatagram]) -> String {
    let mut text = String::new();
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
    std::fs::write(path, lines(&exchange(4))).expect("the file can be written");
}
