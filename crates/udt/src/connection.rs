//! A connection without sockets and without clocks.
//!
//! The caller gives it datagrams ([`handle`](Connection::handle)) and the time, sends what [`poll_transmit`](Connection::poll_transmit)
//! returns until that is nothing, sleeps until [`next_timeout`](Connection::next_timeout) or the next datagram, and calls
//! [`handle_timeout`](Connection::handle_timeout) after each sleep. Times are since any moment, as long as it is the same one.

use std::net::{IpAddr, SocketAddr};

use landspeed_units::{Bytes, Nanos};
use thiserror::Error;

use crate::handshake::{Connector, Outcome, Request};
use crate::history::{PacketRate, RoundTrip, SYN};
use crate::packet::{
    Ack, Body, HANDSHAKE, HEADER, Handshake, HandshakeKind, MIN_MSS, Packet, SocketType, UDP_HEADERS,
    data_header,
};
use crate::rate::{Control, Daimd};
use crate::receive_buffer::ReceiveBuffer;
use crate::receiver::{Arrival, Receiver};
use crate::send_buffer::SendBuffer;
use crate::sender::{Limits, MAX_WINDOW, Next, Sender};
use crate::seq::{Seq, SocketId};

/// What both directions of a connection begin with. The defaults are libudt's, where it has them.
#[derive(Debug, Clone)]
pub struct Config {
    /// A stream or messages. Both ends must agree.
    pub socket_type: SocketType,
    /// The largest packet, with the headers of IPv4 and UDP; the smaller one of both ends' counts.
    pub mss: u32,
    /// Packets that the send buffer holds.
    pub send_buffer: u32,
    /// Packets that the receive buffer holds.
    pub receive_buffer: u32,
    /// How long a connector asks.
    pub connect_patience: Nanos,
    /// How long a peer may be silent at most. A peer that is alive sends keep-alives.
    pub silence: Nanos,
    /// How long [`Connection::close`] waits for what was written to arrive.
    pub linger: Nanos,
    /// How much of a late wake-up the next packets catch up: so long a burst leaves at once at most.
    pub catch_up: Nanos,
    /// Makes the congestion control, from the first sequence number and a random seed.
    pub control: fn(Seq, u64) -> Box<dyn Control>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            socket_type: SocketType::Stream,
            mss: 1500,
            send_buffer: 8192,
            receive_buffer: 8192,
            connect_patience: Nanos::secs(3),
            silence: Nanos::secs(60),
            linger: Nanos::secs(180),
            catch_up: Nanos::millis(1),
            control: |first, seed| Box::new(Daimd::new(first, seed)),
        }
    }
}

/// What a connection takes from chance. All of it must be hard to guess: it is all that keeps a stranger out.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// Its identifier, of 31 bits, one of the connections on its UDP port.
    pub socket: SocketId,
    /// A connector's first sequence number. An accepted connection takes its peer's.
    pub first_seq: Seq,
    /// For the congestion control.
    pub seed: u64,
}

/// Why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Reason {
    /// This end closed it, and all that it wrote has arrived.
    #[error("the connection was closed")]
    Closed,
    /// This end closed it at once.
    #[error("the connection was aborted")]
    Aborted,
    /// The peer closed it.
    #[error("the peer closed the connection")]
    PeerClosed,
    /// Nothing answered a connector.
    #[error("no listener answered")]
    NoAnswer,
    /// The listener refused, with libudt's code.
    #[error("the listener refused the connection (code {0})")]
    Refused(u32),
    /// Nothing was heard of the peer for too long.
    #[error("the peer fell silent")]
    Silent,
    /// What was written did not arrive within the time that a close waits.
    #[error("the peer did not receive all data in time")]
    Linger,
    /// A message that the receive buffer cannot hold.
    #[error("the peer sent a message larger than the receive buffer")]
    MessageTooLarge,
}

