//! Reads the properties of an IP packet that the link needs: whether it carries payload, its ECN field, and whether it has
//! the codepoint of the second round trip. Also sets the ECN mark.

use super::frame::{ETHERNET, IPV6_HEADER};
use super::spec::SECOND_RTT_DSCP;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The largest number of IPv6 extension headers that are parsed. No host of a lab sends a packet with more.
const MOST_EXTENSIONS: usize = 8;
/// The ECN codepoint "congestion experienced" (RFC 3168, section 5).
const CE: u8 = 0b11;
const IPV4_TOS: usize = ETHERNET + 1;
const IPV4_CHECKSUM: usize = ETHERNET + 10;

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

/// The content of an IP packet.
struct IpContent<'a> {
    protocol: u8,
    bytes: &'a [u8],
    /// True for a fragment other than the first. Such a fragment has no transport header.
    is_rest: bool,
}

/// Returns true if the packet carries bytes of a TCP stream or a UDP datagram.
pub(super) fn has_payload(frame: &[u8]) -> bool {
    let Some(content) = ip_content(frame) else { return false };
    let header = match content.protocol {
        _ if content.is_rest => 0,
        TCP => content.bytes.get(12).map_or(usize::MAX, |offset| usize::from(offset >> 4) * 4),
        UDP => 8,
        _ => return false,
    };
    matches!(content.protocol, TCP | UDP) && content.bytes.len() > header
}

fn ip_content(frame: &[u8]) -> Option<IpContent<'_>> {
    match word(frame, 12)? {
        IPV4 => ip_content_v4(frame),
        IPV6 => ip_content_v6(frame),
        _ => None,
    }
}

fn ip_content_v4(frame: &[u8]) -> Option<IpContent<'_>> {
    const FRAGMENT_OFFSET: u16 = 0x1fff;
    let header = usize::from(frame.get(ETHERNET)? & 0x0f) * 4;
    let total = usize::from(word(frame, ETHERNET + 2)?);
    // Bytes after the packet are padding of the frame.
    let packet = frame[ETHERNET..].get(..total)?;
    let is_rest = word(frame, ETHERNET + 6)? & FRAGMENT_OFFSET != 0;
    Some(IpContent { protocol: *frame.get(ETHERNET + 9)?, bytes: packet.get(header..)?, is_rest })
}

fn ip_content_v6(frame: &[u8]) -> Option<IpContent<'_>> {
    const FRAGMENT: u8 = 44;
    let length = usize::from(word(frame, ETHERNET + 4)?);
    let mut protocol = *frame.get(ETHERNET + 6)?;
    let mut bytes = frame.get(ETHERNET + IPV6_HEADER..)?.get(..length)?;
    for _ in 0..MOST_EXTENSIONS {
        let header = match protocol {
            // Hop-by-hop, routing, destination options (RFC 8200, section 4).
            0 | 43 | 60 => usize::from(*bytes.get(1)?) * 8 + 8,
            FRAGMENT if word(bytes, 2)? >> 3 != 0 => {
                return Some(IpContent { protocol: bytes[0], bytes: bytes.get(8..)?, is_rest: true });
            }
            FRAGMENT => 8,
            _ => break,
        };
        (protocol, bytes) = (bytes[0], bytes.get(header..)?);
    }
    Some(IpContent { protocol, bytes, is_rest: false })
}

/// Returns true if the packet's sender supports ECN: its codepoint is ECT(0) or ECT(1).
pub(super) fn is_ect(frame: &[u8]) -> bool {
    traffic_class(frame).is_some_and(|class| matches!(class & CE, 0b01 | 0b10))
}

/// Returns true if the packet's flow takes the second round trip: its DSCP is [`SECOND_RTT_DSCP`].
pub(super) fn is_far(frame: &[u8]) -> bool {
    traffic_class(frame).is_some_and(|class| class >> 2 == SECOND_RTT_DSCP)
}

/// Returns the traffic class of an IP packet: its DSCP, and in the lower two bits its ECN field (RFC 2474, section 3).
fn traffic_class(frame: &[u8]) -> Option<u8> {
    match word(frame, 12)? {
        IPV4 => frame.get(IPV4_TOS).copied(),
        // The version's four bits are before it.
        IPV6 => word(frame, ETHERNET).map(|word| (word >> 4) as u8),
        _ => None,
    }
}

/// Marks an IP packet "congestion experienced", and updates an IPv4 header's checksum.
pub(super) fn mark_ce(frame: &mut [u8]) {
    match word(frame, 12) {
        Some(IPV6) if frame.len() > ETHERNET + 1 => frame[ETHERNET + 1] |= CE << 4,
        Some(IPV4) if frame.len() >= ETHERNET + 20 => {
            let old = u16::from_be_bytes([frame[ETHERNET], frame[IPV4_TOS]]);
            frame[IPV4_TOS] |= CE;
            let new = u16::from_be_bytes([frame[ETHERNET], frame[IPV4_TOS]]);
            let sum = u16::from_be_bytes([frame[IPV4_CHECKSUM], frame[IPV4_CHECKSUM + 1]]);
            frame[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&updated(sum, old, new).to_be_bytes());
        }
        _ => {}
    }
}

