//! A connection without sockets and without clocks.
//!
//! The caller passes received datagrams to [`handle`](Connection::handle). It calls
//! [`poll_transmit`](Connection::poll_transmit) until the result is `None`, and sends the datagrams. It then sleeps
//! until [`next_timeout`](Connection::next_timeout) or the next datagram, and calls
//! [`handle_timeout`](Connection::handle_timeout) after each sleep. The caller passes the current time, which may
//! count from any fixed origin.
//!
//! The module `opening` is the handshake, `open` is the open connection with both halves, and `io` is reading and
//! writing by the application.

mod config;
mod figures;
mod io;
mod open;
mod opening;
mod outcome;
mod timers;

use std::fmt;
use std::net::SocketAddr;

use landspeed_record::units::Nanos;

pub use self::config::{ConnectionIdentity, UdtConfig};
pub use self::figures::PacketCounts;
use self::figures::{DeliveryProgress, PathFigures};
pub use self::outcome::{CloseReason, IoError, TransmitBatch, UdtEvent};
pub use self::timers::MIN_EXP as FIRST_TIMEOUT;

use self::open::OpenConnection;
use crate::handshake::Connector;
use crate::history::SYNC_INTERVAL;
use crate::packet::{HEADER, PacketBody, PacketTime, UdtPacket, data_header};
use crate::receiver::DataArrival;
use crate::sender::PacketRun;
use crate::seq::UdtSocketId;

/// One end of a UDT connection.
pub struct Connection {
    config: UdtConfig,
    identity: ConnectionIdentity,
    peer: SocketAddr,
    began: Nanos,
    phase: ConnectionPhase,
    scratch: Box<[u8]>,
    report: Box<[u8]>,
    flags: ConnectionFlags,
    closing: Option<Nanos>,
    closed: Option<CloseReason>,
    peer_closed: bool,
    last_shutdown: Option<Nanos>,
    counts: PacketCounts,
}

#[derive(Debug)]
enum ConnectionPhase {
    Connecting(Connector),
    Open(Box<OpenConnection>),
}

/// Events that the caller has not polled yet, and the state that decides which events are next.
#[derive(Debug, Default)]
struct ConnectionFlags {
    connected: bool,
    readable: bool,
    wants_room: bool,
    peer_error: Option<u32>,
    reported_closed: bool,
    send_shutdown: bool,
}