/// Why nothing was written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IoError {
    /// The handshake is not done.
    #[error("the connection is not open yet")]
    NotOpen,
    /// It is closed, or is being closed.
    #[error("the connection is closed")]
    Closed,
    /// There is no room now; [`Event::Writable`] says when there is.
    #[error("the send buffer is full")]
    Full,
    /// A message without a byte, or one that the send buffer can never hold.
    #[error("the message is empty or too large")]
    Size,
    /// A message for a stream, or bytes for a connection of messages.
    #[error("the connection is of the other type")]
    Type,
    /// The buffer is smaller than the next message, which has so many bytes.
    #[error("the next message has {0} bytes")]
    Small(usize),
}

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done.
    Connected,
    /// There may be something to read.
    Readable,
    /// There is room again after a write that found none.
    Writable,
    /// The peer could not use what it received; the code is its own.
    PeerError(u32),
    /// It is over. What has arrived before can still be read.
    Closed(Reason),
}

/// Datagrams to be sent, all to the same peer: pieces of `segment` bytes, the last one possibly shorter (what UDP_SEGMENT takes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The datagrams, one after the other.
    pub bytes: &'a [u8],
    /// How long each is.
    pub segment: usize,
}

impl<'a> Transmit<'a> {
    /// One by one.
    pub fn datagrams(self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes.chunks(self.segment)
    }
}

/// What a connection has counted, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// New data packets that were sent.
    pub sent: u64,
    /// Data packets that were sent again.
    pub sent_again: u64,
    /// Data packets that arrived for the first time.
    pub received: u64,
    /// Data packets that had arrived before.
    pub received_again: u64,
    /// Data packets that there was no room for.
    pub no_room: u64,
    /// Loss reports that were believed.
    pub naks: u64,
    /// Times that nothing was acknowledged for too long.
    pub timeouts: u64,
    /// Datagrams that were no packet, or named what cannot be.
    pub ignored: u64,
}

/// What the peer has acknowledged since the connection's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Data packets.
    pub packets: u64,
    /// Their payload.
    pub bytes: Bytes,
    /// Whether that is all that was written.
    pub is_all: bool,
}

/// What a connection knows of its path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathFigures {
    /// The round trip, as the sender knows it.
    pub round_trip: RoundTrip,
    /// How fast the peer receives packets.
    pub arrival: PacketRate,
    /// How fast the path could carry them, by packet pairs.
    pub capacity: PacketRate,
    /// The time from one packet to the next.
    pub period: Nanos,
    /// The congestion window.
    pub window: u32,
    /// Packets under way.
    pub flight: u32,
    /// Packets that are missing on this side.
    pub missing: u32,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    identity: Identity,
    peer: SocketAddr,
    began: Nanos,
    phase: Phase,
    scratch: Box<[u8]>,
    report: Box<[u8]>,
    flags: Flags,
    closing: Option<Nanos>,
    closed: Option<Reason>,
    peer_closed: bool,
    last_shutdown: Option<Nanos>,
    counts: Counts,
}

#[derive(Debug)]
enum Phase {
    Connecting(Connector),
    Open(Box<Link>),
}

/// What the caller is to be told.
#[derive(Debug, Default)]
struct Flags {
    connected: bool,
    readable: bool,
    writable: bool,
    wants_room: bool,
    peer_error: Option<u32>,
    told_closed: bool,
    send_shutdown: bool,
}

/// Both halves of an open connection and their common timers.
#[derive(Debug)]
struct Link {
    peer: SocketId,
    payload: usize,
    /// What an accepted connection answers to each request.
    answer: Option<Handshake>,
    send_answer: bool,
    sender: Sender,
    receiver: Receiver,
    ack2: Option<u32>,
    last_ack2: Option<(u32, Nanos)>,
    keep_alive: bool,
    last_heard: Nanos,
    /// Since when the EXP timer runs, and how often it has gone off since the peer was heard.
    exp_since: Nanos,
    exp_count: u32,
}

/// The EXP timer does not go off sooner (libudt 4.11).
const MIN_EXP: Nanos = Nanos::millis(300);
/// So often it goes off before the peer is given up (draft-gg-udt-03 section 5.3).
const MAX_EXP: u32 = 16;
/// What a packet's size has besides its payload.
const HEADERS: usize = UDP_HEADERS + HEADER;

