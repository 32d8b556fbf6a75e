//! The handshake that starts a connection (draft-gg-udt-03 section 5.1): request, cookie, request with the cookie,
//! answer. Rendezvous is not supported.
//!
//! A listener keeps no state for a request without a valid cookie, and never sends more bytes than it has received.

use std::net::{IpAddr, SocketAddr};

use landspeed_record::units::Nanos;

use crate::packet::{HANDSHAKE, Handshake, HandshakeKind, PacketBody, SocketType, UDP_HEADERS, UdtPacket};
use crate::seq::{Seq, UdtSocketId};

/// The code with which libudt refuses a connection.
const REFUSED: u32 = 1002;

/// The stateless part of a listener, which issues cookies and checks them.
#[derive(Debug, Clone)]
pub struct HandshakeListener {
    key: [u8; 32],
}

/// A listener's reaction to a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerResponse {
    /// The datagram is not a request, or its cookie is not the listener's.
    Ignore,
    /// The caller sends this many bytes from the start of `reply` back to the peer.
    Reply(usize),
    /// The request's cookie shows that the peer receives packets at its address. If the caller already has a
    /// connection with this request's [`id`](HandshakeRequest::id), it passes the datagram to that connection, which
    /// answers again. Otherwise it creates one ([`Connection::accept`](crate::Connection::accept)).
    Proven(HandshakeRequest),
}

/// A request whose cookie the listener has checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeRequest {
    /// The peer's address.
    pub peer: SocketAddr,
    /// The content of the request.
    pub handshake: Handshake,
}

impl HandshakeRequest {
    /// Returns the identity of the requested connection: the peer's address, its socket identifier, and the first
    /// sequence number. Repeated requests have the same identity.
    pub fn id(&self) -> (SocketAddr, UdtSocketId, Seq) {
        (self.peer, self.handshake.socket, self.handshake.first_seq)
    }
}

impl HandshakeListener {
    /// Creates a listener. Its cookies are computed with `key`, which must be 32 random bytes.
    pub fn new(key: [u8; 32]) -> Self {
        HandshakeListener { key }
    }

    /// Processes a datagram that arrived at the listener's port, and writes the reply, if any, to `reply`. A reply is
    /// never longer than the datagram. A request for a connection of messages is refused if its cookie is valid.
    pub fn handle(
        &self,
        now: Nanos,
        peer: SocketAddr,
        datagram: &[u8],
        reply: &mut [u8; HANDSHAKE],
    ) -> ListenerResponse {
        let Ok(UdtPacket { to: UdtSocketId::LISTENER, body: PacketBody::Handshake(handshake), .. }) =
            UdtPacket::parse(datagram)
        else {
            return ListenerResponse::Ignore;
        };
        let minute = now.0 / Nanos::secs(60).0;
        match handshake.kind {
            HandshakeKind::Cookie => {
                let cookie = self.cookie(peer, minute);
                write(&Handshake { cookie, peer: peer.ip(), ..handshake }, handshake.socket, reply)
            }
            HandshakeKind::Connect => {
                let recent = [Some(minute), minute.checked_sub(1)];
                let is_ours = |minute: Option<u64>| {
                    minute.is_some_and(|minute| self.cookie(peer, minute) == handshake.cookie)
                };
                let request = HandshakeRequest { peer, handshake };
                match recent.into_iter().any(is_ours) {
                    true if handshake.socket_type == SocketType::Stream => ListenerResponse::Proven(request),
                    true => {
                        let refusal = Handshake { kind: HandshakeKind::Refused(REFUSED), ..handshake };
                        write(&refusal, handshake.socket, reply)
                    }
                    false => ListenerResponse::Ignore,
                }
            }
            HandshakeKind::Refused(_) => ListenerResponse::Ignore,
        }
    }

    /// Returns a cookie: the first word of a keyed hash of the peer's address, its port and the minute.
    fn cookie(&self, peer: SocketAddr, minute: u64) -> u32 {
        let mut hash = blake3::Hasher::new_keyed(&self.key);
        match peer.ip() {
            IpAddr::V4(ip) => hash.update(&ip.octets()),
            IpAddr::V6(ip) => hash.update(&ip.octets()),
        };
        hash.update(&peer.port().to_be_bytes()).update(&minute.to_be_bytes());
        let [a, b, c, d, ..] = *hash.finalize().as_bytes();
        u32::from_be_bytes([a, b, c, d])
    }
}

fn write(handshake: &Handshake, to: UdtSocketId, reply: &mut [u8; HANDSHAKE]) -> ListenerResponse {
    let packet = UdtPacket { timestamp: 0, to, body: PacketBody::Handshake(*handshake) };
    packet.write(reply).map_or(ListenerResponse::Ignore, ListenerResponse::Reply)
}

