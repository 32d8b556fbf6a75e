//! The number of packets that a datagram becomes.

use landspeed_record::units::Bytes;

/// The size of UDP's header, which is in the first fragment only.
const UDP_HEADER: u64 = 8;
/// The unit of fragments: all fragments but the last carry multiples of this many bytes (RFC 791 section 3.2, RFC 8200
/// section 4.5).
const UNIT: u64 = 8;

/// The version of the Internet protocol that carries a datagram; its headers take room in each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4, with a header of 20 bytes (without options).
    V4,
    /// IPv6, with a header of 40 bytes, and in each fragment a fragment header of 8 more bytes.
    V6,
}

impl IpVersion {
    /// Returns the largest size in bytes, UDP header included, of a datagram that is not fragmented.
    fn whole(self, mtu: Bytes) -> u64 {
        mtu.0.saturating_sub(if self == IpVersion::V4 { 20 } else { 40 })
    }

    /// Returns the largest number of bytes that a fragment can carry.
    fn room(self, mtu: Bytes) -> u64 {
        mtu.0.saturating_sub(if self == IpVersion::V4 { 20 } else { 48 })
    }

    /// Returns the bytes that a fragment other than the last carries.
    fn unit(self, mtu: Bytes) -> u64 {
        (self.room(mtu) / UNIT * UNIT).max(UNIT)
    }
}

/// Returns the number of packets that a UDP datagram with `data` bytes becomes on a link with `mtu`.
///
/// jin.f.fragments, `ceil(data / (mtu - headers))`, counts the UDP header in every packet. This function follows RFC
/// 791: the header is in the first packet only, fragments are cut at multiples of 8, and the last one is as long as
/// fits. An MTU without room for 8 bytes carries nothing; the count is then that for 8 bytes per packet.
pub(super) fn fragments(data: Bytes, mtu: Bytes, ip: IpVersion) -> u64 {
    let datagram = data.0.saturating_add(UDP_HEADER);
    if datagram <= ip.whole(mtu) {
        return 1;
    }
    1 + datagram.saturating_sub(ip.room(mtu)).div_ceil(ip.unit(mtu)).max(1)
}

/// Returns the data of the largest UDP datagram that becomes `packets` packets (at least one) on a link with `mtu`.
pub fn largest(packets: u64, mtu: Bytes, ip: IpVersion) -> Bytes {
    let datagram = match packets {
        0 | 1 => ip.whole(mtu),
        more => ip.room(mtu).saturating_add((more - 1).saturating_mul(ip.unit(mtu))),
    };
    Bytes(datagram.saturating_sub(UDP_HEADER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_datagram_of_32_kb() {
        assert_eq!(fragments(Bytes::kib(32), Bytes(4096), IpVersion::V4), 9, "section 3.1");
        assert_eq!(fragments(Bytes::kib(32), Bytes(33_000), IpVersion::V4), 1, "their larger MTU");
    }

    #[test]
    fn steps_lie_just_below_multiples_of_the_mtu() {
        // 4076 bytes of room, of which fragments but the last use 4072.
        for (data, count) in [(0, 1), (4068, 1), (4069, 2), (4096, 2), (8140, 2), (8141, 3)] {
            assert_eq!(fragments(Bytes(data), Bytes(4096), IpVersion::V4), count, "{data} B");
        }
        assert_eq!(fragments(Bytes(1472), Bytes(1500), IpVersion::V4), 1);
        assert_eq!(fragments(Bytes(1473), Bytes(1500), IpVersion::V4), 2);
        assert_eq!(fragments(Bytes(1452), Bytes(1500), IpVersion::V6), 1);
        assert_eq!(fragments(Bytes(1453), Bytes(1500), IpVersion::V6), 2);
        assert_eq!(fragments(Bytes(16), Bytes(3), IpVersion::V4), 4);
    }

    #[test]
    fn one_byte_more_than_the_largest_is_one_packet_more() {
        for mtu in [576, 1280, 1500, 4096, 9000, 33_000].map(Bytes) {
            for ip in [IpVersion::V4, IpVersion::V6] {
                for packets in 1..40 {
                    let most = largest(packets, mtu, ip);
                    assert_eq!(fragments(most, mtu, ip), packets, "{most:?} at {mtu:?} {ip:?}");
                    assert_eq!(fragments(Bytes(most.0 + 1), mtu, ip), packets + 1, "{mtu:?} {ip:?}");
                }
            }
        }
    }
}
