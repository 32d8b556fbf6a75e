//! The simulated packets: data packets in one direction, acknowledgements in the other.

use landspeed_record::units::Nanos;

/// The value of [`SimulatedPacket::flow`] for a round-trip probe.
pub(crate) const PROBE: u16 = u16::MAX;
/// The value of [`SimulatedPacket::flow`] for a packet of others, which ends at the end of the line.
pub(crate) const OTHERS: u16 = u16::MAX - 1;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedPacket {
    /// The packet's number within the flow; for TCP, the segment's number, from 0. For a probe it is the sending
    /// time.
    pub(crate) seq: u64,
    /// The time at which the line has sent the last bit.
    pub(crate) leaves: Nanos,
    /// Index of the flow, [`PROBE`] or [`OTHERS`].
    pub(crate) flow: u16,
    /// Size of the IP packet, in bytes.
    pub(crate) size: u16,
    /// True if the line loses the packet after transmitting it.
    pub(crate) is_lost: bool,
}

/// A TCP acknowledgement on its way to the sender. No acknowledgement is lost, so each one carries only new
/// information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcpAck {
    pub(crate) arrives: Nanos,
    /// All segments below this number were received.
    pub(crate) next: u64,
    /// The segment above a gap whose arrival caused this acknowledgement (the newest part of the first SACK block,
    /// RFC 2018 section 4); [`NONE`] if the acknowledgement has another cause.
    pub(crate) sacked: u64,
}

/// The value of [`TcpAck::sacked`] for an acknowledgement that no segment above a gap has caused.
pub(crate) const NONE: u64 = u64::MAX;
