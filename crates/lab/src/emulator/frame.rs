//! Parses frames. Each is one packet, or a superpacket of many segments that the sender's kernel has not cut.

use super::virtio::{SegmentKind, VIRTIO_LEN, VirtioHeader};

pub(super) const ETHERNET: usize = 14;
/// Size in bytes of the largest frame that is sent, with its virtio header. Its IP packet has the largest length that
/// the length field can express.
pub(super) const LARGEST_PIECE: usize = VIRTIO_LEN + ETHERNET + 65_535;
pub(super) const IPV6_HEADER: usize = 40;
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const ICMPV6: u8 = 58;
/// The message types of neighbour discovery, from router solicitation to redirect (RFC 4861, section 4).
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
const IGMP: u8 = 2;
/// The message types of multicast listener discovery: queries, reports and done messages (RFC 2710, section 3), and
/// reports of version 2 (RFC 3810).
const LISTENER_DISCOVERY: [u8; 4] = [130, 131, 132, 143];
const UDP_HEADER: usize = 8;
/// Length in bytes of a hop-by-hop header with only the jumbo payload option (RFC 2675). Linux adds one to IPv6
/// superpackets above 64 KiB ("BIG TCP"), and removes it from their segments.
const JUMBO: usize = 8;
const JUMBO_OPTION: u8 = 0xc2;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParsedFrame {
    /// ARP, neighbour discovery, or a report of multicast group members. These frames belong to a local network. No
    /// wide-area path carries them, because the routers at both ends would answer them.
    Neighbours,
    /// One packet. The value is the length of its IP packet in bytes.
    Packet(u32),
    /// A superpacket of many segments.
    Super(Superpacket),
}

/// The layout of a superpacket. Offsets and lengths are in bytes; offsets count from the start of the Ethernet header
/// of a segment cut out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Superpacket {
    pub(super) virtio: VirtioHeader,
    pub(super) segments: SegmentKind,
    pub(super) v6: bool,
    /// The offset of the TCP or UDP header.
    pub(super) transport: usize,
    /// The length of all headers of a segment, from Ethernet to transport.
    pub(super) headers: usize,
    /// Length of the jumbo header after the IPv6 header; 0 if there is none. Only the superpacket has it, not its
    /// segments.
    pub(super) jumbo: usize,
    /// The length of the whole payload.
    pub(super) payload: usize,
    /// The payload of each segment but the last one, which may have less.
    pub(super) segment: usize,
}

impl Superpacket {
    /// Returns the number of segments.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.payload.div_ceil(self.segment)).unwrap_or(u32::MAX)
    }

    /// Returns the range of the payload that segment `n` carries, counted from 0.
    pub(super) fn payload_of(&self, n: u32) -> std::ops::Range<usize> {
        let start = (n as usize * self.segment).min(self.payload);
        start..(start + self.segment).min(self.payload)
    }

    /// Returns the length of the IP packet of segment `n`, in bytes.
    pub(super) fn ip_len(&self, n: u32) -> u32 {
        u32::try_from(self.headers - ETHERNET + self.payload_of(n).len()).unwrap_or(u32::MAX)
    }
}

/// Parses a frame in a buffer that begins with its virtio header; `None` if it is too short.
pub(super) fn look(buffer: &[u8]) -> Option<ParsedFrame> {
    let virtio = VirtioHeader::read(buffer)?;
    let frame = buffer.get(VIRTIO_LEN..).filter(|frame| frame.len() >= ETHERNET)?;
    if is_neighbours(frame) {
        return Some(ParsedFrame::Neighbours);
    }
    let superpacket = virtio.segments().and_then(|segments| superpacket(virtio, segments, frame));
    let packet = u32::try_from(frame.len() - ETHERNET).unwrap_or(u32::MAX);
    Some(superpacket.map_or(ParsedFrame::Packet(packet), ParsedFrame::Super))
}

fn ethertype(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[12], frame[13]])
}

fn is_neighbours(frame: &[u8]) -> bool {
    match ethertype(frame) {
        ARP => true,
        IPV4 => frame.get(ETHERNET + 9) == Some(&IGMP),
        IPV6 => is_neighbours_v6(frame),
        _ => false,
    }
}

