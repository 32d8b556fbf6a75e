//! Peers that never prove the key: each repeats what its protocol lets it do without the key.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use landspeed_transport::{CancelFlag, ConnectRequest, Flow};
use parking_lot::{Mutex, MutexGuard};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::loopback::{KEY, LONG, Loopback, patience, text};

/// The number of peers at a time.
const PEERS: usize = 400;
/// The descriptors that a listener may hold for the peers, plus those of the flows that the check itself opens. A listener
/// holds at most 256 peers that have proven nothing, and UDT has a socket and an eventfd for each.
pub(crate) const MOST_HELD: usize = 2 * 256 + 32;
/// The time between two rounds, in each of which every peer acts once.
const ROUND: Duration = Duration::from_millis(50);

/// Peers that run in a thread of their own.
pub(crate) struct Flood {
    ends: Arc<AtomicBool>,
    came: Arc<AtomicU64>,
    before: usize,
    thread: JoinHandle<()>,
    _alone: MutexGuard<'static, ()>,
}

/// The lock that each flood holds, because two floods at a time would count each other's descriptors.
static ALONE: Mutex<()> = Mutex::new(());

/// The action of a peer in a round.
type FloodPeer = Box<dyn FnMut() + Send>;

impl Flood {
    /// Starts peers that connect or send to the port of `loopback`, from this many addresses. `flow` is the client's
    /// end of a flow to this port. Returns once the peers have begun.
    pub(crate) fn of(loopback: &Loopback<'_>, flow: &dyn Flow, addresses: usize) -> Result<Flood, String> {
        let alone = ALONE.lock();
        let before = descriptors();
        let mut peers = peers(loopback, flow, addresses)?;
        let (ends, came) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ending, coming) = (Arc::clone(&ends), Arc::clone(&came));
        let thread = thread::spawn(move || {
            while !ending.load(Ordering::Relaxed) {
                peers.iter_mut().for_each(|peer| peer());
                coming.fetch_add(peers.len() as u64, Ordering::Relaxed);
                thread::sleep(ROUND);
            }
        });
        let until = Instant::now() + LONG;
        while came.load(Ordering::Relaxed) == 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(Flood { ends, came, before, thread, _alone: alone })
    }

    /// Returns the number of descriptors that were opened since the flood began, without those of the peers.
    pub(crate) fn held(&self) -> usize {
        descriptors().saturating_sub(self.before + PEERS)
    }

    /// Ends the flood. Returns how many times a peer acted.
    pub(crate) fn end(self) -> u64 {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic");
        self.came.load(Ordering::Relaxed)
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Returns peers that send datagrams where the protocol is UDP. Elsewhere they open the usual stream sockets of the
/// listener's address family, which are TCP or AF_UNIX.
fn peers(loopback: &Loopback<'_>, flow: &dyn Flow, addresses: usize) -> Result<Vec<FloodPeer>, String> {
    let at = loopback.port.address();
    let from = move |peer: usize| Ipv4Addr::from(0x7f00_0100 + (peer % addresses) as u32);
    match loopback.transport.about().protocol {
        "udp" => {
            let first = first_datagram(loopback)?;
            (0..PEERS).map(|peer| datagrams(from(peer), at, first.clone())).collect()
        }
        protocol => {
            let sockets = flow.sockets();
            let socket = sockets[0].try_clone_to_owned().map_err(text)?;
            let server = Socket::from(socket).peer_addr().map_err(text)?;
            let from = |peer| (protocol == "tcp").then(|| SocketAddr::from((from(peer), 0)));
            (0..PEERS).map(|peer| connects(from(peer), server.clone(), peer)).collect()
        }
    }
}

/// Returns the first datagram of a client that holds the key, as an eavesdropper receives it.
fn first_datagram(loopback: &Loopback<'_>) -> Result<Vec<u8>, String> {
    let ear = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(text)?;
    ear.set_read_timeout(Some(LONG)).map_err(text)?;
    let (server, mut heard) = (ear.local_addr().map_err(text)?, vec![0; 65_536]);
    let cancel = &CancelFlag::new();
    let length = thread::scope(|scope| {
        scope.spawn(move || {
            let call =
                ConnectRequest { server, number: 9, source_port: 0, settings: &loopback.settings, key: &KEY };
            loopback.transport.connect(&call, &patience(cancel, LONG)).map(drop)
        });
        let length = ear.recv(&mut heard);
        cancel.cancel();
        length.map_err(text)
    })?;
    heard.truncate(length);
    Ok(heard)
}

/// Returns a peer that repeats a datagram that it overheard, and echoes the cookie of the answer.
fn datagrams(from: Ipv4Addr, at: SocketAddr, first: Vec<u8>) -> Result<FloodPeer, String> {
    let socket = UdpSocket::bind((from, 0)).map_err(text)?;
    socket.connect(at).and_then(|()| socket.set_nonblocking(true)).map_err(text)?;
    let (mut says, mut reply) = (first.clone(), [0; 2048]);
    Ok(Box::new(move || {
        // Errors are ignored: a full queue loses a datagram, and a refusal does not stop the peer.
        let _ = socket.send(&says);
        let _ = socket.send(&[0x80; 64]);
        while let Ok(length) = socket.recv(&mut reply) {
            says = echo(&first, &reply[..length]);
        }
    }))
}

/// Returns a handshake of UDT with the cookie of its answer (draft-gg-udt-03 section 5.1): the kind is the sixth word
/// after the header of 16 bytes, the cookie the eighth. Any other datagram is returned as it was.
fn echo(first: &[u8], reply: &[u8]) -> Vec<u8> {
    let mut says = first.to_vec();
    let is_handshake = |datagram: &[u8]| datagram.len() >= 64 && datagram.starts_with(&[0x80, 0, 0, 0]);
    if is_handshake(first) && is_handshake(reply) {
        says.truncate(64);
        says[36..40].copy_from_slice(&(-1_i32).to_be_bytes());
        says[44..48].copy_from_slice(&reply[44..48]);
    }
    says
}

/// Returns a peer that connects and sends nothing, or half of a client's first message, and connects again once it is
/// turned away.
fn connects(from: Option<SocketAddr>, server: SockAddr, peer: usize) -> Result<FloodPeer, String> {
    let connect = move || {
        let socket = Socket::new(server.domain(), Type::STREAM, None)?;
        if let Some(from) = from.filter(|_| server.domain() == Domain::IPV4) {
            socket.bind(&from.into())?;
        }
        socket.set_nonblocking(true)?;
        let _ = socket.connect(&server);
        Ok::<_, std::io::Error>(socket)
    };
    let mut socket = connect().map_err(text)?;
    Ok(Box::new(move || {
        if peer.is_multiple_of(2) {
            let _ = socket.send(b"half");
        }
        let mut byte = [std::mem::MaybeUninit::uninit()];
        let is_over = match socket.recv(&mut byte) {
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
            Ok(_) => true,
        };
        if let (true, Ok(again)) = (is_over, connect()) {
            socket = again;
        }
    }))
}
