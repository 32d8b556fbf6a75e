//! Cuts pieces out of a superpacket, as the kernel's own segmentation does (tcp_gso_segment and __udp_gso_segment). A
//! piece is again a superpacket, or a plain packet if it has one segment.

use std::ops::Range;

use super::frame::{ETHERNET, IPV6_HEADER, Superpacket};
use super::virtio::{SegmentKind, VIRTIO_LEN};

const FIN_PSH: u8 = 0x01 | 0x08;
const CWR: u8 = 0x80;
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;

/// Returns the length of the piece with these segments, in bytes, including the virtio header.
pub(super) fn piece_len(whole: &Superpacket, segments: &Range<u32>) -> usize {
    VIRTIO_LEN + whole.headers + payload(whole, segments).len()
}

fn payload(whole: &Superpacket, segments: &Range<u32>) -> Range<usize> {
    whole.payload_of(segments.start).start..whole.payload_of(segments.end - 1).end
}

/// Writes the piece with these segments into `out`, whose length must be [`piece_len`]. `frame` is the superpacket
/// without its virtio header.
pub(super) fn write_piece(whole: &Superpacket, frame: &[u8], segments: &Range<u32>, out: &mut [u8]) {
    let (head, out) = out.split_at_mut(VIRTIO_LEN);
    let checksum = match whole.segments {
        SegmentKind::Tcp => TCP_CHECKSUM,
        SegmentKind::Udp => UDP_CHECKSUM,
    };
    let many = segments.len() > 1;
    whole.virtio.piece(whole.transport, whole.headers, checksum, many).write(head);
    let payload = payload(whole, segments);
    copy_headers(whole, frame, &mut out[..whole.headers]);
    out[whole.headers..].copy_from_slice(&frame[whole.headers + whole.jumbo..][payload.clone()]);
    mend_network(whole, segments.start, out);
    mend_transport(whole, segments, payload.start, out);
    let sum = pseudo_header(whole, out);
    put(out, whole.transport + checksum, sum);
}

/// Copies all headers but the jumbo header, as ipv6_hopopt_jumbo_remove() does.
fn copy_headers(whole: &Superpacket, frame: &[u8], out: &mut [u8]) {
    const NEXT_HEADER: usize = ETHERNET + 6;
    let (network, rest) = out.split_at_mut(if whole.v6 { ETHERNET + IPV6_HEADER } else { whole.transport });
    let behind = network.len() + whole.jumbo;
    network.copy_from_slice(&frame[..network.len()]);
    rest.copy_from_slice(&frame[behind..whole.headers + whole.jumbo]);
    if whole.jumbo > 0 {
        network[NEXT_HEADER] = frame[network.len()];
    }
}

fn put(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn get(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn len16(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX)
}

/// Updates the IP length, and for IPv4 the identification and the header's checksum. `first` is the index of the
/// piece's first segment.
fn mend_network(whole: &Superpacket, first: u32, out: &mut [u8]) {
    if whole.v6 {
        let payload = len16(&out[ETHERNET + IPV6_HEADER..]);
        return put(out, ETHERNET + 4, payload);
    }
    let total = len16(&out[ETHERNET..]);
    put(out, ETHERNET + 2, total);
    let id = get(out, ETHERNET + 4).wrapping_add(first as u16);
    put(out, ETHERNET + 4, id);
    put(out, ETHERNET + 10, 0);
    let sum = !fold(sum(&out[ETHERNET..whole.transport]));
    put(out, ETHERNET + 10, sum);
}

/// Updates the sequence number and flags of TCP, or the length of UDP.
fn mend_transport(whole: &Superpacket, segments: &Range<u32>, payload_start: usize, out: &mut [u8]) {
    let at = whole.transport;
    match whole.segments {
        SegmentKind::Udp => {
            let length = len16(&out[at..]);
            put(out, at + 4, length);
        }
        SegmentKind::Tcp => {
            let sequence = u32::from_be_bytes([out[at + 4], out[at + 5], out[at + 6], out[at + 7]]);
            let sequence = sequence.wrapping_add(payload_start as u32);
            out[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
            if segments.end < whole.count() {
                out[at + 13] &= !FIN_PSH;
            }
            if segments.start > 0 {
                out[at + 13] &= !CWR;
            }
        }
    }
}

/// Returns the sum over the pseudo header (RFC 9293, section 3.1; RFC 8200, section 8.1), not inverted. The kernel
/// expects this value in the checksum field of a packet whose checksum it must complete.
fn pseudo_header(whole: &Superpacket, out: &[u8]) -> u16 {
    let addresses = match whole.v6 {
        true => &out[ETHERNET + 8..ETHERNET + 40],
        false => &out[ETHERNET + 12..ETHERNET + 20],
    };
    let protocol: u32 = match whole.segments {
        SegmentKind::Tcp => 6,
        SegmentKind::Udp => 17,
    };
    fold(sum(addresses) + protocol + u32::from(len16(&out[whole.transport..])))
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
