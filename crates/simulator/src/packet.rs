//! Packets with data in one direction, and acknowledgements in the other.

use landspeed_record::units::Nanos;

/// The `flow` of a round-trip probe's packet.
pub(crate) const PROBE: u16 = u16::MAX;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedPacket {
    /// The packet's number within the flow, from 0; for TCP, the segment's number. For a probe, its sending time.
    pub(crate) seq: u64,
    /// The time at which the line has sent the last bit.
    pub(crate) leaves: Nanos,
    /// Index of the flow, or [`PROBE`].
    pub(crate) flow: u16,
    /// Size of the IP packet, in bytes.
    pub(crate) size: u16,
    /// True if the line loses the packet after transmitting it.
    pub(crate) is_lost: bool,
}

/// An acknowledgement on its way back. None is lost there, so each carries only new information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcpAck {
    pub(crate) arrives: Nanos,
    /// All segments below this number were received.
    pub(crate) next: u64,
    /// The segment above a gap that caused this acknowledgement (the newest part of the first SACK block,
    /// RFC 2018 section 4); [`NONE`] if there is none.
    pub(crate) sacked: u64,
}

/// The value of [`TcpAck::sacked`] if no segment arrived above a gap.
pub(crate) const NONE: u64 = u64::MAX;
