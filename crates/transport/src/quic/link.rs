//! One end of a connection: quinn's state machine, driven by the threads that send and receive.
//!
//! There is no thread of its own. Each call on a flow takes in what came, lets timers run and sends what may be sent; between
//! calls the coordinator's look at the flow's progress does.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionStats, DatagramEvent, Dir,
    Endpoint, EndpointConfig, Event, HashedConnectionIdGenerator, ReadError, ServerConfig, StreamEvent,
    StreamId, TransportErrorCode, VarInt, WriteError,
};
use rustix::event::PollFlags;

use super::arrivals::Arrivals;
use super::controller::Heard;
use super::identity;
use super::options::Ways;
use super::piece::Piece;
use super::wire::Wire;
use crate::proof;

/// Receive calls of one turn: a peer that sends without end must not keep this end from answering.
const TURN: usize = 4;
/// The longest that an acknowledgement waits for another packet to acknowledge (max_ack_delay, RFC 9000 section 18.2).
pub(super) const ACK_DELAY: Duration = Duration::from_millis(25);
/// Bytes that one write takes.
const MOST: usize = 128 << 10;

/// Why a connection was closed, as its end says (RFC 9000 section 20.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goodbye {
    /// At once: what waits is dropped, or its proof took too long.
    Abort = 0,
    /// All that the peer sent has come, its end included.
    Finished = 1,
}

/// Why there is no connection any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// This end closed it.
    Here,
    /// The peer did.
    There(Goodbye),
    /// The peer has no such connection any more (RFC 9000 section 10.3).
    Gone,
    /// One end does not have the session's key.
    Unproven,
    Failed(String),
}

pub(super) struct Link {
    wire: Wire,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    heard: Arc<Heard>,
    stream: Option<StreamId>,
    connected: bool,
    /// Whether data waits for the window or the pace.
    held_back: bool,
    written: u64,
    acked: Arc<AtomicU64>,
    /// Whether the peer has all, the stream's end included.
    has_finished: bool,
    arrivals: Arrivals,
    /// Whether all that the peer sent has come.
    is_over: bool,
    /// Whether all of that was read, the stream's end included.
    has_ended: bool,
    lost: Option<Lost>,
}

/// quinn's configuration of one end, or of all that a listener makes: these share how they make connection IDs, and the key by which
/// the listener takes back those of connections that are gone.
pub(super) fn endpoint() -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::default();
    let ids = u64::from_ne_bytes(*proof::challenge().first_chunk().expect("a challenge has 16 bytes"));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(ids)));
    // What jumbo frames carry is taken too; the bound is the standard's own.
    let _ = config.max_udp_payload_size(65_527);
    Arc::new(config)
}

impl Link {
    /// Begins a connection to the wire's peer.
    pub(super) fn calling(wire: Wire, ways: &Ways, mut config: ClientConfig) -> Result<Link, String> {
        let heard = Arc::default();
        config.transport_config(Arc::new(ways.configuration(wire.largest(), &heard)));
        let mut endpoint = Endpoint::new(endpoint(), None, true, None);
        let begun = endpoint.connect(Instant::now(), config, wire.peer, identity::NAME);
        let connection = begun.map_err(|error| error.to_string())?;
        Ok(Link::new(wire, endpoint, connection, (heard, ways)))
    }

    /// Takes a connection from its first packet; `None` where that makes no sense.
    pub(super) fn answering(
        wire: Wire,
        ways: &Ways,
        (shared, mut config): (&Arc<EndpointConfig>, ServerConfig),
        first: &[u8],
    ) -> Option<Link> {
        let now = Instant::now();
        let heard = Arc::default();
        config.transport_config(Arc::new(ways.configuration(wire.largest(), &heard)));
        let mut endpoint = Endpoint::new(Arc::clone(shared), Some(Arc::new(config)), true, None);
        let mut answer = Vec::new();
        let event = endpoint.handle(now, wire.peer, None, None, first.into(), &mut answer);
        let Some(DatagramEvent::NewConnection(incoming)) = event else { return None };
        let connection = endpoint.accept(incoming, now, &mut answer, None).ok()?;
        // Any other connection of the same client is not for this socket.
        endpoint.set_server_config(None);
        Some(Link::new(wire, endpoint, connection, (heard, ways)))
    }

