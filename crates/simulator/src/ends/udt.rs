//! UDT flows: the crate `landspeed-udt`, which also runs on sockets, driven by the simulation's clock. The packets
//! are those that a real network would carry.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use landspeed_record::TcpSample;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_udt::packet::{HANDSHAKE, HEADER, UDP_HEADERS};
use landspeed_udt::{
    Connection, ConnectionIdentity, HandshakeListener, ListenerResponse, RateControlFactory, Seq, UdtConfig,
    UdtSocketId,
};

use super::{FlowEnds, PacketSink};
use crate::agenda::NEVER;
use crate::link::{LinkSpec, PacketFate};
use crate::receiver::ReceiverCounts;
use crate::scenario::FlowSpec;
use crate::sender::SenderCounts;

/// The largest number of data packets that leave together.
const BATCH: u32 = 16;
/// The number of packets that are written in advance. A stopped flow still sends these.
const AHEAD: u64 = 2 * BATCH as u64;
/// The smallest buffer of each end, in packets, for a flow without a configured receive window. It equals libudt's
/// receive buffer.
const LEAST_ROOM: u64 = 8192;
/// The largest buffer of each end, in packets. It limits the memory that long paths need.
const MOST_ROOM: u64 = 1 << 18;

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 2);

/// A datagram on the line. Only the header of a data packet is kept, because the simulation ignores payloads.
#[derive(Debug)]
struct Datagram {
    kept: Box<[u8]>,
    length: usize,
}

#[derive(Debug)]
pub(crate) struct UdtEnds {
    sender: Connection,
    receiver: Connection,
    /// The datagrams on the line that will arrive at the receiver.
    going: VecDeque<Datagram>,
    /// Answers on their way back, with their times of arrival.
    coming: VecDeque<(Nanos, Box<[u8]>)>,
    /// The time by which the connection's clock is ahead of the simulation's: the duration of the handshake.
    ahead: Nanos,
    way_back: Nanos,
    payload: usize,
    /// The buffer in which an arriving datagram is rebuilt.
    scratch: Box<[u8]>,
    /// Zeros, which are written as data again and again.
    blank: Box<[u8]>,
    /// The number of bytes of the flow's data that were not written yet.
    left: u64,
    written: u64,
    read: Bytes,
    /// Packets put on the line.
    sent: u64,
    /// Packets that arrived at the receiver, including those without data.
    received: u64,
    /// Packets that the receiver sent back, including those without data.
    answers: u64,
    timer_at: Nanos,
}

impl UdtEnds {
    pub(super) fn start(spec: &FlowSpec, control: RateControlFactory, link: &LinkSpec, now: Nanos) -> Self {
        let config = UdtConfig { control, ..config(spec, link) };
        let (packet, payload) =
            (config.mss as usize - UDP_HEADERS, config.mss as usize - UDP_HEADERS - HEADER);
        let (sender, receiver, opened) = open(now, link.delay_ns + spec.return_ns, &config, spec.seed);
        let mut ends = UdtEnds {
            sender,
            receiver,
            going: VecDeque::new(),
            coming: VecDeque::new(),
            ahead: opened - now,
            way_back: spec.return_ns,
            payload,
            scratch: vec![0; packet].into(),
            blank: vec![0; payload * AHEAD as usize].into(),
            left: spec.data_bytes.map_or(u64::MAX, |bytes| bytes.0),
            written: 0,
            read: Bytes(0),
            sent: 0,
            received: 0,
            answers: 0,
            timer_at: now,
        };
        ends.set_timer(now);
        ends
    }

    /// Writes enough data in advance that only the congestion control decides when a packet leaves.
    fn write_ahead(&mut self, now: Nanos) {
        let unsent = (self.written / self.payload as u64).saturating_sub(self.sender.counts().sent);
        if self.left == 0 || unsent > AHEAD / 2 {
            return;
        }
        let piece = self.left.min(self.blank.len() as u64) as usize;
        // A full buffer accepts no data now.
        let written = self.sender.write(&self.blank[..piece]).unwrap_or(0) as u64;
        self.written += written;
        self.left -= written;
        if self.left == 0 {
            self.sender.close(now + self.ahead);
        }
    }

    /// Puts all answers of the receiver on their way back.
    fn answer(&mut self, now: Nanos) {
        while let Some(transmit) = self.receiver.poll_transmit(now + self.ahead, BATCH) {
            for datagram in transmit.datagrams() {
                self.answers += 1;
                self.coming.push_back((now + self.way_back, datagram.into()));
            }
        }
    }

    fn read_all(&mut self) {
        loop {
            let length = self.receiver.peek().len();
            if length == 0 {
                return;
            }
            self.receiver.consume(length);
            self.read += Bytes(length as u64);
        }
    }

    /// Sets the time of the next timer. If a timer is overdue it is `now`, because the simulation's time never goes
    /// back.
    fn set_timer(&mut self, now: Nanos) {
        let timers = [self.sender.next_timeout(), self.receiver.next_timeout()];
        let next = timers.into_iter().flatten().min();
        self.timer_at = next.map_or(NEVER, |next| next.saturating_sub(self.ahead).max(now));
    }
}