impl Connection {
    /// Asks the listener at `peer` for a connection.
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
        Self::new(now, config, identity, peer, Phase::Connecting(connector))
    }

    /// Accepts a request whose cookie is proven. The answer is the first thing that it sends.
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
        let mut link = Link::new(now, &config, &identity, Handshake { mss: answer.mss, ..asked });
        link.answer = Some(answer);
        link.send_answer = true;
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

    /// Where its packets go.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The peer's address as a handshake has it.
    pub fn peer_ip(&self) -> IpAddr {
        self.peer.ip()
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Why it has ended, once it has.
    pub fn closed(&self) -> Option<Reason> {
        self.closed
    }

    /// Whether the peer has said that it is closed.
    pub fn has_peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// How far the peer has acknowledged.
    pub fn progress(&self) -> Progress {
        let Phase::Open(link) = &self.phase else { return Progress { is_all: true, ..Progress::default() } };
        let acked = link.sender.acked();
        Progress { packets: acked.packets, bytes: acked.bytes, is_all: link.sender.is_all_delivered() }
    }

    /// The payload of a full packet, once it is open.
    pub fn payload(&self) -> Option<usize> {
        match &self.phase {
            Phase::Open(link) => Some(link.payload),
            Phase::Connecting(_) => None,
        }
    }

    /// What is known of the path, once it is open.
    pub fn path(&self) -> Option<PathFigures> {
        let Phase::Open(link) = &self.phase else { return None };
        let path = link.sender.path();
        Some(PathFigures {
            round_trip: path.round_trip,
            arrival: path.arrival,
            capacity: path.capacity,
            period: link.sender.period(),
            window: link.sender.window(),
            flight: link.sender.buffer.sent(),
            missing: link.receiver.missing(),
        })
    }

    /// Takes a datagram that came from the peer. Whether it came from there the caller knows, and must check.
    pub fn handle(&mut self, now: Nanos, datagram: &[u8]) {
        if !self.believe(now, datagram) {
            self.counts.ignored += 1;
        }
    }

    /// Takes a data packet by its header; its payload of `length` bytes lies where the reader wants it, and was read. False where there is
    /// something to read before it, or it is no packet of the stream: it must be [`handle`](Self::handle)d then.
    pub fn deliver(&mut self, now: Nanos, header: &[u8; HEADER], length: usize) -> bool {
        let Phase::Open(link) = &mut self.phase else { return false };
        let is_data = self.closed.is_none() && (1..=link.payload).contains(&length);
        let Some((seq, timestamp, to)) = data_header(header).filter(|_| is_data) else { return false };
        let is_delivered = to == self.identity.socket
            && self.config.socket_type == SocketType::Stream
            && link.receiver.on_delivery((now, timestamp), seq, length < link.payload);
        if is_delivered {
            self.counts.received += 1;
            link.heard(now);
        }
        is_delivered
    }

    fn believe(&mut self, now: Nanos, datagram: &[u8]) -> bool {
        let Ok(packet) = Packet::parse(datagram) else { return false };
        if let Body::Handshake(handshake) = packet.body {
            return self.on_handshake(now, packet.to, &handshake);
        }
        if packet.to != self.identity.socket {
            return false;
        }
        if self.closed.is_some() {
            return self.on_late_packet(now, &packet.body);
        }
        let Phase::Open(link) = &mut self.phase else { return false };
        let is_believed = match packet.body {
            Body::Data(data) => {
                let before = link.receiver.next();
                let arrival = link.receiver.on_data((now, packet.timestamp), &data, link.payload);
                self.flags.readable |=
                    arrival == Arrival::New && (link.receiver.next() != before || !data.message.in_order);
                self.counts.count(arrival);
                arrival == Arrival::New
            }
            Body::LightAck(next) => link.on_light_ack(now, next),
            Body::Ack(ack) => link.on_ack(now, &ack),
            Body::Nak(report) => {
                let is_believed = link.sender.on_nak(now, report);
                link.exp_since = if is_believed { now } else { link.exp_since };
                self.counts.naks += u64::from(is_believed);
                is_believed
            }
            Body::Ack2(number) => link.receiver.on_ack2(now, number),
            Body::MessageDrop(given_up) => {
                let is_believed =
                    self.config.socket_type == SocketType::Datagram && link.receiver.on_drop(now, &given_up);
                self.flags.readable |= is_believed;
                is_believed
            }
            Body::KeepAlive => true,
            Body::CongestionWarning => {
                link.sender.on_warning(now);
                true
            }
            Body::Shutdown => {
                self.peer_closed = true;
                self.closed = Some(Reason::PeerClosed);
                true
            }
            Body::Error(code) => {
                self.flags.peer_error = Some(code);
                true
            }
            Body::Handshake(_) => false,
        };
        if is_believed {
            link.heard(now);
        }
        if self.flags.wants_room && link.sender.buffer.free_bytes() > 0 {
            self.flags.wants_room = false;
            self.flags.writable = true;
        }
        is_believed
    }

    fn on_handshake(&mut self, now: Nanos, to: SocketId, handshake: &Handshake) -> bool {
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
                    let link = Link::new(now, &self.config, &self.identity, answer);
                    self.phase = Phase::Open(Box::new(link));
                    self.flags.connected = true;
                    true
                }
            },
        }
    }

    /// The peer has not heard that this end is closed: tell it again, once in a SYN.
    fn on_late_packet(&mut self, now: Nanos, body: &Body<'_>) -> bool {
        self.peer_closed |= *body == Body::Shutdown;
        if let (Phase::Open(link), Body::Ack(ack)) = (&mut self.phase, body) {
            link.on_ack(now, ack);
        }
        let is_peers = self.closed == Some(Reason::PeerClosed) || *body == Body::Shutdown;
        if !is_peers && self.last_shutdown.is_some_and(|last| now - last >= SYN) {
            self.repeat_close();
        }
        true
    }

    /// When [`handle_timeout`](Self::handle_timeout) or [`poll_transmit`](Self::poll_transmit) has something to do, if nothing else happens
    /// before. It may be past. `None` once the connection is closed.
    pub fn next_timeout(&self) -> Option<Nanos> {
        if self.flags.send_shutdown {
            return Some(Nanos(0));
        }
        if self.closed.is_some() {
            return None;
        }
        let closing = self.closing.map(|since| since + self.config.linger);
        let phase = match &self.phase {
            Phase::Connecting(connector) => connector.next_timeout(),
            Phase::Open(link) => link.next_timeout(&self.config),
        };
        Some(closing.map_or(phase, |closing| closing.min(phase)))
    }

    /// Whether data could leave but for the pace, so that what the peer says now changes little before
    /// [`next_timeout`](Self::next_timeout).
    pub fn is_pacing(&self) -> bool {
        matches!(&self.phase, Phase::Open(link) if self.closed.is_none() && link.sender.next_timeout().is_some())
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.closed.is_some() {
            return;
        }
        match &mut self.phase {
            Phase::Connecting(connector) if connector.has_given_up(now) => {
                self.closed = Some(Reason::NoAnswer)
            }
            Phase::Connecting(_) => {}
            Phase::Open(link) => {
                link.receiver.handle_timeout(now);
                if link.is_silent(now, &self.config) {
                    self.closed = Some(Reason::Silent);
                } else {
                    self.counts.timeouts += u64::from(link.check_exp(now));
                }
            }
        }
        if self.closing.is_some_and(|since| now - since >= self.config.linger) {
            self.end(Reason::Linger);
        }
    }

    /// What to send now: one control packet, or up to `most` data packets of equal size. Call it until there is nothing.
    pub fn poll_transmit(&mut self, now: Nanos, most: u32) -> Option<Transmit<'_>> {
        if self.closing.is_some() && self.closed.is_none() && self.is_all_delivered() {
            self.end(Reason::Closed);
        }
        let timestamp = ((now - self.began).0 / 1000) as u32;
        if let Some(length) = self.poll_control(now, timestamp) {
            return Some(Transmit { bytes: &self.scratch[..length], segment: length });
        }
        if self.closed.is_some() {
            return None;
        }
        let Phase::Open(link) = &mut self.phase else { return None };
        let was_idle = !link.sender.is_waiting_for_ack();
        let next = link.sender.poll(now, most.max(1), timestamp)?;
        link.exp_since = if was_idle { now } else { link.exp_since };
        match next {
            Next::Drop(given_up) => {
                let packet = Packet { timestamp, to: link.peer, body: Body::MessageDrop(given_up) };
                let length = packet.write(&mut self.scratch)?;
                Some(Transmit { bytes: &self.scratch[..length], segment: length })
            }
            Next::Data { bytes, packets, again } => {
                let count = if again { &mut self.counts.sent_again } else { &mut self.counts.sent };
                *count += u64::from(packets);
                Some(Transmit { bytes: link.sender.buffer.bytes(bytes), segment: HEADER + link.payload })
            }
        }
    }

    /// Writes the next control packet into the scratch buffer.
    fn poll_control(&mut self, now: Nanos, timestamp: u32) -> Option<usize> {
        let (to, body) = match &mut self.phase {
            Phase::Open(link) if self.flags.send_shutdown => {
                // The peer is to know what has arrived before it hears that nothing more will be said.
                let last = link.receiver.poll_ack(now).unwrap_or_else(|| {
                    self.flags.send_shutdown = false;
                    self.last_shutdown = Some(now);
                    Body::Shutdown
                });
                (link.peer, last)
            }
            _ if self.closed.is_some() => return None,
            Phase::Connecting(connector) => (SocketId::LISTENER, Body::Handshake(connector.poll(now)?)),
            Phase::Open(link) => (link.peer, link.poll_control(now, &mut self.report)?),
        };
        Packet { timestamp, to, body }.write(&mut self.scratch)
    }

    fn is_all_delivered(&self) -> bool {
        match &self.phase {
            Phase::Open(link) => link.sender.is_all_delivered() && !link.send_answer,
            Phase::Connecting(_) => true,
        }
    }

    fn end(&mut self, reason: Reason) {
        self.closed = Some(reason);
        self.repeat_close();
    }

    /// Closes the connection once all that was written has arrived. What arrives meanwhile can be read.
    pub fn close(&mut self, now: Nanos) {
        self.closing.get_or_insert(now);
    }

    /// Says once more what has arrived and that this end is closed, if it is: the word may have got lost.
    pub fn repeat_close(&mut self) {
        if let Phase::Open(link) = &mut self.phase
            && self.closed.is_some()
        {
            link.receiver.acknowledge_again();
            self.flags.send_shutdown = true;
        }
    }

    /// Closes the connection at once. What has not arrived is lost.
    pub fn abort(&mut self) {
        if self.closed.is_none() {
            self.end(Reason::Aborted);
        }
    }

    /// What has happened since the last call; `None` once all was told.
    pub fn poll_event(&mut self) -> Option<Event> {
        let flags = &mut self.flags;
        if std::mem::take(&mut flags.connected) {
            return Some(Event::Connected);
        }
        if std::mem::take(&mut flags.readable) {
            return Some(Event::Readable);
        }
        if std::mem::take(&mut flags.writable) {
            return Some(Event::Writable);
        }
        if let Some(code) = flags.peer_error.take() {
            return Some(Event::PeerError(code));
        }
        let reason = self.closed.filter(|_| !flags.told_closed)?;
        flags.told_closed = true;
        Some(Event::Closed(reason))
    }

    /// Whether [`write`](Self::write) would find room.
    pub fn is_writable(&self) -> bool {
        matches!(&self.phase, Phase::Open(link) if link.sender.buffer.free_bytes() > 0)
    }

    /// Tells the peer at once what has arrived, for a caller that will not be there when it is due.
    pub fn acknowledge(&mut self) {
        if let Phase::Open(link) = &mut self.phase {
            link.receiver.acknowledge();
        }
    }

    fn open(&mut self, socket_type: SocketType) -> Result<&mut Link, IoError> {
        if self.config.socket_type != socket_type {
            return Err(IoError::Type);
        }
        match &mut self.phase {
            Phase::Open(link) => Ok(link),
            Phase::Connecting(_) if self.closed.is_some() => Err(IoError::Closed),
            Phase::Connecting(_) => Err(IoError::NotOpen),
        }
    }

    fn writable(&mut self, socket_type: SocketType) -> Result<&mut Link, IoError> {
        if self.closed.is_some() || self.closing.is_some() {
            return Err(IoError::Closed);
        }
        self.open(socket_type)
    }

    /// Writes bytes of a stream, as many as there is room for, at least one.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, IoError> {
        let written = self.writable(SocketType::Stream)?.sender.buffer.write_stream(data);
        self.flags.wants_room = written < data.len();
        if written == 0 && !data.is_empty() { Err(IoError::Full) } else { Ok(written) }
    }

    /// Writes a message. One that is not `in_order` may overtake others; one that has not arrived `ttl` after now is given up.
    pub fn write_message(
        &mut self,
        now: Nanos,
        data: &[u8],
        in_order: bool,
        ttl: Option<Nanos>,
    ) -> Result<(), IoError> {
        let most = self.config.send_buffer.max(2) as usize;
        let link = self.writable(SocketType::Datagram)?;
        if data.is_empty() || data.len() > most * link.payload {
            return Err(IoError::Size);
        }
        if data.len() > link.sender.buffer.free_bytes() {
            self.flags.wants_room = true;
            return Err(IoError::Full);
        }
        link.sender.buffer.write_message(data, in_order, ttl.map(|ttl| now + ttl));
        Ok(())
    }

    /// The stream's next bytes, in place; more may follow once they are consumed. None where nothing can be read now.
    pub fn peek(&self) -> &[u8] {
        match &self.phase {
            Phase::Open(link) if self.config.socket_type == SocketType::Stream => {
                link.receiver.buffer.peek(link.receiver.next())
            }
            _ => &[],
        }
    }

    /// The first `bytes` of what [`peek`](Self::peek) returns were read.
    pub fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.peek().len());
        if let Phase::Open(link) = &mut self.phase
            && bytes > 0
        {
            link.receiver.buffer.consume(bytes);
            link.receiver.on_read();
        }
    }

    /// Copies the stream's next bytes, and says how many; 0 where there are none now. A connection that is closed is at its end then.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, IoError> {
        self.open(SocketType::Stream)?;
        let mut read = 0;
        while read < out.len() {
            let piece = self.peek();
            let length = piece.len().min(out.len() - read);
            if length == 0 {
                break;
            }
            out[read..read + length].copy_from_slice(&piece[..length]);
            self.consume(length);
            read += length;
        }
        Ok(read)
    }

    /// Copies the next message into `out`, and says how long it is; `None` where there is none now.
    pub fn read_message(&mut self, out: &mut [u8]) -> Result<Option<usize>, IoError> {
        let receiver = &mut self.open(SocketType::Datagram)?.receiver;
        let next = receiver.next();
        receiver.buffer.skip(next);
        let Some(found) = receiver.buffer.find(next, receiver.largest()) else {
            let is_stuck = receiver.buffer.is_full(next);
            receiver.on_read();
            if is_stuck && self.closed.is_none() {
                self.end(Reason::MessageTooLarge);
            }
            return Ok(None);
        };
        let room = out.get_mut(..found.bytes()).ok_or(IoError::Small(found.bytes()))?;
        receiver.buffer.read_message(found, next, room);
        receiver.on_read();
        Ok(Some(found.bytes()))
    }
}

