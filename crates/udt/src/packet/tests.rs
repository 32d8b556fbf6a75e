//! Tests of packets that are written and parsed again, and of bytes that are no packets.

use std::net::IpAddr;

use proptest::prelude::*;

use super::handshake::address_words;
use super::*;
use crate::loss::SeqRange;

fn seq() -> impl Strategy<Value = Seq> {
    prop_oneof![any::<u32>().prop_map(Seq::new), (0u32..64).prop_map(|n| Seq::MAX.minus(n))]
}

fn range() -> impl Strategy<Value = SeqRange> {
    (seq(), 0u32..1000).prop_map(|(first, more)| SeqRange { first, last: first.plus(more) })
}

fn handshake() -> impl Strategy<Value = Handshake> {
    let kind = prop_oneof![
        Just(HandshakeKind::Cookie),
        Just(HandshakeKind::Connect),
        (1000u32..2000).prop_map(HandshakeKind::Refused)
    ];
    let kind = (any::<bool>(), kind, any::<u32>());
    let sizes = (MIN_MSS..=MAX_MSS, 1..=i32::MAX.cast_unsigned(), 1..=i32::MAX.cast_unsigned());
    (seq(), kind, sizes, any::<IpAddr>()).prop_map(|(first_seq, (stream, kind, cookie), sizes, peer)| {
        let (mss, flight, socket) = (sizes.0, sizes.1, UdtSocketId(sizes.2));
        let socket_type = if stream { SocketType::Stream } else { SocketType::Datagram };
        Handshake { socket_type, first_seq, mss, flight, kind, socket, cookie, peer }
    })
}

fn ack() -> impl Strategy<Value = FullAck> {
    let rates = prop::option::of((0u32..1 << 31, 0u32..1 << 31));
    let times = (1u32..=MAX_MICROS, 1u32..=MAX_MICROS);
    (any::<u32>(), seq(), times, 0u32..1 << 31, rates).prop_map(|(number, next, times, window, rates)| {
        FullAck {
            number,
            next,
            rtt: Nanos::micros(times.0.into()),
            rtt_variance: Nanos::micros(times.1.into()),
            window,
            rates: rates.map(|(arrival, capacity)| RateEstimates { arrival, capacity }),
        }
    })
}

fn control() -> impl Strategy<Value = PacketBody<'static>> {
    prop_oneof![
        handshake().prop_map(PacketBody::Handshake),
        Just(PacketBody::KeepAlive),
        seq().prop_map(PacketBody::LightAck),
        ack().prop_map(PacketBody::Ack),
        Just(PacketBody::CongestionWarning),
        Just(PacketBody::Shutdown),
        any::<u32>().prop_map(PacketBody::Ack2),
        any::<u32>().prop_map(PacketBody::Error),
    ]
}

proptest! {
    #[test]
    fn control_packets_come_back(body in control(), timestamp: u32, to: u32) {
        let packet = UdtPacket { timestamp, to: UdtSocketId(to), body };
        let mut buffer = [0xa5; 128];
        let length = packet.write(&mut buffer).unwrap();
        prop_assert_eq!(UdtPacket::parse(&buffer[..length]), Ok(packet));
        prop_assert!((0..length).all(|short| packet.write(&mut buffer[..short]).is_none()));
    }

    #[test]
    fn data_comes_back(first in seq(), message: u32, payload in prop::collection::vec(any::<u8>(), 1..100)) {
        let data = DataPacket { seq: first, message, payload: &payload };
        let packet = UdtPacket { timestamp: 7, to: UdtSocketId(9), body: PacketBody::Data(data) };
        let mut buffer = [0; 128];
        let length = packet.write(&mut buffer).unwrap();
        prop_assert_eq!(UdtPacket::parse(&buffer[..length]), Ok(packet));
    }

    #[test]
    fn loss_reports_come_back(ranges in prop::collection::vec(range(), 1..40)) {
        let mut room = [0; 512];
        let report = LossReport::write(ranges.iter().copied(), &mut room);
        let packet = UdtPacket { timestamp: 7, to: UdtSocketId(9), body: PacketBody::Nak(report) };
        let mut buffer = [0; 1024];
        let length = packet.write(&mut buffer).unwrap();
        let parsed = UdtPacket::parse(&buffer[..length]).unwrap();
        let PacketBody::Nak(parsed) = parsed.body else { panic!("a NAK") };
        prop_assert_eq!(parsed.ranges().collect::<Vec<_>>(), ranges);
    }

    /// Checks that a parsed packet is unchanged after it is written and parsed again.
    #[test]
    fn any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..10) {
        let mut bytes = bytes;
        let check = |bytes: &[u8]| {
            let Ok(packet) = UdtPacket::parse(bytes) else { return };
            let mut buffer = [0; 256];
            let length = packet.write(&mut buffer).unwrap();
            if !matches!(packet.body, PacketBody::Ack(ack) if ack.rtt.0 == 0 || ack.rtt_variance.0 == 0) {
                assert_eq!(UdtPacket::parse(&buffer[..length]), Ok(packet));
            }
            if let PacketBody::Nak(report) = packet.body {
                report.ranges().for_each(drop);
            }
        };
        check(&bytes);
        if bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&[0x80, kind, 0, 0]);
            check(&bytes);
        }
    }
}

#[test]
fn the_drafts_example_of_a_loss_report() {
    let ranges = [(2, 2), (6, 11), (14, 14)]
        .map(|(first, last)| SeqRange { first: Seq::new(first), last: Seq::new(last) });
    let mut room = [0; 64];
    let report = LossReport::write(ranges.into_iter(), &mut room);
    let expected: Vec<u8> = [2u32, 0x8000_0006, 0xb, 0xe].into_iter().flat_map(u32::to_be_bytes).collect();
    assert_eq!(report.bytes(), expected);
}

#[test]
fn an_address_is_as_libudt_sends_it() {
    assert_eq!(address_words("127.0.0.1".parse().unwrap()), [0x0100_007f, 0, 0, 0]);
    let words = address_words("::1".parse().unwrap());
    assert_eq!(words, [0, 0, 0, 0x0100_0000]);
}