/// Returns the checksum after one word of the data that it covers changed (RFC 1624, equation 3).
fn updated(sum: u16, old: u16, new: u16) -> u16 {
    let mut total = u32::from(!sum) + u32::from(!old) + u32::from(new);
    while total > 0xffff {
        total = (total >> 16) + (total & 0xffff);
    }
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds a frame with an IPv4 packet of this protocol, ECN field and transport part, and some padding.
    fn v4(protocol: u8, ecn: u8, transport: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET + 20];
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        frame[15] = 0xb8 | ecn;
        frame[16..18].copy_from_slice(&(20 + transport.len() as u16).to_be_bytes());
        frame[22..24].copy_from_slice(&[64, protocol]);
        frame[26..34].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
        let sum = !ones_sum(&frame[ETHERNET..]);
        frame[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        frame.extend_from_slice(transport);
        frame.extend_from_slice(&[0; 6]);
        frame
    }

    fn v6(next: u8, ecn: u8, rest: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET + IPV6_HEADER];
        frame[12..16].copy_from_slice(&[0x86, 0xdd, 0x60, ecn << 4]);
        frame[18..20].copy_from_slice(&(rest.len() as u16).to_be_bytes());
        frame[20] = next;
        frame.extend_from_slice(rest);
        frame
    }

    fn ones_sum(bytes: &[u8]) -> u16 {
        let sum: u32 = bytes.chunks_exact(2).map(|b| u32::from(u16::from_be_bytes([b[0], b[1]]))).sum();
        let sum = (sum >> 16) + (sum & 0xffff);
        ((sum >> 16) + (sum & 0xffff)) as u16
    }

    /// Builds a TCP header of 32 bytes and `payload` bytes after it.
    fn tcp(payload: usize) -> Vec<u8> {
        let mut bytes = vec![0; 32 + payload];
        bytes[12] = 8 << 4;
        bytes
    }

    #[test]
    fn payload_follows_the_transport_header() {
        assert!(has_payload(&v4(TCP, 0, &tcp(1))) && !has_payload(&v4(TCP, 0, &tcp(0))));
        assert!(has_payload(&v6(TCP, 0, &tcp(1))) && !has_payload(&v6(TCP, 0, &tcp(0))));
        assert!(has_payload(&v4(UDP, 0, &[0; 9])) && !has_payload(&v4(UDP, 0, &[0; 8])));
        assert!(!has_payload(&v4(1, 0, &[0; 64])), "ping");
        // Destination options of 16 bytes, then TCP; a first fragment, and a later one.
        let options = [&[TCP, 1][..], &[0; 14], &tcp(1)].concat();
        assert!(has_payload(&v6(60, 0, &options)));
        assert!(has_payload(&v6(44, 0, &[&[TCP, 0, 0, 1, 0, 0, 0, 0][..], &tcp(1)].concat())));
        assert!(has_payload(&v6(44, 0, &[&[UDP, 0, 0, 8, 0, 0, 0, 0][..], &[0; 3]].concat())));
    }

    #[test]
    fn only_ecn_capable_packets_are_marked() {
        for (ecn, understands) in [(0, false), (1, true), (2, true), (3, false)] {
            assert_eq!(is_ect(&v4(TCP, ecn, &tcp(0))), understands);
            assert_eq!(is_ect(&v6(TCP, ecn, &tcp(0))), understands);
        }
        // The packets of `v4` have the DSCP 46, whatever their ECN field.
        for ecn in 0..4 {
            assert_eq!(traffic_class(&v4(TCP, ecn, &tcp(0))), Some(0xb8 | ecn));
            assert_eq!(traffic_class(&v6(TCP, ecn, &tcp(0))), Some(ecn));
        }
        let mut frame = v6(TCP, 2, &tcp(0));
        mark_ce(&mut frame);
        assert_eq!(frame[ETHERNET..ETHERNET + 2], [0x60, 0x30]);
    }

    #[test]
    fn the_second_round_trip_has_a_codepoint_of_its_own() {
        let (mut four, mut six) = (v4(TCP, 0, &tcp(1)), v6(UDP, 0, &[0; 9]));
        assert!(!is_far(&four) && !is_far(&six));
        for ecn in 0..4 {
            let class = (SECOND_RTT_DSCP << 2) | ecn;
            four[IPV4_TOS] = class;
            (six[ETHERNET], six[ETHERNET + 1]) = (0x60 | (class >> 4), class << 4);
            assert!(is_far(&four) && is_far(&six), "ECN {ecn}");
        }
        four[IPV4_TOS] = (SECOND_RTT_DSCP + 1) << 2;
        // An ARP frame has no traffic class, whatever its bytes.
        six[12..14].copy_from_slice(&[0x08, 0x06]);
        assert!(!is_far(&four) && !is_far(&six) && !is_far(&[0; 13]));
    }

    #[test]
    fn a_marked_header_has_a_true_checksum() {
        for ecn in [1, 2] {
            let mut frame = v4(TCP, ecn, &tcp(3));
            mark_ce(&mut frame);
            assert_eq!(frame[IPV4_TOS], 0xbb);
            assert_eq!(ones_sum(&frame[ETHERNET..ETHERNET + 20]), 0xffff);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_at_and_marked(
            kind in prop::sample::select(vec![IPV4, IPV6]),
            mut bytes in prop::collection::vec(any::<u8>(), 0..120),
        ) {
            if bytes.len() >= 14 {
                bytes[12..14].copy_from_slice(&kind.to_be_bytes());
            }
            has_payload(&bytes);
            is_far(&bytes);
            let was = is_ect(&bytes);
            mark_ce(&mut bytes);
            prop_assert!(!is_ect(&bytes) || !was || bytes.len() < ETHERNET + 20);
        }
    }
}
