//! A relay between client and server that loses, duplicates, reorders, keeps and forges datagrams.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::common::{LONG, V4};

/// The direction of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayDirection {
    ToServer,
    ToClient,
}

/// A function that returns the datagrams which the relay forwards in place of one.
pub(crate) type PacketMeddler<'a> = dyn FnMut(RelayDirection, &[u8]) -> Vec<Vec<u8>> + Send + 'a;

/// A relay's two sockets, and the datagrams that passed through them.
pub(crate) struct Relay {
    /// The socket that the client sends to.
    front: UdpSocket,
    /// The socket that sends to the server.
    back: UdpSocket,
    client: Mutex<Option<SocketAddr>>,
    all: Mutex<Vec<(RelayDirection, Vec<u8>)>>,
    stop: AtomicBool,
}

impl Relay {
    pub(crate) fn to(server: SocketAddr) -> Relay {
        let socket = || {
            let socket = UdpSocket::bind((V4, 0)).expect("a port on loopback");
            socket.set_read_timeout(Some(Duration::from_millis(2))).expect("a timeout");
            socket
        };
        let (front, back) = (socket(), socket());
        back.connect(server).expect("connects");
        Relay { front, back, client: Mutex::default(), all: Mutex::default(), stop: AtomicBool::new(false) }
    }

    /// Returns the address for the client.
    pub(crate) fn address(&self) -> SocketAddr {
        self.front.local_addr().expect("its address")
    }

    /// Forwards datagrams, changed by `meddle`, until [`Relay::stop`] is called.
    pub(crate) fn run(&self, meddle: &mut PacketMeddler<'_>) {
        let mut bytes = [0; 65_536];
        while !self.stop.load(Ordering::Acquire) {
            if let Ok((length, from)) = self.front.recv_from(&mut bytes) {
                *self.client.lock() = Some(from);
                self.pass(RelayDirection::ToServer, &bytes[..length], meddle);
            }
            if let Ok(length) = self.back.recv(&mut bytes) {
                self.pass(RelayDirection::ToClient, &bytes[..length], meddle);
            }
        }
    }

    fn pass(&self, direction: RelayDirection, datagram: &[u8], meddle: &mut PacketMeddler<'_>) {
        self.all.lock().push((direction, datagram.to_vec()));
        meddle(direction, datagram).iter().for_each(|datagram| self.inject(direction, datagram));
    }

    /// Sends a datagram as if it came from the other end.
    pub(crate) fn inject(&self, direction: RelayDirection, datagram: &[u8]) {
        let client = *self.client.lock();
        // An end that has left refuses, which does not concern the relay.
        let _ = match (direction, client) {
            (RelayDirection::ToServer, _) => self.back.send(datagram),
            (RelayDirection::ToClient, Some(client)) => self.front.send_to(datagram, client),
            (RelayDirection::ToClient, None) => Ok(0),
        };
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Waits for a datagram of `length` bytes in one direction, and returns it.
    pub(crate) fn seen(&self, direction: RelayDirection, length: usize) -> Vec<u8> {
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            let all = self.all.lock();
            if let Some((_, datagram)) = all.iter().find(|(w, d)| *w == direction && d.len() == length) {
                return datagram.clone();
            }
            drop(all);
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("no datagram of {length} bytes came by");
    }

    /// Returns the datagrams of one direction that begin with `magic`.
    pub(crate) fn passes(&self, direction: RelayDirection, magic: &[u8]) -> Vec<Vec<u8>> {
        let seen = self.all.lock();
        seen.iter().filter(|(w, d)| *w == direction && d.starts_with(magic)).map(|(_, d)| d.clone()).collect()
    }
}

/// Runs `act` while the relay forwards datagrams.
pub(crate) fn relayed<T>(relay: &Relay, meddle: &mut PacketMeddler<'_>, act: impl FnOnce() -> T) -> T {
    struct RelayStopGuard<'a>(&'a Relay);
    impl Drop for RelayStopGuard<'_> {
        fn drop(&mut self) {
            self.0.stop();
        }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| relay.run(meddle));
        // Also stops it when `act` panics, because the scope waits for the relay.
        let _stop = RelayStopGuard(relay);
        act()
    })
}