impl Counts {
    fn count(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::New => self.received += 1,
            Arrival::Again => self.received_again += 1,
            Arrival::Beyond => self.no_room += 1,
        }
    }
}

impl Link {
    /// A connection with what both ends agreed on: `agreed` is the peer's handshake.
    fn new(now: Nanos, config: &Config, identity: &Identity, agreed: Handshake) -> Self {
        let (first, payload) = (identity.first_seq, agreed.mss as usize - HEADERS);
        let send = SendBuffer::new(config.send_buffer.clamp(2, MAX_WINDOW), payload, first, agreed.socket);
        let receive = ReceiveBuffer::new(config.receive_buffer.clamp(2, MAX_WINDOW), payload, first);
        let limits = Limits { mss: agreed.mss, peer_flight: agreed.flight };
        let control = (config.control)(first, identity.seed);
        Link {
            peer: agreed.socket,
            payload,
            answer: None,
            send_answer: false,
            sender: Sender::new(send, control, limits, config.catch_up),
            receiver: Receiver::new(receive, first),
            ack2: None,
            last_ack2: None,
            keep_alive: false,
            last_heard: now,
            exp_since: now,
            exp_count: 1,
        }
    }

    /// The peer has not heard the answer. A request for another connection is none of ours.
    fn on_repeated_request(&mut self, request: &Handshake) -> bool {
        let is_ours = self.answer.is_some_and(|answer| {
            let is_request = request.kind == HandshakeKind::Connect && request.cookie == answer.cookie;
            is_request && request.socket == self.peer && request.first_seq == answer.first_seq
        });
        self.send_answer |= is_ours;
        is_ours
    }

