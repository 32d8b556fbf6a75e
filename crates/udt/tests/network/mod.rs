//! Two ends and a network between them that loses, delays, duplicates and reorders packets, in simulated time.
#![allow(dead_code, reason = "each test file uses its part")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;

use landspeed_record::units::Nanos;
use landspeed_udt::packet::HANDSHAKE;
use landspeed_udt::{
    Connection, ConnectionIdentity, HandshakeListener, ListenerResponse, Seq, UdtConfig, UdtSocketId,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A datagram in flight: its time of arrival, a number that keeps the order, its destination, and its bytes.
type InFlightDatagram = (Nanos, u64, usize, Vec<u8>);

/// The behaviour of the network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NetworkImpairments {
    pub(crate) loss: f64,
    pub(crate) doubled: f64,
    pub(crate) reordered: f64,
    pub(crate) delay: Nanos,
    /// The time that the link takes for a packet.
    pub(crate) packet: Nanos,
    /// The longest queue before the link, as the time that it takes to drain.
    pub(crate) queue: Nanos,
    /// The size of the largest datagram that passes, in bytes. Larger ones are silently dropped.
    pub(crate) largest: usize,
}

impl NetworkImpairments {
    pub(crate) fn calm() -> Self {
        NetworkImpairments {
            loss: 0.0,
            doubled: 0.0,
            reordered: 0.0,
            delay: Nanos::millis(5),
            packet: Nanos::micros(10),
            queue: Nanos::millis(20),
            largest: usize::MAX,
        }
    }
}

/// The number of recent datagrams that a network remembers.
const SEEN: usize = 64;

pub(crate) const CONNECTOR: usize = 0;
pub(crate) const LISTENER: usize = 1;

pub(crate) struct TestNetwork {
    pub(crate) now: Nanos,
    pub(crate) ends: [Option<Connection>; 2],
    pub(crate) random: ChaCha8Rng,
    pub(crate) impairments: NetworkImpairments,
    /// The datagrams that were sent last, each with its destination.
    pub(crate) seen: VecDeque<(usize, Vec<u8>)>,
    /// The largest number of packets that an end has sent in one batch.
    pub(crate) largest_batch: usize,
    configs: [UdtConfig; 2],
    listener: HandshakeListener,
    addresses: [SocketAddr; 2],
    free_at: [Nanos; 2],
    under_way: BinaryHeap<Reverse<InFlightDatagram>>,
    order: u64,
    steps: u64,
}

