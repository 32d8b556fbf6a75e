//! The format of packets on the wire (draft-gg-udt-03 section 2): 16 bytes of header, then payload or control
//! information. All words are big-endian. Where the draft and Debian's libudt 4.11 differ, this is what libudt sends;
//! a comment marks each such place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use landspeed_record::units::Nanos;
use thiserror::Error;

use crate::loss::SeqRange;
use crate::seq::{MessageNumber, Seq, UdtSocketId};

/// The bytes of a packet's header.
pub const HEADER: usize = 16;
/// The bytes of a handshake packet.
pub const HANDSHAKE: usize = HEADER + 48;
/// The bytes of the headers of IPv4 and UDP, which the packet size of a handshake includes, even over IPv6.
pub const UDP_HEADERS: usize = 28;
/// The smallest packet size, in bytes: a handshake fits.
pub const MIN_MSS: u32 = (UDP_HEADERS + 48) as u32;
/// The largest packet size that IPv4 can carry, in bytes.
pub const MAX_MSS: u32 = 65_535;
/// The protocol version of UDT4.
const VERSION: u32 = 4;

/// The reason why bytes are not a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PacketError {
    /// Fewer bytes than the packet's kind needs.
    #[error("the packet is too short")]
    Short,
    /// A data packet without data, which no implementation sends.
    #[error("the data packet has no data")]
    Empty,
    /// A type of control packet that UDT4 does not define.
    #[error("the control packet has an unknown type")]
    Type,
    /// A sequence number with its first bit set, or a range that ends before it begins.
    #[error("the packet has an impossible sequence number")]
    Sequence,
    /// An invalid version, socket type, request type, size or socket identifier of a handshake.
    #[error("the handshake has an impossible {0}")]
    Handshake(&'static str),
    /// A reported round trip of more than half an hour.
    #[error("the acknowledgement has an impossible round trip")]
    RoundTrip,
}

/// A packet, borrowed from its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdtPacket<'a> {
    /// Microseconds since the sender's connection began; wraps.
    pub timestamp: u32,
    /// The destination connection.
    pub to: UdtSocketId,
    /// Data, or one of the kinds of control packets.
    pub body: PacketBody<'a>,
}

/// The content of a packet (draft-gg-udt-03 section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketBody<'a> {
    /// A piece of the stream or of a message.
    Data(DataPacket<'a>),
    /// Type 0.
    Handshake(Handshake),
    /// Type 1.
    KeepAlive,
    /// Type 2 with only a sequence number: all packets before it have arrived.
    LightAck(Seq),
    /// Type 2 in full.
    Ack(FullAck),
    /// Type 3: lost packets.
    Nak(LossReport<'a>),
    /// Type 4. libudt accepts it but sends none.
    CongestionWarning,
    /// Type 5.
    Shutdown,
    /// Type 6: the acknowledgement of this number has arrived.
    Ack2(u32),
    /// Type 7: the sender has given up a message.
    MessageDrop(MessageDrop),
    /// Type 8, an extension of libudt: the peer could not process what it received.
    Error(u32),
}

/// The position of a packet in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagePosition {
    /// Neither the first nor the last packet.
    Middle,
    /// The last of several packets.
    Last,
    /// The first of several packets.
    First,
    /// The only packet.
    Solo,
}

impl MessagePosition {
    /// Returns the position of packet `index` of `count`.
    pub fn of(index: usize, count: usize) -> Self {
        match (index == 0, index + 1 == count) {
            (true, true) => MessagePosition::Solo,
            (true, false) => MessagePosition::First,
            (false, true) => MessagePosition::Last,
            (false, false) => MessagePosition::Middle,
        }
    }

    /// Returns true if a message begins here.
    pub fn begins(self) -> bool {
        matches!(self, MessagePosition::First | MessagePosition::Solo)
    }

    /// Returns true if a message ends here.
    pub fn ends(self) -> bool {
        matches!(self, MessagePosition::Last | MessagePosition::Solo)
    }
}

/// The second word of a data packet, which describes its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageWord {
    /// The position of the packet in the message.
    pub position: MessagePosition,
    /// True if the message must wait for those before it.
    pub in_order: bool,
    /// The number of the message.
    pub number: MessageNumber,
}

