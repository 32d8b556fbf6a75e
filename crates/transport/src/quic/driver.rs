//! One end of a QUIC connection. The threads that send and receive drive quinn's state machine.
//!
//! The driver has no thread. Each call on a flow processes what arrived, runs timers and sends what may be sent. If no
//! thread sends or receives, the coordinator drives the connection by regular calls of the flow's `progress`.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionStats, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, HashedConnectionIdGenerator, ReadError, ServerConfig, StreamEvent, StreamId,
    VarInt, WriteError,
};
use rustix::event::PollFlags;

use super::controller::ControllerObservations;
use super::disconnect::{CloseCode, DisconnectReason};
use super::options::QuicSettings;
use super::reorder_buffer::ReorderBuffer;
use super::sent_buffer::SentBuffer;
use super::wire::QuicSocket;
use crate::raw_keys;

/// The largest number of receive calls in a row. A peer that sends continuously must not prevent this end from sending.
const TURN: usize = 4;
/// The longest time for which an acknowledgement is delayed to cover another packet (max_ack_delay, RFC 9000 section
/// 18.2).
pub(super) const ACK_DELAY: Duration = Duration::from_millis(25);
/// The most bytes that one write accepts.
const MOST: usize = 128 << 10;

pub(super) struct QuicDriver {
    wire: QuicSocket,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    observations: Arc<ControllerObservations>,
    stream: Option<StreamId>,
    connected: bool,
    /// True if data waits for the congestion window or the pacing.
    held_back: bool,
    written: u64,
    acked: Arc<AtomicU64>,
    /// True if the peer has acknowledged everything, including the stream's end.
    has_finished: bool,
    reorder_buffer: ReorderBuffer,
    /// True if all of the peer's bytes and its end of the stream have arrived.
    is_over: bool,
    /// True if all of the peer's bytes have been read, up to the end of the stream.
    has_ended: bool,
    lost: Option<DisconnectReason>,
}

/// Returns quinn's configuration of an endpoint. All endpoints of a listener share one configuration. It contains the
/// generator of connection IDs, and the key of the stateless resets with which the listener ends connections that this
/// end no longer has.
pub(super) fn endpoint() -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::default();
    let ids = u64::from_ne_bytes(landspeed_proof::random());
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(ids)));
    // Accepts the payloads of jumbo frames too. The limit is the largest UDP payload (RFC 9000 section 18.2).
    let _ = config.max_udp_payload_size(65_527);
    Arc::new(config)
}

impl QuicDriver {
    /// Returns the client's end of a new connection to the peer of `wire`.
    pub(super) fn calling(
        wire: QuicSocket,
        parsed: &QuicSettings,
        mut config: ClientConfig,
    ) -> Result<QuicDriver, String> {
        let observations = Arc::default();
        config.transport_config(Arc::new(parsed.configuration(wire.largest(), &observations)));
        let mut endpoint = Endpoint::new(endpoint(), None, true, None);
        let begun = endpoint.connect(Instant::now(), config, wire.peer, raw_keys::NAME);
        let (handle, connection) = begun.map_err(|error| error.to_string())?;
        Ok(QuicDriver::new(wire, endpoint, handle, connection, observations, parsed))
    }

    /// Returns the server's end of a connection that begins with the packet `first`; `None` if the packet is invalid.
    pub(super) fn answering(
        wire: QuicSocket,
        parsed: &QuicSettings,
        shared: &Arc<EndpointConfig>,
        mut config: ServerConfig,
        first: &[u8],
    ) -> Option<QuicDriver> {
        let now = Instant::now();
        let observations = Arc::default();
        config.transport_config(Arc::new(parsed.configuration(wire.largest(), &observations)));
        let mut endpoint = Endpoint::new(Arc::clone(shared), Some(Arc::new(config)), true, None);
        let mut answer = Vec::new();
        let event = endpoint.handle(now, wire.peer, None, None, first.into(), &mut answer);
        let Some(DatagramEvent::NewConnection(incoming)) = event else { return None };
        let (handle, connection) = endpoint.accept(incoming, now, &mut answer, None).ok()?;
        // This socket carries only this connection, so the endpoint must accept no other.
        endpoint.set_server_config(None);
        Some(QuicDriver::new(wire, endpoint, handle, connection, observations, parsed))
    }