/// Returns libudt's configuration with larger buffers: twice the bytes that the path and its queue hold, because that
/// much is under way while a loss is repaired. Each packet leaves at its own time, because the simulation's timers
/// are never late. (On sockets, many packets leave together each millisecond.)
fn config(spec: &FlowSpec, link: &LinkSpec) -> UdtConfig {
    let mtu = u64::from(spec.mtu_bytes);
    let round_trip = (link.delay_ns + spec.return_ns).as_secs_f64();
    let holds = (link.rate_bps.0 / 8.0 * round_trip) as u64;
    let twice = holds.saturating_add(link.queue_bytes.0).saturating_mul(2);
    let ample = (twice / mtu).clamp(LEAST_ROOM, MOST_ROOM);
    let room = spec.receive_window_bytes.map_or(ample, |bytes| (bytes.0 / mtu).clamp(2, MOST_ROOM)) as u32;
    UdtConfig {
        mss: spec.mtu_bytes.into(),
        send_buffer: room,
        receive_buffer: room,
        catch_up: Nanos(0),
        ..UdtConfig::default()
    }
}

/// Opens a connection over an idle path with the RTT `rtt`. Returns the sender, the receiver, and the connection's
/// time after the handshake. No packet of the handshake uses the line.
fn open(began: Nanos, rtt: Nanos, config: &UdtConfig, seed: u32) -> (Connection, Connection, Nanos) {
    let identity = |socket| ConnectionIdentity {
        socket: UdtSocketId(socket),
        first_seq: Seq::new(seed),
        seed: seed.into(),
    };
    let mut sender = Connection::connect(began, config.clone(), identity(1), SERVER);
    let listener = HandshakeListener::new([0; 32]);
    let (mut receiver, mut at) = (None, began);
    while let Some(asked) = sender.poll_transmit(at, 1) {
        let mut reply = [0; HANDSHAKE];
        let answer = listener.handle(at, CLIENT, asked.bytes, &mut reply);
        at += rtt;
        match answer {
            ListenerResponse::Reply(length) => sender.handle(at, &reply[..length]),
            ListenerResponse::Proven(request) => {
                let accepted = receiver.insert(Connection::accept(at, config.clone(), identity(2), &request));
                if let Some(answer) = accepted.poll_transmit(at, 1) {
                    sender.handle(at, answer.bytes);
                }
            }
            ListenerResponse::Ignore => {}
        }
    }
    (sender, receiver.expect("the listener knows the cookie that it gave"), at)
}

impl FlowEnds for UdtEnds {
    fn transmit(&mut self, now: Nanos, line: &mut PacketSink<'_>) {
        loop {
            self.write_ahead(now);
            let Some(transmit) = self.sender.poll_transmit(now + self.ahead, BATCH) else { break };
            for datagram in transmit.datagrams() {
                self.sent += 1;
                let size = (datagram.len() + UDP_HEADERS) as u16;
                if line(self.sent, size) == PacketFate::Arrives {
                    self.going.push_back(Datagram::of(datagram));
                }
            }
        }
        self.set_timer(now);
    }

    fn on_packet(&mut self, now: Nanos, _: u64) {
        let Some(Datagram { kept, length }) = self.going.pop_front() else { return };
        self.received += 1;
        self.scratch[..kept.len()].copy_from_slice(&kept);
        self.receiver.handle(now + self.ahead, &self.scratch[..length]);
        self.read_all();
        self.answer(now);
        self.set_timer(now);
    }

    fn next_answer(&self) -> Nanos {
        self.coming.front().map_or(NEVER, |(arrives, _)| *arrives)
    }

    fn on_answer(&mut self, now: Nanos) {
        if let Some((_, datagram)) = self.coming.pop_front() {
            self.sender.handle(now + self.ahead, &datagram);
        }
    }

    fn next_timer(&self) -> Nanos {
        self.timer_at
    }

    fn on_timer(&mut self, now: Nanos) {
        self.receiver.handle_timeout(now + self.ahead);
        self.answer(now);
        self.sender.handle_timeout(now + self.ahead);
    }

    fn stop(&mut self, now: Nanos) {
        self.left = 0;
        self.sender.close(now + self.ahead);
    }

    fn is_done(&self) -> bool {
        self.sender.closed().is_some()
    }

    fn delivered(&self) -> Bytes {
        self.read
    }

    fn state(&self) -> TcpSample {
        let (counts, path) = (self.sender.counts(), self.sender.path());
        let flight = path.map_or(0, |path| path.flight.into());
        let payload = self.payload as u64;
        TcpSample {
            rtt_ns: path.map_or(Nanos(0), |path| path.round_trip.mean),
            cwnd_segments: path.map_or(0, |path| path.window),
            mss_bytes: Bytes(payload),
            retransmits: counts.sent_again,
            acked_bytes: Bytes(payload * (counts.sent - flight)),
            ..TcpSample::default()
        }
    }

    fn counts(&self) -> (SenderCounts, ReceiverCounts) {
        let (here, there) = (self.sender.counts(), self.receiver.counts());
        let sender = SenderCounts {
            sent: self.sent,
            retransmits: here.sent_again,
            recoveries: here.naks,
            timeouts: here.timeouts,
        };
        let (received, duplicates, acks) = (self.received, there.received_again, self.answers);
        (sender, ReceiverCounts { received, duplicates, acks })
    }
}

impl Datagram {
    fn of(bytes: &[u8]) -> Self {
        // The first bit is set in control packets (draft-gg-udt-03 section 2).
        let is_data = bytes[0] & 0x80 == 0;
        let kept = if is_data { &bytes[..HEADER] } else { bytes };
        Datagram { kept: kept.into(), length: bytes.len() }
    }
}