impl MessageWord {
    /// Parses the word; all values are valid.
    pub fn from_wire(word: u32) -> Self {
        let position = match word >> 30 {
            0 => MessagePosition::Middle,
            1 => MessagePosition::Last,
            2 => MessagePosition::First,
            _ => MessagePosition::Solo,
        };
        MessageWord { position, in_order: word & (1 << 29) != 0, number: MessageNumber::new(word) }
    }

    /// Returns the word as it is on the wire.
    pub fn to_wire(self) -> u32 {
        let position: u32 = match self.position {
            MessagePosition::Middle => 0,
            MessagePosition::Last => 1,
            MessagePosition::First => 2,
            MessagePosition::Solo => 3,
        };
        position << 30 | u32::from(self.in_order) << 29 | self.number.to_wire()
    }
}

/// A data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPacket<'a> {
    /// The packet's sequence number.
    pub seq: Seq,
    /// The message that the packet belongs to. Packets of a stream have it too, but it is ignored.
    pub message: MessageWord,
    /// The payload: at least one byte.
    pub payload: &'a [u8],
}

/// What a connection carries. libudt numbers the types 1 and 2, the draft 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketType {
    /// A stream of bytes.
    Stream,
    /// Messages.
    Datagram,
}

/// The kind of a handshake packet in the exchange of four (draft-gg-udt-03 section 5.1). The kinds of a rendezvous
/// are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeKind {
    /// 1: a request without a cookie, and the listener's answer with one.
    Cookie,
    /// -1: the request with the cookie, and the answer that opens the connection.
    Connect,
    /// 1000 and more, an extension of libudt: the listener refuses.
    Refused(u32),
}

/// The control information of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// The type of the connection.
    pub socket_type: SocketType,
    /// The first data packet's number. libudt's listener uses the connector's number for both directions.
    pub first_seq: Seq,
    /// The largest packet in bytes, including the headers of IP and UDP.
    pub mss: u32,
    /// The most packets that may be in flight.
    pub flight: u32,
    /// The kind of this handshake packet.
    pub kind: HandshakeKind,
    /// The sender's identifier; in an answer with a cookie, the receiver's own.
    pub socket: UdtSocketId,
    /// The cookie; zero before there is one.
    pub cookie: u32,
    /// The receiver's address.
    pub peer: IpAddr,
}

/// A full acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullAck {
    /// The number of this acknowledgement, which an ACK2 returns.
    pub number: u32,
    /// The first packet that has not arrived: all before it have.
    pub next: Seq,
    /// The receiver's estimate of the round trip.
    pub rtt: Nanos,
    /// The variance of that estimate.
    pub rtt_variance: Nanos,
    /// How many packets from `next` on the receiver has room for.
    pub window: u32,
    /// The receiver's estimates of rates; at most one acknowledgement in 10 ms has them.
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

/// A message that its sender has given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageDrop {
    /// The message.
    pub message: MessageNumber,
    /// The packets of the message.
    pub packets: SeqRange,
}

/// The ranges of a loss report in their wire format, validated (draft-gg-udt-03 section 6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossReport<'a>(&'a [u8]);

const IS_RANGE: u32 = 1 << 31;

