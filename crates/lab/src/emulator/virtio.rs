//! The virtio header in front of each frame of a packet socket with `PACKET_VNET_HDR`. It describes the offload work
//! that is left to do for the frame: its checksum and its segmentation (struct virtio_net_hdr,
//! include/uapi/linux/virtio_net.h).

/// The length of the header, in bytes. Its fields are in the host's byte order.
pub(super) const VIRTIO_LEN: usize = 10;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// A flag in `gso_type`: only the first segment keeps TCP's CWR flag.
const GSO_ECN: u8 = 0x80;

/// A virtio header: the checksum and the segmentation that are left to do for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VirtioHeader {
    flags: u8,
    gso_type: u8,
    /// The number of contiguous bytes that the kernel allocates, for the headers.
    header_len: u16,
    /// The payload of one segment, in bytes.
    pub(super) segment: u16,
    /// The offset of the first byte that the checksum covers.
    csum_start: u16,
    csum_offset: u16,
}

/// The protocol of the segments of a superpacket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentKind {
    Tcp,
    Udp,
}

impl VirtioHeader {
    /// Parses the header at the start of the buffer; `None` if the buffer is too short.
    pub(super) fn read(buffer: &[u8]) -> Option<Self> {
        let b: &[u8; VIRTIO_LEN] = buffer.first_chunk()?;
        let word = |at: usize| u16::from_ne_bytes([b[at], b[at + 1]]);
        Some(VirtioHeader {
            flags: b[0],
            gso_type: b[1],
            header_len: word(2),
            segment: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        })
    }

    /// Writes the header to the start of the buffer.
    pub(super) fn write(&self, buffer: &mut [u8]) {
        buffer[0] = self.flags;
        buffer[1] = self.gso_type;
        let words = [self.header_len, self.segment, self.csum_start, self.csum_offset];
        for (place, word) in buffer[2..VIRTIO_LEN].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
    }

    /// Returns the protocol of a superpacket's segments. Returns `None` for a plain packet, and for GSO types that
    /// hosts of a lab do not send.
    pub(super) fn segments(&self) -> Option<SegmentKind> {
        match self.gso_type & !GSO_ECN {
            GSO_TCPV4 | GSO_TCPV6 => Some(SegmentKind::Tcp),
            GSO_UDP_L4 => Some(SegmentKind::Udp),
            _ => None,
        }
    }

    /// Returns the offset of the transport header; `None` if the kernel does not report it.
    pub(super) fn transport_start(&self) -> Option<usize> {
        (self.flags & NEEDS_CSUM != 0).then_some(self.csum_start.into())
    }

    /// Returns the header with `header_len` set to `headers`, in bytes. The kernel reports the length of all contiguous
    /// bytes of the frame, and would allocate that many contiguous bytes again.
    pub(super) fn with_headers(self, headers: usize) -> Self {
        VirtioHeader { header_len: u16::try_from(headers).unwrap_or(self.header_len), ..self }
    }

    /// Returns the header for a piece of this superpacket. `whole` is true if the piece is again a superpacket. The
    /// kernel computes the checksum of the piece.
    pub(super) fn piece(self, transport: usize, headers: usize, checksum_at: usize, whole: bool) -> Self {
        let short = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        VirtioHeader {
            flags: NEEDS_CSUM,
            gso_type: if whole { self.gso_type } else { GSO_NONE },
            header_len: short(headers),
            segment: if whole { self.segment } else { 0 },
            csum_start: short(transport),
            csum_offset: short(checksum_at),
        }
    }
}

#[cfg(test)]
impl VirtioHeader {
    /// Returns the header of a superpacket as the kernel hands it over.
    pub(super) fn super_packet(segments: SegmentKind, v6: bool, segment: u16, transport: usize) -> Self {
        let (gso_type, csum_offset) = match (segments, v6) {
            (SegmentKind::Tcp, false) => (GSO_TCPV4 | GSO_ECN, 16),
            (SegmentKind::Tcp, true) => (GSO_TCPV6 | GSO_ECN, 16),
            (SegmentKind::Udp, _) => (GSO_UDP_L4, 6),
        };
        let csum_start = u16::try_from(transport).unwrap();
        VirtioHeader { flags: NEEDS_CSUM, gso_type, header_len: 0, segment, csum_start, csum_offset }
    }

    /// Returns the header of a packet with nothing left to do.
    pub(super) fn plain() -> Self {
        VirtioHeader {
            flags: 0,
            gso_type: GSO_NONE,
            header_len: 0,
            segment: 0,
            csum_start: 0,
            csum_offset: 0,
        }
    }

    /// Returns the bytes of the header.
    pub(super) fn bytes(&self) -> [u8; VIRTIO_LEN] {
        let mut bytes = [0; VIRTIO_LEN];
        self.write(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_it_writes() {
        let bytes = [1, 0x81, 66, 0, 0xa8, 5, 34, 0, 16, 0].map(|b: u8| b);
        let header = VirtioHeader::read(&bytes).unwrap();
        assert_eq!(header.bytes(), bytes);
        assert_eq!(header.segments(), Some(SegmentKind::Tcp), "whatever the ECN bit says");
        assert_eq!(VirtioHeader::read(&bytes[..9]), None);
        assert_eq!(VirtioHeader::plain().segments(), None);
        assert_eq!(VirtioHeader::plain().transport_start(), None);
    }
}