    fn new(
        wire: Wire,
        endpoint: Endpoint,
        (handle, connection): (ConnectionHandle, Connection),
        (heard, ways): (Arc<Heard>, &Ways),
    ) -> Link {
        Link {
            wire,
            endpoint,
            handle,
            connection,
            heard,
            stream: None,
            connected: false,
            held_back: false,
            written: 0,
            acked: Arc::default(),
            has_finished: false,
            arrivals: Arrivals::within(ways.window.0 as usize),
            is_over: false,
            has_ended: false,
            lost: None,
        }
    }

    pub(super) fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// Sends the first packet of a client's; returns it.
    pub(super) fn knock(&mut self, now: Instant) -> Vec<u8> {
        self.wire.packets.clear();
        let packet = self.connection.poll_transmit(now, 1, &mut self.wire.packets);
        packet.map(|packet| self.wire.send(packet));
        self.wire.packets.clone()
    }

    /// Takes in what came, lets timers run, sends what may be sent; whether anything happened.
    pub(super) fn drive(&mut self, now: Instant) -> bool {
        let came = self.take_in(now);
        let is_due = self.connection.poll_timeout().is_some_and(|due| due <= now);
        if is_due {
            self.connection.handle_timeout(now);
        }
        self.hear();
        let waited = self.wire.waits();
        self.transmit(now);
        came || is_due || waited != self.wire.waits()
    }

    fn take_in(&mut self, now: Instant) -> bool {
        let mut any = false;
        for _ in 0..TURN {
            let Link { wire, endpoint, connection, .. } = self;
            let peer = wire.peer;
            let mut answer = Vec::new();
            let received = wire.receive(|ecn, datagram| {
                any = true;
                // The first reason counts: after the peer's close the port's listener may say that the connection is gone.
                if connection.is_closed() {
                    return;
                }
                let event = endpoint.handle(now, peer, None, ecn, datagram, &mut answer);
                // What belongs to no connection is not answered.
                if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                    connection.handle_event(event);
                }
            });
            // Before the next: quinn bears so many gaps only. What goes wrong is told to who reads.
            let _ = self.gather();
            match received {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    any |= !self.wire.is_refused();
                    self.wire.was_refused();
                }
                Err(_) => break,
            }
        }
        any
    }

    /// Takes what quinn has to say.
    fn hear(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(answer);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => {
                    // What this end has against the peer is said before it leaves.
                    self.heard.open();
                    self.lost.get_or_insert(Lost::of(&reason));
                }
                Event::Stream(StreamEvent::Opened { .. }) => {
                    self.stream = self.stream.or_else(|| self.connection.streams().accept(Dir::Bi));
                }
                Event::Stream(StreamEvent::Finished { .. }) => self.has_finished = true,
                _ => {}
            }
        }
    }

    /// Sends what may be sent.
    pub(super) fn transmit(&mut self, now: Instant) {
        if !self.wire.flush() {
            return;
        }
        loop {
            let segments = self.wire.segments(self.connection.current_mtu());
            self.wire.packets.clear();
            self.heard.was_asked();
            let packets = self.connection.poll_transmit(now, segments, &mut self.wire.packets);
            self.held_back = packets.is_none() && self.heard.was_asked();
            let Some(packets) = packets else { return };
            if !self.wire.send(packets) {
                return;
            }
        }
    }

    /// When the next timer runs out.
    pub(super) fn due(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    pub(super) fn interest(&self) -> PollFlags {
        self.wire.interest()
    }

    /// Whether all that was written went out.
    pub(super) fn is_clear(&self) -> bool {
        !self.held_back && !self.wire.waits()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether the peer has said anything.
    pub(super) fn has_heard(&self) -> bool {
        self.connection.stats().udp_rx.datagrams > 0
    }

    /// The client's part: the stream that carries the flow.
    pub(super) fn open(&mut self) {
        self.stream = self.connection.streams().open(Dir::Bi);
    }

    /// Whether the stream is open.
    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Writes a part of a message, if nothing waits; how much was taken. It waits to be transmitted.
    pub(super) fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        if let Some(error) = self.broken() {
            return Err(error);
        }
        let Some(stream) = self.stream.filter(|_| self.is_clear()) else { return Ok(0) };
        let piece = Piece::of(&message[..message.len().min(MOST)], &self.acked);
        match self.connection.send_stream(stream).write_chunks(&mut [piece.bytes()]) {
            Ok(written) => {
                piece.was_taken(written.bytes as u64);
                self.written += written.bytes as u64;
                Ok(written.bytes)
            }
            Err(WriteError::Blocked) => Ok(0),
            Err(_) => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    /// Takes bytes that are there; zero where none are.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.gather()? {
            self.transmit(Instant::now());
        }
        let got = self.arrivals.take(into);
        self.has_ended |= got == 0 && self.is_over;
        Ok(got)
    }

    /// Takes from quinn what has come of the stream; whether the peer is to hear that there is room.
    fn gather(&mut self) -> io::Result<bool> {
        let Link { connection, arrivals, is_over, .. } = self;
        let Some(stream) = self.stream.filter(|_| !*is_over && arrivals.wants()) else { return Ok(false) };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(false) else { return Err(ErrorKind::ConnectionReset.into()) };
        while arrivals.wants() {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => arrivals.place(chunk.offset, chunk.bytes),
                Ok(None) => {
                    *is_over = true;
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(_)) => return Err(ErrorKind::ConnectionReset.into()),
            }
        }
        Ok(chunks.finalize().should_transmit())
    }

    /// Acknowledges what has come. Timers that would run out within quinn's delay of acknowledgements run out now; at worst a probe goes out
    /// early.
    pub(super) fn acknowledge(&mut self) {
        let now = Instant::now();
        let soon = now + ACK_DELAY;
        if self.connection.poll_timeout().is_some_and(|due| due <= soon) {
            self.connection.handle_timeout(soon);
            self.hear();
            self.transmit(now);
        }
    }

    /// Whether all that the peer sends was read.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the peer has all that this end sends.
    pub(super) fn has_finished(&self) -> bool {
        self.has_finished
    }

    /// Says that nothing more comes from here.
    pub(super) fn finish(&mut self) {
        if let Some(stream) = self.stream {
            // Said before, or to no peer any more: what is waited for next tells.
            let _ = self.connection.send_stream(stream).finish();
        }
        self.transmit(Instant::now());
    }

    /// Ends the connection.
    pub(super) fn close(&mut self, goodbye: Goodbye) {
        if self.lost.is_some() {
            return;
        }
        self.lost = Some(Lost::Here);
        self.heard.open();
        let now = Instant::now();
        self.connection.close(now, VarInt::from_u32(goodbye as u32), bytes::Bytes::new());
        self.transmit(now);
    }

    pub(super) fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    /// Why nothing can be sent any more, where that is so.
    pub(super) fn broken(&self) -> Option<io::Error> {
        match &self.lost {
            Some(lost) => Some(lost.error()),
            None => self.wire.is_refused().then(|| ErrorKind::ConnectionReset.into()),
        }
    }

    /// Bytes that the peer has acknowledged.
    pub(super) fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Packets that the peer has acknowledged.
    pub(super) fn delivered(&self) -> u64 {
        self.heard.delivered()
    }

    pub(super) fn stats(&self) -> ConnectionStats {
        self.connection.stats()
    }
}

