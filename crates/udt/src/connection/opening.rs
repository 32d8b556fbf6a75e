//! The start of a connection at the connecting end, and at the accepting end from a request whose cookie was checked.

use std::net::SocketAddr;

use landspeed_record::units::Nanos;

use super::config::{ConnectionIdentity, UdtConfig};
use super::figures::PacketCounts;
use super::open::{HandshakeAgreement, OpenConnection};
use super::outcome::CloseReason;
use super::{Connection, ConnectionFlags, ConnectionPhase};
use crate::handshake::{Connector, ConnectorOutcome, HandshakeRequest};
use crate::packet::{HANDSHAKE, HEADER, Handshake, HandshakeKind, MIN_MSS, SocketType, UDP_HEADERS};
use crate::sender::MAX_WINDOW;
use crate::seq::UdtSocketId;

impl Connection {
    /// Creates a connection and begins its handshake with the listener at `peer`.
    pub fn connect(now: Nanos, config: UdtConfig, identity: ConnectionIdentity, peer: SocketAddr) -> Self {
        let request = Handshake {
            socket_type: SocketType::Stream,
            first_seq: identity.first_seq,
            mss: config.mss.max(MIN_MSS),
            flight: config.receive_buffer.clamp(2, MAX_WINDOW),
            kind: HandshakeKind::Cookie,
            socket: identity.socket,
            cookie: 0,
            peer: peer.ip(),
        };
        let connector = Connector::new(now, request, config.connect_patience);
        let connector = if config.probes_path { connector.with_probes() } else { connector };
        Self::new(now, config, identity, peer, ConnectionPhase::Connecting(connector))
    }

    /// Creates a connection from a request whose cookie the listener has checked. The first packet that it sends is
    /// the answer.
    pub fn accept(
        now: Nanos,
        config: UdtConfig,
        identity: ConnectionIdentity,
        request: &HandshakeRequest,
    ) -> Self {
        let asked = request.handshake;
        let answer = Handshake {
            mss: asked.mss.min(config.mss.max(MIN_MSS)),
            flight: config.receive_buffer.clamp(2, MAX_WINDOW),
            socket: identity.socket,
            peer: request.peer.ip(),
            ..asked
        };
        let identity = ConnectionIdentity { first_seq: asked.first_seq, ..identity };
        let peers = Handshake { mss: answer.mss, ..asked };
        let agreement = HandshakeAgreement { peers, round_trip: None };
        let open = OpenConnection::new(now, &config, &identity, &agreement).with_answer(answer);
        let mut this = Self::new(now, config, identity, request.peer, ConnectionPhase::Open(Box::new(open)));
        this.flags.connected = true;
        this
    }

    fn new(
        now: Nanos,
        config: UdtConfig,
        identity: ConnectionIdentity,
        peer: SocketAddr,
        phase: ConnectionPhase,
    ) -> Self {
        let size = (config.mss.max(MIN_MSS) as usize - UDP_HEADERS).max(HANDSHAKE);
        Connection {
            config,
            identity,
            peer,
            began: now,
            phase,
            scratch: vec![0; size].into(),
            report: vec![0; size - HEADER].into(),
            flags: ConnectionFlags::default(),
            closing: None,
            closed: None,
            peer_closed: false,
            last_shutdown: None,
            counts: PacketCounts::default(),
        }
    }

    pub(super) fn on_handshake(&mut self, now: Nanos, to: UdtSocketId, handshake: &Handshake) -> bool {
        match &mut self.phase {
            ConnectionPhase::Open(open) => open.on_repeated_request(handshake),
            ConnectionPhase::Connecting(_) if to != self.identity.socket || self.closed.is_some() => false,
            ConnectionPhase::Connecting(connector) => match connector.handle(now, handshake) {
                ConnectorOutcome::Ignored => false,
                ConnectorOutcome::GotCookie => true,
                ConnectorOutcome::Refused(code) => {
                    self.closed = Some(CloseReason::Refused(code));
                    true
                }
                ConnectorOutcome::Connected(answer) => {
                    let agreement = HandshakeAgreement { peers: answer, round_trip: connector.round_trip() };
                    let open = OpenConnection::new(now, &self.config, &self.identity, &agreement);
                    self.phase = ConnectionPhase::Open(Box::new(open));
                    self.flags.connected = true;
                    true
                }
            },
        }
    }
}