    fn new(
        wire: QuicSocket,
        endpoint: Endpoint,
        handle: ConnectionHandle,
        connection: Connection,
        observations: Arc<ControllerObservations>,
        parsed: &QuicSettings,
    ) -> QuicDriver {
        QuicDriver {
            wire,
            endpoint,
            handle,
            connection,
            observations,
            stream: None,
            connected: false,
            held_back: false,
            written: 0,
            acked: Arc::default(),
            has_finished: false,
            reorder_buffer: ReorderBuffer::within(parsed.window.0 as usize),
            is_over: false,
            has_ended: false,
            lost: None,
        }
    }

    pub(super) fn wire(&mut self) -> &mut QuicSocket {
        &mut self.wire
    }

    /// Sends the first packet of a client's connection, and returns its bytes.
    pub(super) fn knock(&mut self, now: Instant) -> Vec<u8> {
        self.wire.packets.clear();
        let packet = self.connection.poll_transmit(now, 1, &mut self.wire.packets);
        packet.map(|packet| self.wire.send(packet));
        self.wire.packets.clone()
    }

    /// Processes what has arrived, runs expired timers, and sends what may be sent. Returns true if it received a
    /// datagram, ran a timer, or could send packets that waited for the socket.
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
            let QuicDriver { wire, endpoint, connection, .. } = self;
            let peer = wire.peer;
            let mut answer = Vec::new();
            let received = wire.receive(|ecn, datagram| {
                any = true;
                // Only the first reason counts. After the peer has closed the connection, the peer's listener may
                // answer with a stateless reset, which must not replace the close as the reason.
                if connection.is_closed() {
                    return;
                }
                let event = endpoint.handle(now, peer, None, ecn, datagram, &mut answer);
                // Datagrams that belong to no connection are not answered.
                if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                    connection.handle_event(event);
                }
            });
            // Takes the stream's bytes out of quinn before the next receive call, because quinn limits the number of
            // gaps. The next read returns the error, if there is one.
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

    /// Processes quinn's events.
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
                    // The congestion window must not delay the packet that tells the peer the reason.
                    self.observations.open();
                    self.lost.get_or_insert(DisconnectReason::of(&reason));
                }
                Event::Stream(StreamEvent::Opened { .. }) => {
                    self.stream = self.stream.or_else(|| self.connection.streams().accept(Dir::Bi));
                }
                Event::Stream(StreamEvent::Finished { .. }) => self.has_finished = true,
                _ => {}
            }
        }
    }

    /// Sends the packets that the flow-control windows, the congestion window and the pacing permit.
    pub(super) fn transmit(&mut self, now: Instant) {
        if !self.wire.flush() {
            return;
        }
        loop {
            let segments = self.wire.segments(self.connection.current_mtu());
            self.wire.packets.clear();
            self.observations.was_asked();
            let packets = self.connection.poll_transmit(now, segments, &mut self.wire.packets);
            self.held_back = packets.is_none() && self.observations.was_asked();
            let Some(packets) = packets else { return };
            if !self.wire.send(packets) {
                return;
            }
        }
    }

    /// Returns the time at which the next timer expires; `None` if no timer runs.
    pub(super) fn due(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    pub(super) fn interest(&self) -> PollFlags {
        self.wire.interest()
    }

    /// Returns true if no data waits for the congestion window, the pacing or the socket.
    pub(super) fn is_clear(&self) -> bool {
        !self.held_back && !self.wire.waits()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Returns true if any datagram has arrived from the peer.
    pub(super) fn has_heard(&self) -> bool {
        self.connection.stats().udp_rx.datagrams > 0
    }

    /// Opens the stream that carries the flow. Only the client calls this.
    pub(super) fn open(&mut self) {
        self.stream = self.connection.streams().open(Dir::Bi);
    }

    /// Returns true if the stream is open.
    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Writes a part of `message` to the stream, and returns the number of bytes written; zero while earlier data
    /// waits. [`QuicDriver::transmit`] sends the bytes.
    pub(super) fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        if let Some(error) = self.broken() {
            return Err(error);
        }
        let Some(stream) = self.stream.filter(|_| self.is_clear()) else { return Ok(0) };
        let sent_buffer = SentBuffer::of(&message[..message.len().min(MOST)], &self.acked);
        match self.connection.send_stream(stream).write_chunks(&mut [sent_buffer.bytes()]) {
            Ok(written) => {
                sent_buffer.was_taken(written.bytes as u64);
                self.written += written.bytes as u64;
                Ok(written.bytes)
            }
            Err(WriteError::Blocked) => Ok(0),
            Err(_) => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    /// Copies the stream's next received bytes into `into`, and returns their number; zero if there are none.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.gather()? {
            self.transmit(Instant::now());
        }
        let got = self.reorder_buffer.take(into);
        self.has_ended |= got == 0 && self.is_over;
        Ok(got)
    }

    /// Moves the received bytes of the stream out of quinn and into the reorder buffer. Returns true if the peer needs
    /// a window update.
    fn gather(&mut self) -> io::Result<bool> {
        let QuicDriver { connection, reorder_buffer, is_over, .. } = self;
        let Some(stream) = self.stream.filter(|_| !*is_over && reorder_buffer.wants()) else {
            return Ok(false);
        };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(false) else { return Err(ErrorKind::ConnectionReset.into()) };
        while reorder_buffer.wants() {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => reorder_buffer.place(chunk.offset, chunk.bytes),
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

    /// Acknowledges what has arrived, without the usual delay. To do so, it runs all timers that would expire within
    /// that delay. In the worst case this sends a probe early.
    pub(super) fn acknowledge(&mut self) {
        let now = Instant::now();
        let soon = now + ACK_DELAY;
        if self.connection.poll_timeout().is_some_and(|due| due <= soon) {
            self.connection.handle_timeout(soon);
            self.hear();
            self.transmit(now);
        }
    }

    /// Returns true if all of the peer's bytes have been read, up to the end of the stream.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns true if the peer has acknowledged everything that this end sent, including the end of the stream.
    pub(super) fn has_finished(&self) -> bool {
        self.has_finished
    }

    /// Ends the stream in the sending direction, to tell the peer that no more bytes follow.
    pub(super) fn finish(&mut self) {
        if let Some(stream) = self.stream {
            // An error means that the stream has already been ended or that the peer is gone, which later calls detect.
            let _ = self.connection.send_stream(stream).finish();
        }
        self.transmit(Instant::now());
    }

    /// Closes the connection with `code`, unless it has already ended.
    pub(super) fn close(&mut self, code: CloseCode) {
        if self.lost.is_some() {
            return;
        }
        self.lost = Some(DisconnectReason::Here);
        self.observations.open();
        let now = Instant::now();
        self.connection.close(now, VarInt::from_u32(code as u32), bytes::Bytes::new());
        self.transmit(now);
    }

    pub(super) fn lost(&self) -> Option<&DisconnectReason> {
        self.lost.as_ref()
    }

    /// Returns the error for further calls if the connection has ended or the peer's host refuses datagrams;
    /// otherwise `None`.
    pub(super) fn broken(&self) -> Option<io::Error> {
        match &self.lost {
            Some(lost) => Some(lost.error()),
            None => self.wire.is_refused().then(|| ErrorKind::ConnectionReset.into()),
        }
    }

    /// Returns the number of stream bytes that the peer has acknowledged, without gaps.
    pub(super) fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Returns how many packets the peer has acknowledged.
    pub(super) fn delivered(&self) -> u64 {
        self.observations.delivered()
    }

    pub(super) fn stats(&self) -> ConnectionStats {
        self.connection.stats()
    }
}
