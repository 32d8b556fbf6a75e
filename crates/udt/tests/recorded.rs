//! Replays the datagrams that two programs of libudt sent to each other, with losses. Every datagram is parsed and
//! written back unchanged, and an end of this crate must receive the same data from them as libudt's end.
//!
//! tests/recorded.txt has a line for each datagram: microseconds, direction (`>` from the connector), bytes.
//! tests/libudt/record.rs wrote it.

use landspeed_record::units::Nanos;
use landspeed_udt::packet::{Handshake, HandshakeKind, PacketBody, UdtPacket};
use landspeed_udt::{CloseReason, Connection, ConnectionIdentity, HandshakeRequest, Seq, UdtConfig};

struct RecordedDatagram {
    at: Nanos,
    from_connector: bool,
    datagram: Vec<u8>,
}

fn line(text: &str) -> RecordedDatagram {
    let words: Vec<&str> = text.split(' ').collect();
    let [at, arrow, hex] = words[..] else { panic!("a line has three words: {text}") };
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    RecordedDatagram {
        at: Nanos::micros(at.parse().expect("microseconds")),
        from_connector: arrow == ">",
        datagram: (0..hex.len()).step_by(2).map(byte).collect(),
    }
}

fn recorded() -> Vec<RecordedDatagram> {
    include_str!("recorded.txt").lines().map(line).collect()
}

fn parse(line: &RecordedDatagram) -> UdtPacket<'_> {
    UdtPacket::parse(&line.datagram).expect("libudt sends packets")
}

/// Returns the handshake by which one direction opened the connection, and the index of its datagram.
fn handshake(lines: &[RecordedDatagram], from_connector: bool) -> (usize, Handshake) {
    let is_it = |line: &RecordedDatagram| match parse(line).body {
        PacketBody::Handshake(handshake) if line.from_connector == from_connector => {
            (handshake.kind == HandshakeKind::Connect).then_some(handshake)
        }
        _ => None,
    };
    lines.iter().enumerate().find_map(|(at, line)| Some((at, is_it(line)?))).expect("a handshake")
}

/// Returns byte `at` of the transferred content.
fn byte(at: usize) -> u8 {
    ((at as u32).wrapping_mul(2_654_435_761) >> 13) as u8
}

#[test]
fn every_datagram_is_written_as_libudt_did() {
    let mut kinds = std::collections::BTreeSet::new();
    for line in recorded() {
        let packet = parse(&line);
        let mut room = [0xa5; 2048];
        let length = packet.write(&mut room).expect("there is room");
        assert_eq!(room[..length], line.datagram, "{packet:?}");
        kinds.insert(match packet.body {
            PacketBody::Data(_) => "data",
            _ => ["handshake", "keep-alive", "ACK", "NAK", "", "shutdown", "ACK2"]
                [usize::from(line.datagram[1])],
        });
    }
    for kind in ["data", "handshake", "ACK", "NAK", "shutdown", "ACK2"] {
        assert!(kinds.contains(kind), "{kind} was not recorded: {kinds:?}");
    }
}

/// Passes the connector's datagrams to an end of this crate in the listener's place, at the times of the capture.
/// Returns the data that the end has read.
fn replay(lines: &[RecordedDatagram]) -> Vec<u8> {
    let (start, asked) = handshake(lines, true);
    let (_, answered) = handshake(lines, false);
    let config = UdtConfig { mss: answered.mss, receive_buffer: answered.flight, ..UdtConfig::default() };
    let identity = ConnectionIdentity { socket: answered.socket, first_seq: Seq::new(0), seed: 1 };
    let request = HandshakeRequest { peer: "127.0.0.1:1".parse().expect("an address"), handshake: asked };
    let mut end = Connection::accept(lines[start].at, config, identity, &request);
    let first = end.poll_transmit(lines[start].at, 1).expect("the answer").bytes.to_vec();
    let answer = UdtPacket::parse(&first).expect("a packet").body;
    assert_eq!(answer, PacketBody::Handshake(answered), "libudt's answer");
    let mut read = Vec::new();
    for line in lines[start..].iter().filter(|line| line.from_connector) {
        while let Some(timer) = end.next_timeout().filter(|timer| *timer < line.at) {
            end.handle_timeout(timer.max(lines[start].at));
            while end.poll_transmit(timer.max(lines[start].at), 16).is_some() {}
        }
        end.handle(line.at, &line.datagram);
        let mut room = [0; 1000];
        loop {
            let length = end.read(&mut room).expect("a stream");
            if length == 0 {
                break;
            }
            read.extend_from_slice(&room[..length]);
        }
    }
    assert_eq!(end.closed(), Some(CloseReason::PeerClosed));
    read
}

#[test]
fn our_end_receives_recorded_packets() {
    let read = replay(&recorded());
    assert!(read == (0..6000).map(byte).collect::<Vec<_>>(), "{} bytes", read.len());
}
