//! A network between two sockets that loses, duplicates, reorders and delays datagrams, and can capture them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The behaviour of the network, in each direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NetworkImpairments {
    /// The probability that a datagram is lost.
    pub(crate) lost: f64,
    /// The probability that a datagram arrives twice.
    pub(crate) doubled: f64,
    /// The probability that a datagram takes up to 2 ms longer than the others.
    pub(crate) reordered: f64,
    /// The delay of all datagrams.
    pub(crate) delay: Duration,
}

/// A captured datagram.
#[derive(Debug, Clone)]
pub(crate) struct CapturedDatagram {
    /// The time since the first captured datagram.
    pub(crate) at: Duration,
    pub(crate) from_connector: bool,
    pub(crate) bytes: Vec<u8>,
}

/// A running network. Its connector sends to `address`.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<CapturedDatagram>>>,
}

impl Relay {
    /// Starts a network in front of `listener`.
    pub(crate) fn start(listener: SocketAddr, impairments: NetworkImpairments, seed: u64) -> Self {
        let sockets = [(); 2].map(|()| {
            let socket = UdpSocket::bind(SocketAddr::new(listener.ip(), 0)).expect("loopback has ports");
            socket.set_nonblocking(true).expect("a socket can be");
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
            socket
        });
        let address = sockets[0].local_addr().expect("it is bound");
        let stop = Arc::new(AtomicBool::new(false));
        let network = RelayNetwork {
            sockets,
            peers: [None, Some(listener)],
            impairments,
            random: ChaCha8Rng::seed_from_u64(seed),
            under_way: BinaryHeap::new(),
            order: 0,
            began: None,
            captured: Vec::new(),
        };
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || network.run(&stopped));
        Relay { address, stop, thread: Some(thread) }
    }

    /// Ends the network. Returns the captured datagrams: the first ones that passed and were not lost.
    pub(crate) fn stop(mut self) -> Vec<CapturedDatagram> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map_or(Vec::new(), |thread| thread.join().expect("a network does not panic"))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The largest number of datagrams that are captured.
const MOST_CAPTURED: usize = 1000;

/// A datagram in flight: its time of arrival, a number that keeps the order, its destination, and its bytes.
type InFlightDatagram = (Instant, u64, usize, Vec<u8>);

struct RelayNetwork {
    /// The socket towards the connector, and the one towards the listener.
    sockets: [UdpSocket; 2],
    peers: [Option<SocketAddr>; 2],
    impairments: NetworkImpairments,
    random: ChaCha8Rng,
    under_way: BinaryHeap<Reverse<InFlightDatagram>>,
    order: u64,
    began: Option<Instant>,
    captured: Vec<CapturedDatagram>,
}

impl RelayNetwork {
    fn run(mut self, stop: &AtomicBool) -> Vec<CapturedDatagram> {
        let mut room = vec![0; 1 << 16];
        while !stop.load(Ordering::Relaxed) {
            self.wait();
            for side in 0..2 {
                self.receive(side, &mut room);
            }
            self.deliver();
        }
        self.captured
    }

    fn wait(&self) {
        let most = Duration::from_millis(20);
        let next =
            self.under_way.peek().map(|Reverse((at, ..))| at.saturating_duration_since(Instant::now()));
        let next = next.map_or(most, |next| next.min(most));
        let timeout = Timespec { tv_sec: 0, tv_nsec: next.subsec_nanos().into() };
        let mut polled = [0, 1].map(|side| PollFd::new(&self.sockets[side], PollFlags::IN));
        let _ = poll(&mut polled, Some(&timeout));
    }

    /// Receives the datagrams that have arrived from one side.
    fn receive(&mut self, side: usize, room: &mut [u8]) {
        for _ in 0..64 {
            let Ok((length, from)) = self.sockets[side].recv_from(room) else { break };
            self.peers[side].get_or_insert(from);
            if self.peers[side] == Some(from) {
                self.launch(side, &room[..length]);
            }
        }
    }

    fn launch(&mut self, side: usize, datagram: &[u8]) {
        let impairments = self.impairments;
        if self.random.random_bool(impairments.lost) {
            return;
        }
        let mut at = Instant::now() + impairments.delay;
        if self.random.random_bool(impairments.reordered) {
            at += Duration::from_micros(self.random.random_range(0..2000));
        }
        let copies = 1 + usize::from(self.random.random_bool(impairments.doubled));
        for _ in 0..copies {
            self.order += 1;
            self.under_way.push(Reverse((at, self.order, 1 - side, datagram.to_vec())));
        }
    }

    fn deliver(&mut self) {
        let now = Instant::now();
        while self.under_way.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, side, datagram))) = self.under_way.pop() else { break };
            if let Some(to) = self.peers[side] {
                let _ = self.sockets[side].send_to(&datagram, to);
            }
            if self.captured.len() < MOST_CAPTURED {
                let at = now - *self.began.get_or_insert(now);
                self.captured.push(CapturedDatagram { at, from_connector: side == 1, bytes: datagram });
            }
        }
    }
}