impl<'a> LossReport<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
            return Err(PacketError::Short);
        }
        let mut words = words(bytes);
        while let Some(word) = words.next() {
            if word & IS_RANGE != 0 {
                let last = words.next().and_then(Seq::from_wire).ok_or(PacketError::Sequence)?;
                SeqRange::checked(Seq::new(word), last)?;
            }
        }
        Ok(LossReport(bytes))
    }

    /// Writes as many of `ranges` as fit into `room`, and returns a view of them.
    pub fn write(ranges: impl Iterator<Item = SeqRange>, room: &'a mut [u8]) -> Self {
        let mut length = 0;
        for range in ranges {
            let single = range.first == range.last;
            let needed = if single { 4 } else { 8 };
            let Some(place) = room.get_mut(length..length + needed) else { break };
            if single {
                put(place, 0, range.first.to_wire());
            } else {
                put(place, 0, range.first.to_wire() | IS_RANGE);
                put(place, 1, range.last.to_wire());
            }
            length += needed;
        }
        LossReport(&room[..length])
    }

    /// Iterates over the lost packets, in the report's order.
    pub fn ranges(self) -> impl Iterator<Item = SeqRange> + 'a {
        let mut words = words(self.0);
        std::iter::from_fn(move || {
            let word = words.next()?;
            let first = Seq::new(word);
            let last = if word & IS_RANGE != 0 { Seq::new(words.next()?) } else { first };
            Some(SeqRange { first, last })
        })
    }

    /// Returns the bytes on the wire.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Returns true if the report has no packets.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
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
            Some(seq) => {
                let message = MessageWord::from_wire(get(header, 1));
                PacketBody::Data(DataPacket { seq, message, payload: rest })
            }
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
            put(header, 1, data.message.to_wire());
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
            7 => {
                let packets = SeqRange::checked(seq_at(rest, 0)?, seq_at(rest, 1)?)?;
                PacketBody::MessageDrop(MessageDrop { message: MessageNumber::new(additional), packets })
            }
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
            PacketBody::MessageDrop(drop) => (7, drop.message.to_wire()),
            PacketBody::Error(code) => (8, *code),
        }
    }

    fn write_information(&self, room: &mut [u8]) -> Option<usize> {
        match self {
            PacketBody::Handshake(handshake) => handshake.write(room),
            PacketBody::LightAck(next) => put_all(room, &[next.to_wire()]),
            PacketBody::Ack(ack) => ack.write(room),
            PacketBody::Nak(report) => {
                room.get_mut(..report.len())?.copy_from_slice(report.0);
                Some(report.len())
            }
            PacketBody::MessageDrop(MessageDrop { packets, .. }) => {
                put_all(room, &[packets.first.to_wire(), packets.last.to_wire()])
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

impl Handshake {
    fn parse(rest: &[u8]) -> Result<Self, PacketError> {
        let rest: &[u8; 48] = rest.first_chunk().ok_or(PacketError::Short)?;
        let wrong = |what| Err(PacketError::Handshake(what));
        if get(rest, 0) != VERSION {
            return wrong("version");
        }
        let socket_type = match get(rest, 1) {
            1 => SocketType::Stream,
            2 => SocketType::Datagram,
            _ => return wrong("socket type"),
        };
        let (mss, flight) = (get(rest, 3), get(rest, 4));
        if !(MIN_MSS..=MAX_MSS).contains(&mss) {
            return wrong("packet size");
        }
        if flight == 0 || flight > i32::MAX.cast_unsigned() {
            return wrong("flight size");
        }
        let kind = match get(rest, 5).cast_signed() {
            1 => HandshakeKind::Cookie,
            -1 => HandshakeKind::Connect,
            code @ 1000.. => HandshakeKind::Refused(code.cast_unsigned()),
            _ => return wrong("request type"),
        };
        let socket = UdtSocketId(get(rest, 6));
        if !socket.is_connection() {
            return wrong("socket identifier");
        }
        let first_seq = Seq::from_wire(get(rest, 2)).ok_or(PacketError::Sequence)?;
        let (cookie, peer) = (get(rest, 7), address(rest));
        Ok(Handshake { socket_type, first_seq, mss, flight, kind, socket, cookie, peer })
    }

    fn write(&self, room: &mut [u8]) -> Option<usize> {
        let kind = match self.kind {
            HandshakeKind::Cookie => 1,
            HandshakeKind::Connect => u32::MAX,
            HandshakeKind::Refused(code) => code,
        };
        let socket_type = match self.socket_type {
            SocketType::Stream => 1,
            SocketType::Datagram => 2,
        };
        let fields = [
            VERSION,
            socket_type,
            self.first_seq.to_wire(),
            self.mss,
            self.flight,
            kind,
            self.socket.0,
            self.cookie,
        ];
        put_all(room, &fields)?;
        put_all(room.get_mut(32..)?, &address_words(self.peer))?;
        Some(48)
    }
}

/// Returns an address as libudt sends it. libudt keeps an address as four words in host byte order, filled from the
/// first byte on, and sends each word big-endian: on a little-endian host the bytes of each word are reversed. An
/// IPv4 address uses only the first word.
fn address_words(address: IpAddr) -> [u32; 4] {
    match address {
        IpAddr::V4(address) => [u32::from_le_bytes(address.octets()), 0, 0, 0],
        IpAddr::V6(address) => {
            let octets = address.octets();
            [0, 4, 8, 12]
                .map(|at| u32::from_le_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]))
        }
    }
}

fn address(handshake: &[u8; 48]) -> IpAddr {
    let words = [8, 9, 10, 11].map(|index| get(handshake, index).to_le_bytes());
    if words[1..] == [[0; 4]; 3] {
        return Ipv4Addr::from(words[0]).into();
    }
    let mut octets = [0; 16];
    octets.copy_from_slice(words.as_flattened());
    Ipv6Addr::from(octets).into()
}

const MAX_MICROS: u32 = 1_800_000_000;

fn micros(word: u32) -> Result<Nanos, PacketError> {
    if word > MAX_MICROS { Err(PacketError::RoundTrip) } else { Ok(Nanos::micros(word.into())) }
}

/// Returns the value of a signed word; zero if it is negative.
fn rate(word: u32) -> u32 {
    if word > i32::MAX.cast_unsigned() { 0 } else { word }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word))
}