/// The time after which an unanswered request is sent again, as in libudt.
const RETRY: Nanos = Nanos::millis(250);
/// The packet sizes that a connector proposes after larger ones got no answer, in bytes with the headers of IPv4 and
/// UDP. They are for jumbo frames, Ethernet, tunnels over Ethernet, and the least sizes that every path of IPv6 and
/// of IPv4 carries (RFC 8200 section 5: 1280 less 20 for the longer IPv6 header; RFC 791 section 3.1).
const SMALLER: [u32; 5] = [9000, 1500, 1400, 1260, 576];
/// The number of unanswered requests of one size after which a smaller size is tried. Two losses in a row are rare.
const TRIES: u32 = 2;

/// The effect of a listener's answer at the connecting end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectorOutcome {
    Ignored,
    GotCookie,
    Connected(Handshake),
    Refused(u32),
}

/// The connecting end during the handshake.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub(crate) request: Handshake,
    retry_at: Nanos,
    give_up_at: Nanos,
    /// The time at which the current kind of request was first sent, and the number of times that it was sent.
    asked: (Nanos, u32),
    round_trip: Option<Nanos>,
    /// The packet size that the first request proposed, in bytes, if the path is probed with requests that are padded
    /// to the size that they propose ([`Self::with_probes`]); otherwise `None`.
    probed: Option<u32>,
}

impl Connector {
    pub(crate) fn new(now: Nanos, request: Handshake, patience: Nanos) -> Self {
        Connector {
            request,
            retry_at: now,
            give_up_at: now + patience,
            asked: (now, 0),
            round_trip: None,
            probed: None,
        }
    }

    /// Returns the connector with padded requests: each request with a cookie is as large as the packets that it
    /// proposes. If requests get lost, later ones propose smaller packets.
    pub(crate) fn with_probes(self) -> Self {
        Connector { probed: Some(self.request.mss), ..self }
    }

    /// Returns the length of the current request in bytes, with its padding after the handshake.
    pub(crate) fn length(&self) -> usize {
        if self.is_probing() { (self.request.mss as usize - UDP_HEADERS).max(HANDSHAKE) } else { HANDSHAKE }
    }

    fn is_probing(&self) -> bool {
        self.probed.is_some() && self.request.kind == HandshakeKind::Connect
    }

    pub(crate) fn next_timeout(&self) -> Nanos {
        self.retry_at.min(self.give_up_at)
    }

    pub(crate) fn has_given_up(&self, now: Nanos) -> bool {
        now >= self.give_up_at
    }

    /// Returns the request to send now, and schedules its repetition; `None` if no request is due.
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<Handshake> {
        if now < self.retry_at {
            return None;
        }
        self.retry_at = now + RETRY;
        if self.is_probing() && self.asked.1 > 0 && self.asked.1.is_multiple_of(TRIES) {
            let smaller = SMALLER.into_iter().find(|size| *size < self.request.mss);
            self.request.mss = smaller.unwrap_or(self.request.mss);
        }
        self.asked = if self.asked.1 == 0 { (now, 1) } else { (self.asked.0, self.asked.1 + 1) };
        Some(self.request)
    }

    /// Returns the shortest measured round trip of the handshake; `None` if there is none. A request that was sent
    /// several times has no measured round trip, because the answer may be to any copy.
    pub(crate) fn round_trip(&self) -> Option<Nanos> {
        self.round_trip
    }

    pub(crate) fn handle(&mut self, now: Nanos, answer: &Handshake) -> ConnectorOutcome {
        let outcome = self.judge(now, answer);
        if matches!(outcome, ConnectorOutcome::GotCookie | ConnectorOutcome::Connected(_)) {
            let (first, times) = std::mem::replace(&mut self.asked, (now, 0));
            let sample = (times == 1).then(|| now - first);
            self.round_trip = [self.round_trip, sample].into_iter().flatten().min();
        }
        outcome
    }