    fn heard(&mut self, now: Nanos) {
        self.last_heard = now;
        self.exp_count = 1;
        if !self.sender.is_waiting_for_ack() {
            self.exp_since = now;
        }
    }

    fn on_light_ack(&mut self, now: Nanos, next: Seq) -> bool {
        let Some(released) = self.sender.acknowledge(next) else { return false };
        self.exp_since = if released > 0 { now } else { self.exp_since };
        true
    }

    fn on_ack(&mut self, now: Nanos, ack: &Ack) -> bool {
        if !self.on_light_ack(now, ack.next) {
            return false;
        }
        self.sender.on_ack(now, ack);
        let is_due = |(number, at): (u32, Nanos)| number == ack.number || now - at >= SYN;
        if self.last_ack2.is_none_or(is_due) {
            self.ack2 = Some(ack.number);
            self.last_ack2 = Some((ack.number, now));
        }
        true
    }

    fn exp_at(&self) -> Nanos {
        let count = u64::from(self.exp_count);
        let trip = self.sender.path().round_trip.timeout();
        self.exp_since + (trip.times(count) + SYN).max(MIN_EXP.times(count))
    }

    fn is_silent(&self, now: Nanos, config: &Config) -> bool {
        let silence = now - self.last_heard;
        silence >= config.silence
            || self.exp_count > MAX_EXP && silence >= Nanos::secs(3) && now >= self.exp_at()
    }

