//! The start of a connection: by a connector, or from a request that a listener has proven.

use std::net::SocketAddr;

use landspeed_units::Nanos;

use super::config::{Config, Identity};
use super::figures::Counts;
use super::link::{Agreement, Link};
use super::outcome::Reason;
use super::{Connection, Flags, Phase};
use crate::handshake::{Connector, Outcome, Request};
use crate::packet::{HANDSHAKE, HEADER, Handshake, HandshakeKind, MIN_MSS, UDP_HEADERS};
use crate::sender::MAX_WINDOW;
use crate::seq::SocketId;

impl Connection {
    /// Begins a connection to the listener at `peer`.
    pub fn connect(now: Nanos, config: Config, identity: Identity, peer: SocketAddr) -> Self {
        let request = Handshake {
            socket_type: config.socket_type,
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
        Self::new(now, config, identity, peer, Phase::Connecting(connector))
    }

    /// Accepts a request whose cookie is proven. The connection first sends the answer.
    pub fn accept(now: Nanos, config: Config, identity: Identity, request: &Request) -> Self {
        let asked = request.handshake;
        let answer = Handshake {
            mss: asked.mss.min(config.mss.max(MIN_MSS)),
            flight: config.receive_buffer.clamp(2, MAX_WINDOW),
            socket: identity.socket,
            peer: request.peer.ip(),
            ..asked
        };
        let identity = Identity { first_seq: asked.first_seq, ..identity };
        let peers = Handshake { mss: answer.mss, ..asked };
        let agreement = Agreement { peers, round_trip: None };
        let link = Link::new(now, &config, &identity, &agreement).with_answer(answer);
        let mut this = Self::new(now, config, identity, request.peer, Phase::Open(Box::new(link)));
        this.flags.connected = true;
        this
    }

    fn new(now: Nanos, config: Config, identity: Identity, peer: SocketAddr, phase: Phase) -> Self {
        let size = (config.mss.max(MIN_MSS) as usize - UDP_HEADERS).max(HANDSHAKE);
        Connection {
            config,
            identity,
            peer,
            began: now,
            phase,
            scratch: vec![0; size].into(),
            report: vec![0; size - HEADER].into(),
            flags: Flags::default(),
            closing: None,
            closed: None,
            peer_closed: false,
            last_shutdown: None,
            counts: Counts::default(),
        }
    }

    pub(super) fn on_handshake(&mut self, now: Nanos, to: SocketId, handshake: &Handshake) -> bool {
        match &mut self.phase {
            Phase::Open(link) => link.on_repeated_request(handshake),
            Phase::Connecting(_) if to != self.identity.socket || self.closed.is_some() => false,
            Phase::Connecting(connector) => match connector.handle(now, handshake) {
                Outcome::Ignored => false,
                Outcome::GotCookie => true,
                Outcome::Refused(code) => {
                    self.closed = Some(Reason::Refused(code));
                    true
                }
                Outcome::Connected(answer) => {
                    let agreement = Agreement { peers: answer, round_trip: connector.round_trip() };
                    let link = Link::new(now, &self.config, &self.identity, &agreement);
                    self.phase = Phase::Open(Box::new(link));
                    self.flags.connected = true;
                    true
                }
            },
        }
    }
}
