//! The control information of a handshake (draft-gg-udt-03 section 2.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::words::{get, put_all};
use super::{MAX_MSS, MIN_MSS, PacketError};
use crate::seq::{Seq, UdtSocketId};

/// The protocol version of UDT4.
const VERSION: u32 = 4;

/// The type of data that a connection carries. On the wire, libudt numbers the types 1 and 2, and the draft 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketType {
    /// A stream of bytes.
    Stream,
    /// Messages. A listener refuses connections of this type.
    Datagram,
}

/// The kind of a packet of the four-packet handshake (draft-gg-udt-03 section 5.1). Rendezvous handshakes are not
/// supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeKind {
    /// Value 1: a request without a cookie, or the listener's answer with one.
    Cookie,
    /// Value -1: a request with the cookie, or the answer that opens the connection.
    Connect,
    /// Values from 1000 on, an extension of libudt: the listener refuses the connection. Holds the value.
    Refused(u32),
}

/// The control information of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// The type of data that the connection carries.
    pub socket_type: SocketType,
    /// The sequence number of the first data packet. libudt's listener uses the connector's number for both
    /// directions.
    pub first_seq: Seq,
    /// The size of the largest packet in bytes, including the headers of IPv4 and UDP.
    pub mss: u32,
    /// The largest number of packets that may be in flight to the sender of this handshake.
    pub flight: u32,
    /// The kind of this handshake packet.
    pub kind: HandshakeKind,
    /// The socket identifier of the sender of this packet. An answer with a cookie repeats the identifier of the
    /// request.
    pub socket: UdtSocketId,
    /// The cookie; zero in a request without one.
    pub cookie: u32,
    /// The IP address of the receiver of this packet.
    pub peer: IpAddr,
}

impl Handshake {
    pub(super) fn parse(rest: &[u8]) -> Result<Self, PacketError> {
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

    pub(super) fn write(&self, room: &mut [u8]) -> Option<usize> {
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

/// Returns the four words of an address as libudt sends them. libudt keeps an address as four words in host byte
/// order, filled from the first byte on, and sends each word big-endian. On a little-endian host the bytes of each
/// word are therefore reversed. An IPv4 address uses only the first word.
pub(super) fn address_words(address: IpAddr) -> [u32; 4] {
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
