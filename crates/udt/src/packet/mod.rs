//! The format of packets on the wire (draft-gg-udt-03 section 2): 16 bytes of header, then payload or control
//! information. All words are big-endian. Where the draft and Debian's libudt 4.11 differ, this format is that of
//! libudt, and a comment marks each such place.

mod handshake;
mod loss_report;
#[cfg(test)]
mod tests;
mod words;

use landspeed_record::units::Nanos;
use thiserror::Error;

pub use self::handshake::{Handshake, HandshakeKind, SocketType};
pub use self::loss_report::LossReport;
pub(crate) use self::words::put;
use self::words::{get, put_all, seq_at, word_at};
use crate::seq::{Seq, UdtSocketId};

/// The length of a packet's header, in bytes.
pub const HEADER: usize = 16;
/// The length of a handshake packet with its header, in bytes.
pub const HANDSHAKE: usize = HEADER + 48;
/// The length of the headers of IPv4 and UDP, in bytes. The packet size in a handshake includes them, even over IPv6.
pub const UDP_HEADERS: usize = 28;
/// The smallest packet size that a handshake may propose, in bytes with the headers of IPv4 and UDP.
pub const MIN_MSS: u32 = (UDP_HEADERS + 48) as u32;
/// The largest packet size that a handshake may propose, in bytes: the limit of IPv4.
pub(crate) const MAX_MSS: u32 = 65_535;

/// The reason why a datagram is not a valid packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The datagram is shorter than a packet of its kind.
    #[error("the packet is too short")]
    Short,
    /// A data packet has no data. No implementation sends such packets.
    #[error("the data packet has no data")]
    Empty,
    /// The control packet has a type that UDT4 does not define, or that only connections of messages have (type 7).
    #[error("the control packet has an unknown type")]
    Type,
    /// A sequence number has its first bit set, or a range ends before it begins.
    #[error("the packet has an impossible sequence number")]
    Sequence,
    /// The version, socket type, packet size, flight size, request type or socket identifier of a handshake is
    /// invalid.
    #[error("the handshake has an impossible {0}")]
    Handshake(&'static str),
    /// The round trip in an acknowledgement is more than half an hour.
    #[error("the acknowledgement has an impossible round trip")]
    RoundTrip,
}

/// A packet, borrowed from its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdtPacket<'a> {
    /// The microseconds since the sender's connection began, modulo 2^32.
    pub timestamp: u32,
    /// The identifier of the destination connection.
    pub to: UdtSocketId,
    /// Data, or one of the kinds of control packets.
    pub body: PacketBody<'a>,
}

/// The content of a packet (draft-gg-udt-03 section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketBody<'a> {
    /// A piece of the stream.
    Data(DataPacket<'a>),
    /// Type 0: the handshake.
    Handshake(Handshake),
    /// Type 1: the peer is alive.
    KeepAlive,
    /// Type 2 with only a sequence number: all packets before that number have arrived.
    LightAck(Seq),
    /// Type 2 in full: an acknowledgement with the receiver's estimates of the path.
    Ack(FullAck),
    /// Type 3: a report of lost packets.
    Nak(LossReport<'a>),
    /// Type 4: a warning of congestion. libudt accepts it but sends none.
    CongestionWarning,
    /// Type 5: the peer has closed the connection.
    Shutdown,
    /// Type 6: the acknowledgement with this number has arrived.
    Ack2(u32),
    /// Type 8, an extension of libudt: the peer could not process a packet that it received. Holds the peer's code.
    Error(u32),
}

/// The local time at which a packet is sent or arrives, and the timestamp in its header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketTime {
    pub(crate) now: Nanos,
    pub(crate) timestamp: u32,
}

/// A data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPacket<'a> {
    /// The packet's sequence number.
    pub seq: Seq,
    /// The second word, which describes the packet's message. The receiver of a stream ignores it.
    pub message: u32,
    /// The payload: at least one byte.
    pub payload: &'a [u8],
}

/// A full acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullAck {
    /// The number of this acknowledgement, which the ACK2 repeats.
    pub number: u32,
    /// The first packet that has not arrived. All packets before it have.
    pub next: Seq,
    /// The receiver's estimate of the round-trip time.
    pub rtt: Nanos,
    /// The mean deviation of the round-trip time, which the draft calls variance.
    pub rtt_variance: Nanos,
    /// The number of packets from `next` on for which the receiver has room.
    pub window: u32,
    /// The receiver's estimates of rates. At most one acknowledgement in 10 ms has them.
    pub rates: Option<RateEstimates>,
}

/// A receiver's estimates of the path, in packets per second; 0 if it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateEstimates {
    /// The rate at which packets arrive.
    pub arrival: u32,
    /// The rate that the path could carry.
    pub capacity: u32,
}

