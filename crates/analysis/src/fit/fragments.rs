//! How many packets a datagram becomes.

use landspeed_units::Bytes;

/// UDP's header, which travels in the first fragment only.
const UDP_HEADER: u64 = 8;
/// Fragments but the last carry multiples of this (RFC 791 section 3.2).
const UNIT: u64 = 8;

/// Packets that a UDP datagram with `data` bytes becomes on a link with `mtu`, of which each packet
/// spends `ip_header` bytes (20 for IPv4; 48 for IPv6 with its fragment header).
///
/// jin.f.fragments, `ceil(data / (mtu - headers))`, counts the UDP header in every packet; this follows
/// RFC 791: it is in the first one only, and fragments are cut at multiples of 8. An MTU without room for
/// 8 bytes carries nothing, and the count is that of 8 bytes a packet.
pub fn fragments(data: Bytes, mtu: Bytes, ip_header: Bytes) -> u64 {
    let datagram = data.0.saturating_add(UDP_HEADER);
    let room = mtu.0.saturating_sub(ip_header.0);
    if datagram <= room {
        return 1;
    }
    datagram.div_ceil((room / UNIT * UNIT).max(UNIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPV4: Bytes = Bytes(20);

    #[test]
    fn the_papers_datagram_of_32_kb() {
        assert_eq!(fragments(Bytes::kib(32), Bytes(4096), IPV4), 9, "section 3.1");
        assert_eq!(fragments(Bytes::kib(32), Bytes(33_000), IPV4), 1, "their larger MTU");
    }

    #[test]
    fn steps_lie_just_below_multiples_of_the_mtu() {
        for (data, count) in [(0, 1), (4068, 1), (4069, 2), (4096, 2), (8136, 2), (8137, 3)] {
            assert_eq!(fragments(Bytes(data), Bytes(4096), IPV4), count, "{data} B");
        }
        assert_eq!(fragments(Bytes(1472), Bytes(1500), IPV4), 1);
        assert_eq!(fragments(Bytes(1473), Bytes(1500), IPV4), 2);
        assert_eq!(fragments(Bytes(16), Bytes(3), IPV4), 3);
    }
}