impl TestNetwork {
    pub(crate) fn new(
        seed: u64,
        impairments: NetworkImpairments,
        configs: [UdtConfig; 2],
        first_seq: Seq,
    ) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        let addresses = ["10.0.0.1:1000", "10.0.0.2:2000"].map(|address| address.parse().unwrap());
        let identity = ConnectionIdentity { socket: UdtSocketId(11), first_seq, seed };
        let now = Nanos::secs(1000);
        let connector = Connection::connect(now, configs[CONNECTOR].clone(), identity, addresses[LISTENER]);
        let listener = HandshakeListener::new([9; 32]);
        TestNetwork {
            now,
            ends: [Some(connector), None],
            random,
            impairments,
            seen: VecDeque::new(),
            largest_batch: 0,
            configs,
            listener,
            addresses,
            free_at: [Nanos(0); 2],
            under_way: BinaryHeap::new(),
            order: 0,
            steps: 0,
        }
    }

    /// Returns the memory of the datagrams that are in flight or remembered, in bytes.
    pub(crate) fn holds(&self) -> usize {
        let under_way: usize = self.under_way.iter().map(|Reverse((.., datagram))| datagram.capacity()).sum();
        let seen: usize = self.seen.iter().map(|(_, datagram)| datagram.capacity()).sum();
        under_way + seen + self.under_way.capacity() * size_of::<InFlightDatagram>()
    }

    pub(crate) fn end(&mut self, side: usize) -> &mut Connection {
        self.ends[side].as_mut().expect("the end is there")
    }

    /// Sends what both ends have to send, and advances to the next event. Returns false if there is no event.
    pub(crate) fn step(&mut self) -> bool {
        self.steps += 1;
        assert!(self.steps < 20_000_000, "the ends spin at {:?}", self.now);
        (0..2).for_each(|side| self.send(side));
        let arrival = self.under_way.peek().map(|Reverse((at, ..))| *at);
        let timers = self.ends.iter().flatten().filter_map(Connection::next_timeout);
        let Some(next) = arrival.into_iter().chain(timers).min() else { return false };
        self.now = self.now.max(next);
        while self.under_way.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
            let Some(Reverse((_, _, side, datagram))) = self.under_way.pop() else { break };
            self.deliver(side, &datagram);
        }
        let now = self.now;
        self.ends.iter_mut().flatten().for_each(|end| end.handle_timeout(now));
        true
    }

    fn send(&mut self, side: usize) {
        let now = self.now;
        let mut datagrams = Vec::new();
        let Some(end) = &mut self.ends[side] else { return };
        while let Some(transmit) = end.poll_transmit(now, 16) {
            let before = datagrams.len();
            datagrams.extend(transmit.datagrams().map(<[u8]>::to_vec));
            self.largest_batch = self.largest_batch.max(datagrams.len() - before);
        }
        datagrams.into_iter().for_each(|datagram| self.launch(1 - side, datagram));
    }

    /// Sends a datagram to `side`.
    pub(crate) fn launch(&mut self, side: usize, datagram: Vec<u8>) {
        self.seen.push_back((side, datagram.clone()));
        if self.seen.len() > SEEN {
            self.seen.pop_front();
        }
        let impairments = self.impairments;
        if datagram.len() > impairments.largest {
            return;
        }
        let start = self.free_at[side].max(self.now);
        if start - self.now > impairments.queue || self.random.random_bool(impairments.loss) {
            return;
        }
        self.free_at[side] = start + impairments.packet;
        let mut at = self.free_at[side] + impairments.delay;
        if self.random.random_bool(impairments.reordered) {
            at += Nanos(self.random.random_range(0..30_000_000));
        }
        if self.random.random_bool(impairments.doubled) {
            let later = Nanos(self.random.random_range(0..5_000_000));
            self.put(at + later, side, datagram.clone());
        }
        self.put(at, side, datagram);
    }

    fn put(&mut self, at: Nanos, side: usize, datagram: Vec<u8>) {
        self.order += 1;
        self.under_way.push(Reverse((at, self.order, side, datagram)));
    }

    /// Delivers a datagram to an end, or to the listener.
    pub(crate) fn deliver(&mut self, side: usize, datagram: &[u8]) {
        let is_request = datagram.len() >= HANDSHAKE && datagram[12..16] == [0; 4];
        if side == LISTENER && (is_request || self.ends[LISTENER].is_none()) {
            return self.listen(datagram);
        }
        let now = self.now;
        self.end(side).handle(now, datagram);
    }

    fn listen(&mut self, datagram: &[u8]) {
        let (now, peer) = (self.now, self.addresses[CONNECTOR]);
        let mut reply = [0; HANDSHAKE];
        match self.listener.handle(now, peer, datagram, &mut reply) {
            ListenerResponse::Ignore => {}
            ListenerResponse::Reply(length) => {
                assert!(length <= datagram.len());
                self.launch(CONNECTOR, reply[..length].to_vec());
            }
            ListenerResponse::Proven(request) => match &mut self.ends[LISTENER] {
                Some(known) => known.handle(now, datagram),
                None => {
                    let identity =
                        ConnectionIdentity { socket: UdtSocketId(22), first_seq: Seq::new(0), seed: 3 };
                    let config = self.configs[LISTENER].clone();
                    self.ends[LISTENER] = Some(Connection::accept(now, config, identity, &request));
                }
            },
        }
    }
}

pub(crate) fn config() -> UdtConfig {
    UdtConfig { send_buffer: 512, receive_buffer: 512, ..UdtConfig::default() }
}

pub(crate) fn bytes(random: &mut ChaCha8Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    random.fill(&mut bytes[..]);
    bytes
}
