//! What travels: packets with data one way, acknowledgements the other.

use landspeed_units::Nanos;

/// The `flow` of a packet of the round-trip probe.
pub(crate) const PROBE: u16 = u16::MAX;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// Its number within its flow: TCP's segment, from 0. Of a probe: when it was sent.
    pub(crate) seq: u64,
    /// When the line has sent its last bit.
    pub(crate) leaves: Nanos,
    /// Index of the flow, or [`PROBE`].
    pub(crate) flow: u16,
    /// Bytes of the IP packet.
    pub(crate) size: u16,
    /// It goes nowhere, but has used the line.
    pub(crate) is_lost: bool,
}

/// An acknowledgement on its way back. The way back loses nothing, so that each need carry only what is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) arrives: Nanos,
    /// All segments below this number were received.
    pub(crate) next: u64,
    /// The segment above a gap that caused this acknowledgement (the first SACK block's newest part,
    /// RFC 2018 section 4); [`NONE`] where there is none.
    pub(crate) sacked: u64,
}

/// No segment.
pub(crate) const NONE: u64 = u64::MAX;