    /// What was sent and not acknowledged for too long goes again; a peer that sends nothing is told that this end is alive.
    fn check_exp(&mut self, now: Nanos) -> bool {
        if now < self.exp_at() {
            return false;
        }
        let is_waiting = self.sender.is_waiting_for_ack();
        if is_waiting {
            self.sender.on_timeout(now);
        } else {
            self.keep_alive = true;
        }
        self.exp_count += 1;
        self.exp_since = now;
        is_waiting
    }

    fn next_timeout(&self, config: &Config) -> Nanos {
        let is_due = self.send_answer || self.ack2.is_some() || self.keep_alive;
        let now = is_due.then_some(Nanos(0));
        let own = self.exp_at().min(self.last_heard + config.silence);
        let others = [now, self.receiver.next_timeout(), self.sender.next_timeout()];
        others.into_iter().flatten().fold(own, Nanos::min)
    }

    fn poll_control<'a>(&mut self, now: Nanos, room: &'a mut [u8]) -> Option<Body<'a>> {
        if std::mem::take(&mut self.send_answer)
            && let Some(answer) = self.answer
        {
            return Some(Body::Handshake(answer));
        }
        if let Some(number) = self.ack2.take() {
            return Some(Body::Ack2(number));
        }
        if std::mem::take(&mut self.keep_alive) {
            return Some(Body::KeepAlive);
        }
        // A report must fit the packet size that both ends agreed on.
        let length = room.len().min(self.payload / 4 * 4);
        self.receiver.poll(now, &mut room[..length])
    }
}