/// Prints the state without the bytes of packets.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("identity", &self.identity)
            .field("peer", &self.peer)
            .field("phase", &self.phase)
            .field("closing", &self.closing)
            .field("closed", &self.closed)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Returns the peer's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the packet counts so far.
    pub fn counts(&self) -> PacketCounts {
        self.counts
    }

    /// Returns the reason why the connection has ended; `None` if it has not.
    pub fn closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// Returns true if the peer has sent a shutdown.
    pub fn has_peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Returns the amount of data that the peer has acknowledged. Before the connection is open it is zero, and
    /// `is_all` is true.
    pub fn progress(&self) -> DeliveryProgress {
        let ConnectionPhase::Open(open) = &self.phase else {
            return DeliveryProgress { is_all: true, ..DeliveryProgress::default() };
        };
        let acked = open.sender.acked();
        DeliveryProgress {
            packets: acked.packets,
            bytes: acked.bytes,
            is_all: open.sender.is_all_delivered(),
        }
    }

    /// Returns the payload of a full packet, in bytes; `None` before the connection is open.
    pub fn payload(&self) -> Option<usize> {
        match &self.phase {
            ConnectionPhase::Open(open) => Some(open.payload),
            ConnectionPhase::Connecting(_) => None,
        }
    }

    /// Returns the estimates of the path and the state of the congestion control; `None` before the connection is
    /// open.
    pub fn path(&self) -> Option<PathFigures> {
        let ConnectionPhase::Open(open) = &self.phase else { return None };
        let path = open.sender.path();
        Some(PathFigures {
            round_trip: path.round_trip,
            arrival: path.arrival,
            capacity: path.capacity,
            period: open.sender.period(),
            window: open.sender.window(),
            flight: open.sender.buffer.sent(),
            missing: open.receiver.missing(),
        })
    }

    /// Processes a datagram from the peer. The caller must check that its source is the peer's address.
    pub fn handle(&mut self, now: Nanos, datagram: &[u8]) {
        if !self.believe(now, datagram) {
            self.counts.ignored += 1;
        }
    }

    /// Processes a data packet whose payload of `length` bytes is already in the reader's memory and counts as read.
    /// Returns false if other data must be read before it, or if the packet does not belong to the stream. The caller
    /// must then pass the packet to [`handle`](Self::handle).
    pub fn deliver(&mut self, now: Nanos, header: &[u8; HEADER], length: usize) -> bool {
        let ConnectionPhase::Open(open) = &mut self.phase else { return false };
        let is_data = self.closed.is_none() && (1..=open.payload).contains(&length);
        let Some((seq, timestamp, to)) = data_header(header).filter(|_| is_data) else { return false };
        let is_delivered = to == self.identity.socket
            && open.receiver.on_delivery(PacketTime { now, timestamp }, seq, length < open.payload);
        if is_delivered {
            self.counts.received += 1;
            open.heard(now);
        }
        is_delivered
    }

    fn believe(&mut self, now: Nanos, datagram: &[u8]) -> bool {
        let Ok(packet) = UdtPacket::parse(datagram) else { return false };
        if let PacketBody::Handshake(handshake) = packet.body {
            return self.on_handshake(now, packet.to, &handshake);
        }
        if packet.to != self.identity.socket {
            return false;
        }
        if self.closed.is_some() {
            return self.on_late_packet(now, &packet.body);
        }
        self.on_body(PacketTime { now, timestamp: packet.timestamp }, &packet.body)
    }

    fn on_body(&mut self, at: PacketTime, body: &PacketBody<'_>) -> bool {
        let now = at.now;
        let ConnectionPhase::Open(open) = &mut self.phase else { return false };
        let is_believed = match body {
            PacketBody::Data(data) => {
                let (arrival, is_ready) = open.on_data(at, data);
                self.flags.readable |= is_ready;
                self.counts.count(arrival);
                arrival == DataArrival::New
            }
            PacketBody::LightAck(next) => open.on_light_ack(now, *next),
            PacketBody::Ack(ack) => open.on_ack(now, ack),
            PacketBody::Nak(report) => {
                let is_believed = open.on_nak(now, *report);
                self.counts.naks += u64::from(is_believed);
                is_believed
            }
            PacketBody::Ack2(number) => open.receiver.on_ack2(now, *number),
            PacketBody::KeepAlive => true,
            PacketBody::CongestionWarning => {
                open.sender.on_warning(now);
                true
            }
            PacketBody::Shutdown => {
                self.peer_closed = true;
                self.closed = Some(CloseReason::PeerClosed);
                true
            }
            PacketBody::Error(code) => {
                self.flags.peer_error = Some(*code);
                true
            }
            PacketBody::Handshake(_) => false,
        };
        if is_believed {
            open.heard(now);
        }
        is_believed
    }

    /// Processes a packet that arrives after the end of the connection. Such a packet shows that the peer has not
    /// received the shutdown. The shutdown is then sent again, at most once in a synchronisation time (10 ms), unless
    /// the peer has closed too.
    fn on_late_packet(&mut self, now: Nanos, body: &PacketBody<'_>) -> bool {
        self.peer_closed |= *body == PacketBody::Shutdown;
        if let (ConnectionPhase::Open(open), PacketBody::Ack(ack)) = (&mut self.phase, body) {
            open.on_ack(now, ack);
        }
        let is_peers = self.closed == Some(CloseReason::PeerClosed) || *body == PacketBody::Shutdown;
        if !is_peers && self.last_shutdown.is_some_and(|last| now - last >= SYNC_INTERVAL) {
            self.repeat_close();
        }
        true
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) or [`poll_transmit`](Self::poll_transmit)
    /// next has something to do, if no datagram arrives and nothing is written. The time may be in the past. `None`
    /// once the connection is closed and nothing is left to send.
    pub fn next_timeout(&self) -> Option<Nanos> {
        if self.flags.send_shutdown {
            return Some(Nanos(0));
        }
        if self.closed.is_some() {
            return None;
        }
        let closing = self.closing.map(|since| since + self.config.linger);
        let phase = match &self.phase {
            ConnectionPhase::Connecting(connector) => connector.next_timeout(),
            ConnectionPhase::Open(open) => open.next_timeout(&self.config),
        };
        Some(closing.map_or(phase, |closing| closing.min(phase)))
    }

    /// Returns true if data could be sent, but must wait for its departure time. A caller may then sleep until
    /// [`next_timeout`](Self::next_timeout) and handle what has arrived afterwards.
    pub fn is_pacing(&self) -> bool {
        matches!(&self.phase, ConnectionPhase::Open(open) if self.closed.is_none() && open.sender.is_pacing())
    }

    /// Runs the timers that have expired at `now`.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.closed.is_some() {
            return;
        }
        match &mut self.phase {
            ConnectionPhase::Connecting(connector) if connector.has_given_up(now) => {
                self.closed = Some(CloseReason::NoAnswer)
            }
            ConnectionPhase::Connecting(_) => {}
            ConnectionPhase::Open(open) => {
                open.handle_timeout(now);
                if open.is_silent(now, &self.config) {
                    self.closed = Some(CloseReason::Silent);
                } else {
                    self.counts.timeouts += u64::from(open.check_exp(now));
                }
            }
        }
        if self.closing.is_some_and(|since| now - since >= self.config.linger) {
            self.end(CloseReason::Linger);
        }
    }

    /// Returns the next datagrams to send: one control packet, or up to `most` data packets of equal size, the last
    /// of which may be shorter. Call it until it returns `None`.
    pub fn poll_transmit(&mut self, now: Nanos, most: u32) -> Option<TransmitBatch<'_>> {
        if self.closing.is_some() && self.closed.is_none() && self.is_all_delivered() {
            self.end(CloseReason::Closed);
        }
        let timestamp = ((now - self.began).0 / 1000) as u32;
        if let Some(length) = self.poll_control(now, timestamp) {
            return Some(TransmitBatch { bytes: &self.scratch[..length], segment: length });
        }
        if self.closed.is_some() {
            return None;
        }
        let ConnectionPhase::Open(open) = &mut self.phase else { return None };
        let PacketRun { bytes, packets, again } =
            open.poll_data(PacketTime { now, timestamp }, most.max(1))?;
        let count = if again { &mut self.counts.sent_again } else { &mut self.counts.sent };
        *count += u64::from(packets);
        Some(TransmitBatch { bytes: open.sender.buffer.bytes(bytes), segment: HEADER + open.payload })
    }

    /// Writes the next control packet into the scratch buffer and returns its length; `None` if none is due.
    fn poll_control(&mut self, now: Nanos, timestamp: u32) -> Option<usize> {
        let (to, body) = match &mut self.phase {
            ConnectionPhase::Open(open) if self.flags.send_shutdown => {
                // Acknowledges everything that has arrived first, because the shutdown is the last packet.
                let last = open.receiver.poll_ack(now).unwrap_or_else(|| {
                    self.flags.send_shutdown = false;
                    self.last_shutdown = Some(now);
                    PacketBody::Shutdown
                });
                (open.peer, last)
            }
            _ if self.closed.is_some() => return None,
            ConnectionPhase::Connecting(connector) => {
                (UdtSocketId::LISTENER, PacketBody::Handshake(connector.poll(now)?))
            }
            ConnectionPhase::Open(open) => (open.peer, open.poll_control(now, &mut self.report)?),
        };
        let length = UdtPacket { timestamp, to, body }.write(&mut self.scratch)?;
        // The padding of a request is zeros, because nothing else was written into the fresh scratch buffer so far.
        Some(if let ConnectionPhase::Connecting(connector) = &self.phase {
            connector.length()
        } else {
            length
        })
    }

    fn is_all_delivered(&self) -> bool {
        match &self.phase {
            ConnectionPhase::Open(open) => open.is_all_delivered(),
            ConnectionPhase::Connecting(_) => true,
        }
    }

    fn end(&mut self, reason: CloseReason) {
        self.closed = Some(reason);
        self.repeat_close();
    }

    /// Closes the connection once everything that was written has arrived, or after [`UdtConfig::linger`]. Data that
    /// arrives before the end can still be read.
    pub fn close(&mut self, now: Nanos) {
        self.closing.get_or_insert(now);
    }

    /// Sends the last acknowledgement and the shutdown again if this end is closed, because they may have been lost.
    pub fn repeat_close(&mut self) {
        if let ConnectionPhase::Open(open) = &mut self.phase
            && self.closed.is_some()
        {
            open.receiver.acknowledge_again();
            self.flags.send_shutdown = true;
        }
    }

    /// Closes the connection without waiting. Data that has not arrived is lost.
    pub fn abort(&mut self) {
        if self.closed.is_none() {
            self.end(CloseReason::Aborted);
        }
    }

    /// Returns the next event since the last call; `None` if there is no other.
    pub fn poll_event(&mut self) -> Option<UdtEvent> {
        if self.flags.wants_room && self.is_writable() {
            self.flags.wants_room = false;
            return Some(UdtEvent::Writable);
        }
        let flags = &mut self.flags;
        if std::mem::take(&mut flags.connected) {
            return Some(UdtEvent::Connected);
        }
        if std::mem::take(&mut flags.readable) {
            return Some(UdtEvent::Readable);
        }
        if let Some(code) = flags.peer_error.take() {
            return Some(UdtEvent::PeerError(code));
        }
        let reason = self.closed.filter(|_| !flags.reported_closed)?;
        flags.reported_closed = true;
        Some(UdtEvent::Closed(reason))
    }
}