    fn judge(&mut self, now: Nanos, answer: &Handshake) -> ConnectorOutcome {
        match answer.kind {
            HandshakeKind::Cookie if self.request.kind == HandshakeKind::Cookie => {
                self.request.cookie = answer.cookie;
                self.request.kind = HandshakeKind::Connect;
                self.retry_at = now;
                ConnectorOutcome::GotCookie
            }
            HandshakeKind::Cookie => ConnectorOutcome::Ignored,
            // A stranger does not know the first sequence number, which the connector drew for both directions.
            _ if answer.first_seq != self.request.first_seq => ConnectorOutcome::Ignored,
            HandshakeKind::Refused(code) => ConnectorOutcome::Refused(code),
            // A late answer to an earlier, larger request is accepted, because it shows that packets of that size
            // arrive.
            HandshakeKind::Connect if answer.mss > self.probed.unwrap_or(self.request.mss) => {
                ConnectorOutcome::Ignored
            }
            HandshakeKind::Connect if self.request.kind == HandshakeKind::Cookie => ConnectorOutcome::Ignored,
            HandshakeKind::Connect => ConnectorOutcome::Connected(*answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(kind: HandshakeKind, cookie: u32) -> Vec<u8> {
        request_of(SocketType::Stream, kind, cookie)
    }

    fn request_of(socket_type: SocketType, kind: HandshakeKind, cookie: u32) -> Vec<u8> {
        let handshake = Handshake {
            socket_type,
            first_seq: Seq::new(77),
            mss: 1500,
            flight: 25_600,
            kind,
            socket: UdtSocketId(5),
            cookie,
            peer: "10.0.0.2".parse().unwrap(),
        };
        let mut buffer = vec![0; HANDSHAKE];
        let packet =
            UdtPacket { timestamp: 0, to: UdtSocketId::LISTENER, body: PacketBody::Handshake(handshake) };
        assert_eq!(packet.write(&mut buffer), Some(HANDSHAKE));
        buffer
    }

    fn cookie_of(reply: &[u8]) -> u32 {
        let Ok(UdtPacket { body: PacketBody::Handshake(handshake), to: UdtSocketId(5), .. }) =
            UdtPacket::parse(reply)
        else {
            panic!("a handshake")
        };
        assert_eq!(handshake.kind, HandshakeKind::Cookie);
        handshake.cookie
    }

    #[test]
    fn a_cookie_proves_one_address_for_a_minute() {
        let listener = HandshakeListener::new([7; 32]);
        let (peer, other) = ("10.0.0.1:4000".parse().unwrap(), "10.0.0.1:4001".parse().unwrap());
        let (mut reply, now) = ([0; HANDSHAKE], Nanos::secs(59));
        let asked = listener.handle(now, peer, &request(HandshakeKind::Cookie, 0), &mut reply);
        assert_eq!(asked, ListenerResponse::Reply(HANDSHAKE));
        let proof = request(HandshakeKind::Connect, cookie_of(&reply));
        let mut answer = |now, peer| listener.handle(now, peer, &proof, &mut reply);
        assert!(matches!(answer(now, peer), ListenerResponse::Proven(proven) if proven.peer == peer));
        assert!(matches!(answer(Nanos::secs(119), peer), ListenerResponse::Proven(_)));
        assert_eq!(answer(Nanos::secs(120), peer), ListenerResponse::Ignore);
        assert_eq!(answer(now, other), ListenerResponse::Ignore);
        let stranger = HandshakeListener::new([8; 32]);
        assert_eq!(stranger.handle(now, peer, &proof, &mut reply), ListenerResponse::Ignore);
    }

    #[test]
    fn messages_are_refused_once_the_cookie_is_proven() {
        let listener = HandshakeListener::new([7; 32]);
        let peer = "[::1]:4000".parse().unwrap();
        let mut reply = [0; HANDSHAKE];
        let messages = |kind, cookie| request_of(SocketType::Datagram, kind, cookie);
        listener.handle(Nanos(0), peer, &messages(HandshakeKind::Cookie, 0), &mut reply);
        let proof = messages(HandshakeKind::Connect, cookie_of(&reply));
        assert_eq!(listener.handle(Nanos(0), peer, &proof, &mut reply), ListenerResponse::Reply(HANDSHAKE));
        let Ok(UdtPacket { body: PacketBody::Handshake(refusal), .. }) = UdtPacket::parse(&reply) else {
            panic!()
        };
        assert_eq!(refusal.kind, HandshakeKind::Refused(REFUSED));
    }

    proptest! {
        /// Checks that a reply to an address without proof is no longer than the datagram from that address.
        #[test]
        fn no_reply_is_longer_than_its_request(
            noise in prop::collection::vec(any::<u8>(), 0..200),
            cookie: u32,
            proof: bool,
            cut in 0usize..120,
        ) {
            let listener = HandshakeListener::new([7; 32]);
            let peer = "10.0.0.1:4000".parse().unwrap();
            let mut request = request(if proof { HandshakeKind::Connect } else { HandshakeKind::Cookie }, cookie);
            request.extend_from_slice(&noise);
            request.truncate(cut);
            for datagram in [&noise, &request] {
                let mut reply = [0; HANDSHAKE];
                match listener.handle(Nanos(0), peer, datagram, &mut reply) {
                    ListenerResponse::Reply(length) => prop_assert!(length <= datagram.len()),
                    ListenerResponse::Ignore => {}
                    ListenerResponse::Proven(_) => prop_assert!(false, "a guessed cookie"),
                }
            }
        }
    }
}