impl<'a> UdtPacket<'a> {
    /// Parses a datagram.
    ///
    /// # Errors
    /// Returns an error if the datagram is not a valid packet.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, PacketError> {
        let (header, rest) = datagram.split_at_checked(HEADER).ok_or(PacketError::Short)?;
        let body = match Seq::from_wire(get(header, 0)) {
            Some(_) if rest.is_empty() => return Err(PacketError::Empty),
            Some(seq) => PacketBody::Data(DataPacket { seq, message: get(header, 1), payload: rest }),
            None => PacketBody::parse_control(get(header, 0), get(header, 1), rest)?,
        };
        Ok(UdtPacket { timestamp: get(header, 2), to: UdtSocketId(get(header, 3)), body })
    }

    /// Writes the packet into `buffer` and returns its length; `None` if it does not fit.
    pub fn write(&self, buffer: &mut [u8]) -> Option<usize> {
        let (header, rest) = buffer.split_at_mut_checked(HEADER)?;
        put(header, 2, self.timestamp);
        put(header, 3, self.to.0);
        if let PacketBody::Data(data) = &self.body {
            put(header, 0, data.seq.to_wire());
            put(header, 1, data.message);
            rest.get_mut(..data.payload.len())?.copy_from_slice(data.payload);
            return Some(HEADER + data.payload.len());
        }
        let (kind, additional) = self.body.control_words();
        put(header, 0, 1 << 31 | kind << 16);
        put(header, 1, additional);
        Some(HEADER + self.body.write_information(rest)?)
    }
}

impl<'a> PacketBody<'a> {
    fn parse_control(word: u32, additional: u32, rest: &'a [u8]) -> Result<Self, PacketError> {
        // libudt sends four bytes even in packets without information: they are ignored.
        Ok(match (word >> 16) & 0x7fff {
            0 => PacketBody::Handshake(Handshake::parse(rest)?),
            1 => PacketBody::KeepAlive,
            2 => Self::parse_ack(additional, rest)?,
            3 => PacketBody::Nak(LossReport::parse(rest)?),
            4 => PacketBody::CongestionWarning,
            5 => PacketBody::Shutdown,
            6 => PacketBody::Ack2(additional),
            8 => PacketBody::Error(additional),
            _ => return Err(PacketError::Type),
        })
    }

    fn parse_ack(number: u32, rest: &'a [u8]) -> Result<Self, PacketError> {
        let next = seq_at(rest, 0)?;
        if rest.len() == 4 {
            return Ok(PacketBody::LightAck(next));
        }
        let [rtt, variance, window] = [1, 2, 3].map(|index| word_at(rest, index));
        let (rtt, rtt_variance) = (micros(rtt?)?, micros(variance?)?);
        let rates = match (word_at(rest, 4), word_at(rest, 5)) {
            // libudt's values are signed; a negative one means that there is no estimate.
            (Ok(arrival), Ok(capacity)) => {
                Some(RateEstimates { arrival: rate(arrival), capacity: rate(capacity) })
            }
            _ => None,
        };
        Ok(PacketBody::Ack(FullAck { number, next, rtt, rtt_variance, window: rate(window?), rates }))
    }

    fn control_words(&self) -> (u32, u32) {
        match self {
            PacketBody::Handshake(_) | PacketBody::Data(_) => (0, 0),
            PacketBody::KeepAlive => (1, 0),
            PacketBody::LightAck(_) => (2, 0),
            PacketBody::Ack(ack) => (2, ack.number),
            PacketBody::Nak(_) => (3, 0),
            PacketBody::CongestionWarning => (4, 0),
            PacketBody::Shutdown => (5, 0),
            PacketBody::Ack2(number) => (6, *number),
            PacketBody::Error(code) => (8, *code),
        }
    }

    fn write_information(&self, room: &mut [u8]) -> Option<usize> {
        match self {
            PacketBody::Handshake(handshake) => handshake.write(room),
            PacketBody::LightAck(next) => put_all(room, &[next.to_wire()]),
            PacketBody::Ack(ack) => ack.write(room),
            PacketBody::Nak(report) => {
                room.get_mut(..report.bytes().len())?.copy_from_slice(report.bytes());
                Some(report.bytes().len())
            }
            // libudt sends four bytes where there is no information.
            _ => put_all(room, &[0]),
        }
    }
}

impl FullAck {
    fn write(&self, room: &mut [u8]) -> Option<usize> {
        let micros = |time: Nanos| u32::try_from(time.0 / 1000).unwrap_or(u32::MAX).clamp(1, MAX_MICROS);
        let words = [self.next.to_wire(), micros(self.rtt), micros(self.rtt_variance), self.window];
        match self.rates {
            None => put_all(room, &words),
            Some(rates) => {
                let [next, rtt, variance, window] = words;
                put_all(room, &[next, rtt, variance, window, rates.arrival, rates.capacity])
            }
        }
    }
}

const MAX_MICROS: u32 = 1_800_000_000;

fn micros(word: u32) -> Result<Nanos, PacketError> {
    if word > MAX_MICROS { Err(PacketError::RoundTrip) } else { Ok(Nanos::micros(word.into())) }
}

/// Returns the value of a signed word; zero if it is negative.
fn rate(word: u32) -> u32 {
    if word > i32::MAX.cast_unsigned() { 0 } else { word }
}

/// Parses the header of a data packet into its sequence number, timestamp and destination. `None` for a control
/// packet.
pub(crate) fn data_header(header: &[u8; HEADER]) -> Option<(Seq, u32, UdtSocketId)> {
    Some((Seq::from_wire(get(header, 0))?, get(header, 2), UdtSocketId(get(header, 3))))
}