fn word_at(bytes: &[u8], index: usize) -> Result<u32, PacketError> {
    words(bytes).nth(index).ok_or(PacketError::Short)
}

fn seq_at(bytes: &[u8], index: usize) -> Result<Seq, PacketError> {
    Seq::from_wire(word_at(bytes, index)?).ok_or(PacketError::Sequence)
}

/// Parses the header of a data packet: its sequence number, its timestamp and its destination; `None` for a control
/// packet.
pub(crate) fn data_header(header: &[u8; HEADER]) -> Option<(Seq, u32, UdtSocketId)> {
    Some((Seq::from_wire(get(header, 0))?, get(header, 2), UdtSocketId(get(header, 3))))
}

/// Returns word `index` of `bytes`, which must have it.
fn get(bytes: &[u8], index: usize) -> u32 {
    bytes.as_chunks::<4>().0.get(index).map_or(0, |word| u32::from_be_bytes(*word))
}

/// Writes word `index` of `bytes`, which must have it.
pub(crate) fn put(bytes: &mut [u8], index: usize, value: u32) {
    if let Some(word) = bytes.as_chunks_mut::<4>().0.get_mut(index) {
        *word = value.to_be_bytes();
    }
}

fn put_all(room: &mut [u8], values: &[u32]) -> Option<usize> {
    let length = values.len() * 4;
    let room = room.get_mut(..length)?;
    values.iter().enumerate().for_each(|(index, value)| put(room, index, *value));
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seq() -> impl Strategy<Value = Seq> {
        prop_oneof![any::<u32>().prop_map(Seq::new), (0u32..64).prop_map(|n| Seq::MAX.minus(n))]
    }

    fn range() -> impl Strategy<Value = SeqRange> {
        (seq(), 0u32..1000).prop_map(|(first, more)| SeqRange { first, last: first.plus(more) })
    }

    fn handshake() -> impl Strategy<Value = Handshake> {
        let kind = prop_oneof![
            Just(HandshakeKind::Cookie),
            Just(HandshakeKind::Connect),
            (1000u32..2000).prop_map(HandshakeKind::Refused)
        ];
        let kind = (any::<bool>(), kind, any::<u32>());
        let sizes = (MIN_MSS..=MAX_MSS, 1..=i32::MAX.cast_unsigned(), 1..=i32::MAX.cast_unsigned());
        (seq(), kind, sizes, any::<IpAddr>()).prop_map(|(first_seq, (stream, kind, cookie), sizes, peer)| {
            let (mss, flight, socket) = (sizes.0, sizes.1, UdtSocketId(sizes.2));
            let socket_type = if stream { SocketType::Stream } else { SocketType::Datagram };
            Handshake { socket_type, first_seq, mss, flight, kind, socket, cookie, peer }
        })
    }

    fn ack() -> impl Strategy<Value = FullAck> {
        let rates = prop::option::of((0u32..1 << 31, 0u32..1 << 31));
        let times = (1u32..=MAX_MICROS, 1u32..=MAX_MICROS);
        (any::<u32>(), seq(), times, 0u32..1 << 31, rates).prop_map(|(number, next, times, window, rates)| {
            FullAck {
                number,
                next,
                rtt: Nanos::micros(times.0.into()),
                rtt_variance: Nanos::micros(times.1.into()),
                window,
                rates: rates.map(|(arrival, capacity)| RateEstimates { arrival, capacity }),
            }
        })
    }

    fn control() -> impl Strategy<Value = PacketBody<'static>> {
        prop_oneof![
            handshake().prop_map(PacketBody::Handshake),
            Just(PacketBody::KeepAlive),
            seq().prop_map(PacketBody::LightAck),
            ack().prop_map(PacketBody::Ack),
            Just(PacketBody::CongestionWarning),
            Just(PacketBody::Shutdown),
            any::<u32>().prop_map(PacketBody::Ack2),
            (any::<u32>(), range()).prop_map(|(number, packets)| {
                PacketBody::MessageDrop(MessageDrop { message: MessageNumber::new(number), packets })
            }),
            any::<u32>().prop_map(PacketBody::Error),
        ]
    }

    proptest! {
        #[test]
        fn control_packets_come_back(body in control(), timestamp: u32, to: u32) {
            let packet = UdtPacket { timestamp, to: UdtSocketId(to), body };
            let mut buffer = [0xa5; 128];
            let length = packet.write(&mut buffer).unwrap();
            prop_assert_eq!(UdtPacket::parse(&buffer[..length]), Ok(packet));
            prop_assert!((0..length).all(|short| packet.write(&mut buffer[..short]).is_none()));
        }

        #[test]
        fn data_comes_back(first in seq(), word: u32, payload in prop::collection::vec(any::<u8>(), 1..100)) {
            let data = DataPacket { seq: first, message: MessageWord::from_wire(word), payload: &payload };
            prop_assert_eq!(data.message.to_wire(), word);
            let packet = UdtPacket { timestamp: 7, to: UdtSocketId(9), body: PacketBody::Data(data) };
            let mut buffer = [0; 128];
            let length = packet.write(&mut buffer).unwrap();
            prop_assert_eq!(UdtPacket::parse(&buffer[..length]), Ok(packet));
        }

        #[test]
        fn loss_reports_come_back(ranges in prop::collection::vec(range(), 1..40)) {
            let mut room = [0; 512];
            let report = LossReport::write(ranges.iter().copied(), &mut room);
            let packet = UdtPacket { timestamp: 7, to: UdtSocketId(9), body: PacketBody::Nak(report) };
            let mut buffer = [0; 1024];
            let length = packet.write(&mut buffer).unwrap();
            let parsed = UdtPacket::parse(&buffer[..length]).unwrap();
            let PacketBody::Nak(parsed) = parsed.body else { panic!("a NAK") };
            prop_assert_eq!(parsed.ranges().collect::<Vec<_>>(), ranges);
        }

        /// A parsed packet is the same after it is written and parsed again: no field has a value that only the
        /// parser knows.
        #[test]
        fn any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..10) {
            let mut bytes = bytes;
            let check = |bytes: &[u8]| {
                let Ok(packet) = UdtPacket::parse(bytes) else { return };
                let mut buffer = [0; 256];
                let length = packet.write(&mut buffer).unwrap();
                if !matches!(packet.body, PacketBody::Ack(ack) if ack.rtt.0 == 0 || ack.rtt_variance.0 == 0) {
                    assert_eq!(UdtPacket::parse(&buffer[..length]), Ok(packet));
                }
                if let PacketBody::Nak(report) = packet.body {
                    report.ranges().for_each(drop);
                }
            };
            check(&bytes);
            if bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&[0x80, kind, 0, 0]);
                check(&bytes);
            }
        }
    }

    #[test]
    fn the_drafts_example_of_a_loss_report() {
        let ranges = [(2, 2), (6, 11), (14, 14)]
            .map(|(first, last)| SeqRange { first: Seq::new(first), last: Seq::new(last) });
        let mut room = [0; 64];
        let report = LossReport::write(ranges.into_iter(), &mut room);
        let expected: Vec<u8> =
            [2u32, 0x8000_0006, 0xb, 0xe].into_iter().flat_map(u32::to_be_bytes).collect();
        assert_eq!(report.0, expected);
    }

    #[test]
    fn an_address_is_as_libudt_sends_it() {
        assert_eq!(address_words("127.0.0.1".parse().unwrap()), [0x0100_007f, 0, 0, 0]);
        let words = address_words("::1".parse().unwrap());
        assert_eq!(words, [0, 0, 0, 0x0100_0000]);
    }
}
