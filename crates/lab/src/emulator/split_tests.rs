//! Compares pieces with the superpacket that they were cut out of.

use proptest::prelude::*;

use super::super::frame::{ParsedFrame, look};
use super::super::virtio::VirtioHeader;
use super::*;

const SEQUENCE: u32 = u32::MAX - 1000;
const ALL_FLAGS: u8 = 0xff;

/// Builds a superpacket with made-up addresses, as the kernel hands it over.
fn build(segments: SegmentKind, v6: bool, segment: u16, payload: &[u8]) -> Vec<u8> {
    build_with(&[], segments, v6, segment, payload)
}

/// Builds a superpacket with the bytes `extra` between the IP header and the transport header.
fn build_with(extra: &[u8], segments: SegmentKind, v6: bool, segment: u16, payload: &[u8]) -> Vec<u8> {
    let network = if v6 { 40 } else { 20 };
    let mut transport = vec![0x11; if segments == SegmentKind::Tcp { 32 } else { 8 }];
    if segments == SegmentKind::Tcp {
        transport[4..8].copy_from_slice(&SEQUENCE.to_be_bytes());
        transport[12] = 8 << 4;
        transport[13] = ALL_FLAGS;
    }
    let mut ip: Vec<u8> = (1..=network).collect();
    if !v6 {
        ip[0] = 0x45;
    }
    let mut frame = vec![2; 12];
    frame.extend(if v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
    frame.extend(ip);
    frame.extend(extra);
    let virtio = VirtioHeader::super_packet(segments, v6, segment, frame.len());
    frame.extend(transport);
    frame.extend(payload);
    [&virtio.bytes()[..], &frame].concat()
}

fn superpacket(buffer: &[u8]) -> Superpacket {
    match look(buffer) {
        Some(ParsedFrame::Super(whole)) => whole,
        other => panic!("{other:?}"),
    }
}

/// Computes the expected sum over the pseudo header in another way: over the header laid out in memory.
fn expected_sum(frame: &[u8], whole: &Superpacket) -> u16 {
    let length = u32::try_from(frame.len() - whole.transport).unwrap();
    let protocol = if whole.segments == SegmentKind::Tcp { 6_u32 } else { 17 };
    let addresses = if whole.v6 { &frame[22..54] } else { &frame[26..34] };
    let pseudo = [addresses, &length.to_be_bytes(), &protocol.to_be_bytes()].concat();
    let total: u64 = pseudo.chunks(2).map(|p| u64::from(u16::from_be_bytes([p[0], p[1]]))).sum();
    // A sum modulo 0xffff, with 0xffff for zero: the carry of ones' complement.
    u16::try_from((total - 1) % 0xffff + 1).unwrap()
}

fn check_network(piece: &[u8], whole: &Superpacket, original: &[u8], first: u32) {
    if whole.v6 {
        assert_eq!(usize::from(get(piece, 18)), piece.len() - 54);
        return;
    }
    assert_eq!(usize::from(get(piece, 16)), piece.len() - 14);
    assert_eq!(get(piece, 18), get(original, 18).wrapping_add(first as u16));
    assert_eq!(fold(sum(&piece[14..34])), 0xffff, "the header's checksum holds");
}

fn check_tcp(piece: &[u8], whole: &Superpacket, segments: &Range<u32>) {
    let at = whole.transport;
    let sequence = u32::from_be_bytes(piece[at + 4..at + 8].try_into().unwrap());
    assert_eq!(sequence, SEQUENCE.wrapping_add(segments.start * whole.segment as u32));
    let (first, last) = (segments.start == 0, segments.end == whole.count());
    let expected = ALL_FLAGS & if first { 0xff } else { 0x7f } & if last { 0xff } else { 0xf6 };
    assert_eq!(piece[at + 13], expected);
}

fn kinds() -> impl Strategy<Value = (SegmentKind, bool)> {
    (prop_oneof![Just(SegmentKind::Tcp), Just(SegmentKind::Udp)], any::<bool>())
}

proptest! {
    #[test]
    fn pieces_make_up_the_whole(
        (kind, v6) in kinds(),
        segment in 1..1500_u16,
        payload in prop::collection::vec(any::<u8>(), 2..6000),
        step in 1..9_u32,
    ) {
        prop_assume!(payload.len() > segment.into());
        let buffer = build(kind, v6, segment, &payload);
        let whole = superpacket(&buffer);
        prop_assert_eq!(whole.count() as usize, payload.len().div_ceil(segment.into()));
        let mut joined: Vec<u8> = Vec::new();
        for first in (0..whole.count()).step_by(step as usize) {
            let segments = first..(first + step).min(whole.count());
            let mut piece = vec![0; piece_len(&whole, &segments)];
            write_piece(&whole, &buffer[VIRTIO_LEN..], &segments, &mut piece);
            let frame = &piece[VIRTIO_LEN..];
            joined.extend(&frame[whole.headers..]);
            check_network(frame, &whole, &buffer[VIRTIO_LEN..], first);
            if kind == SegmentKind::Tcp {
                check_tcp(frame, &whole, &segments);
            } else {
                prop_assert_eq!(usize::from(get(frame, whole.transport + 4)), frame.len() - whole.transport);
            }
            let checksum = if kind == SegmentKind::Tcp { 16 } else { 6 };
            prop_assert_eq!(get(frame, whole.transport + checksum), expected_sum(frame, &whole));
            let lengths: u32 = segments.clone().map(|n| whole.ip_len(n)).sum();
            let extra = (segments.len() - 1) * (whole.headers - 14);
            prop_assert_eq!(lengths as usize, frame.len() - 14 + extra);
            if segments.len() > 1 {
                prop_assert_eq!(superpacket(&piece).count() as usize, segments.len());
            } else {
                prop_assert_eq!(look(&piece), Some(ParsedFrame::Packet(lengths)));
            }
        }
        prop_assert_eq!(joined, payload);
    }

    #[test]
    fn nonsense_is_never_followed(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..8_u8) {
        if let Some(gso) = bytes.get_mut(1) {
            *gso = kind;
        }
        if let Some(ParsedFrame::Super(whole)) = look(&bytes) {
            let frame = &bytes[VIRTIO_LEN..];
            for n in 0..whole.count() {
                let mut piece = vec![0; piece_len(&whole, &(n..n + 1))];
                write_piece(&whole, frame, &(n..n + 1), &mut piece);
            }
        }
    }
}

#[test]
fn segments_of_a_jumbogram_are_plain_packets() {
    let payload: Vec<u8> = (0..100_000).map(|n| n as u8).collect();
    let plain = build(SegmentKind::Tcp, true, 1400, &payload);
    // Next header 7, as build() numbers the IPv6 header; 8 bytes; the jumbo payload option and its length.
    let mut jumbo = build_with(&[7, 0, 0xc2, 4, 0, 1, 0x86, 0xc8], SegmentKind::Tcp, true, 1400, &payload);
    jumbo[VIRTIO_LEN + 14 + 6] = 0;
    let (plain_whole, jumbo_whole) = (superpacket(&plain), superpacket(&jumbo));
    for segments in [0..1, 3..20, 60..72] {
        let piece = |buffer: &[u8], whole: &Superpacket| {
            let mut piece = vec![0; piece_len(whole, &segments)];
            write_piece(whole, &buffer[VIRTIO_LEN..], &segments, &mut piece);
            piece
        };
        assert_eq!(piece(&jumbo, &jumbo_whole), piece(&plain, &plain_whole));
    }
}

#[test]
fn local_network_traffic_is_recognised() {
    let frame = |ethertype: u16, rest: &[u8]| {
        [&VirtioHeader::plain().bytes()[..], &[2; 12], &ethertype.to_be_bytes(), rest].concat()
    };
    let icmpv6 = |kind: u8| {
        let mut ip = vec![0; 48];
        (ip[6], ip[40]) = (58, kind);
        look(&frame(0x86dd, &ip))
    };
    assert_eq!(look(&frame(0x0806, &[0; 28])), Some(ParsedFrame::Neighbours));
    assert_eq!(icmpv6(135), Some(ParsedFrame::Neighbours));
    assert_eq!(icmpv6(128), Some(ParsedFrame::Packet(48)), "an echo request is traffic");
    assert_eq!(look(&frame(0x0800, &[0; 28])), Some(ParsedFrame::Packet(28)));
    assert_eq!(look(&[0; 23]), None);
}