fn is_neighbours_v6(frame: &[u8]) -> bool {
    /// The length of the shortest extension header, in bytes. Listener reports have one extension header of this length
    /// (with a router alert).
    const SHORT: usize = 8;
    const HOP_BY_HOP: u8 = 0;
    let byte = |at: usize| frame.get(ETHERNET + at).copied();
    let kind = |at: usize| byte(at).unwrap_or_default();
    match (byte(6), byte(IPV6_HEADER)) {
        (Some(ICMPV6), _) => NEIGHBOUR_DISCOVERY.contains(&kind(IPV6_HEADER)),
        (Some(HOP_BY_HOP), Some(ICMPV6)) => LISTENER_DISCOVERY.contains(&kind(IPV6_HEADER + SHORT)),
        _ => false,
    }
}

/// Returns the length of the jumbo header of an IPv6 packet above 64 KiB, in bytes; 0 if there is none.
fn jumbo(frame: &[u8]) -> usize {
    const HOP_BY_HOP: u8 = 0;
    let option = frame.get(ETHERNET + IPV6_HEADER..ETHERNET + IPV6_HEADER + JUMBO).map(|header| header[2]);
    if frame.get(ETHERNET + 6) == Some(&HOP_BY_HOP) && option == Some(JUMBO_OPTION) { JUMBO } else { 0 }
}

/// Returns the layout of a superpacket. Returns `None` if the headers cannot be parsed or there is only one segment;
/// the frame is then handled as one packet.
fn superpacket(virtio: VirtioHeader, segments: SegmentKind, frame: &[u8]) -> Option<Superpacket> {
    let v6 = match ethertype(frame) {
        IPV4 => false,
        IPV6 => true,
        _ => return None,
    };
    let network = if v6 { IPV6_HEADER } else { usize::from(frame.get(ETHERNET)? & 0x0f) * 4 };
    let jumbo = if v6 { jumbo(frame) } else { 0 };
    let transport = virtio.transport_start().unwrap_or(ETHERNET + network + jumbo);
    let length = match segments {
        SegmentKind::Tcp => usize::from(frame.get(transport + 12)? >> 4) * 4,
        SegmentKind::Udp => UDP_HEADER,
    };
    let least = match segments {
        SegmentKind::Tcp => 20,
        SegmentKind::Udp => UDP_HEADER,
    };
    let payload = frame.len().checked_sub(transport + length)?;
    let segment = usize::from(virtio.segment);
    // IPv6 may have extension headers before the transport header.
    let first = ETHERNET + network + jumbo;
    let follows = if v6 { transport >= first } else { transport == first };
    let sound = network >= 20 && follows && length >= least;
    let (transport, headers) = (transport.checked_sub(jumbo)?, (transport + length).checked_sub(jumbo)?);
    let whole = Superpacket { virtio, segments, v6, transport, headers, jumbo, payload, segment };
    (sound && segment > 0 && payload > segment).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a frame with this EtherType and these bytes of its packet, with the virtio header first.
    fn frame(ethertype: u16, bytes: &[(usize, u8)]) -> Vec<u8> {
        let mut frame = vec![0; VIRTIO_LEN + ETHERNET + 80];
        frame[VIRTIO_LEN + 12..VIRTIO_LEN + 14].copy_from_slice(&ethertype.to_be_bytes());
        bytes.iter().for_each(|(at, byte)| frame[VIRTIO_LEN + ETHERNET + at] = *byte);
        frame
    }

    #[test]
    fn local_network_traffic_is_separated_from_the_paths_traffic() {
        const REPORT: u8 = 143;
        let hop_by_hop = |kind| frame(IPV6, &[(40, ICMPV6), (48, kind)]);
        for talk in [
            frame(ARP, &[]),
            frame(IPV4, &[(9, IGMP)]),
            frame(IPV6, &[(6, ICMPV6), (40, 135)]),
            hop_by_hop(REPORT),
            hop_by_hop(131),
        ] {
            assert_eq!(look(&talk), Some(ParsedFrame::Neighbours));
        }
        for traffic in [frame(IPV4, &[(9, 1)]), frame(IPV6, &[(6, ICMPV6), (40, 128)]), hop_by_hop(128)] {
            assert_eq!(look(&traffic), Some(ParsedFrame::Packet(80)), "ping");
        }
        assert_eq!(look(&[0; VIRTIO_LEN + 13]), None);
    }
}