impl Lost {
    /// What a call on the flow says of it.
    pub(super) fn error(&self) -> io::Error {
        match self {
            Lost::Here => ErrorKind::NotConnected.into(),
            Lost::There(_) | Lost::Gone => ErrorKind::ConnectionReset.into(),
            Lost::Unproven => ErrorKind::PermissionDenied.into(),
            Lost::Failed(why) => io::Error::other(why.clone()),
        }
    }

    fn of(reason: &ConnectionError) -> Lost {
        let closed = |code: TransportErrorCode, text: String| match u64::from(code) {
            // CRYPTO_ERROR (RFC 9000 section 20.1): a TLS alert.
            0x100..0x200 => Lost::Unproven,
            code if code == u64::from(TransportErrorCode::APPLICATION_ERROR) => Lost::There(Goodbye::Abort),
            _ => Lost::Failed(text),
        };
        match reason {
            ConnectionError::ApplicationClosed(close) => Lost::There(match close.error_code.into_inner() {
                1 => Goodbye::Finished,
                _ => Goodbye::Abort,
            }),
            ConnectionError::ConnectionClosed(close) => closed(close.error_code, reason.to_string()),
            ConnectionError::TransportError(error) => closed(error.code, reason.to_string()),
            ConnectionError::LocallyClosed => Lost::Here,
            ConnectionError::Reset => Lost::Gone,
            _ => Lost::Failed(reason.to_string()),
        }
    }
}
