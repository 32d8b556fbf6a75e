//! One transfer between an end of this crate and libudt, in which the bytes are compared.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use blake3::{Hash, Hasher};
use landspeed_record::units::Nanos;
use landspeed_udt::{CloseReason, IoError, PacketCounts, UdtConfig};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::end::{ClockedSocket, ConnectionEnd};
use crate::peer::{self, LibudtPeer};
use crate::relay::{NetworkImpairments, Relay};

/// The parameters of a transfer and of its network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransferCase {
    pub(crate) to_libudt: bool,
    pub(crate) ip: IpAddr,
    pub(crate) mss: u32,
    pub(crate) bytes: u64,
    /// The network; `None` connects the two sockets directly.
    pub(crate) impairments: Option<NetworkImpairments>,
    /// The longest time that the transfer may take.
    pub(crate) most: Duration,
}

impl TransferCase {
    pub(crate) fn new(to_libudt: bool) -> Self {
        TransferCase {
            to_libudt,
            ip: Ipv4Addr::LOCALHOST.into(),
            mss: 1500,
            bytes: 2_000_000,
            impairments: None,
            most: Duration::from_secs(60),
        }
    }

    pub(crate) fn config(&self) -> UdtConfig {
        UdtConfig { mss: self.mss, ..UdtConfig::default() }
    }

    fn any_port(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 0)
    }
}

/// The results of a transfer.
#[derive(Debug)]
pub(crate) struct TransferFigures {
    /// The time from the first request to the arrival of the last byte.
    pub(crate) took: Duration,
    pub(crate) counts: PacketCounts,
}

/// Random content, in pieces.
struct TransferContent {
    random: ChaCha8Rng,
    left: u64,
    hash: Hasher,
}

/// The largest size of a piece, in bytes.
const PIECE: u64 = 1 << 16;

impl TransferContent {
    fn new(case: &TransferCase) -> Self {
        TransferContent {
            random: ChaCha8Rng::seed_from_u64(case.bytes),
            left: case.bytes,
            hash: Hasher::new(),
        }
    }

    /// Returns the next piece. It is empty at the end.
    fn next(&mut self) -> Vec<u8> {
        let mut piece = vec![0; self.left.min(PIECE) as usize];
        self.random.fill_bytes(&mut piece);
        self.left -= piece.len() as u64;
        self.hash.update(&piece);
        piece
    }
}

/// Runs one transfer and returns its figures; `None` if this machine has no libudt.
pub(crate) fn run(case: &TransferCase) -> Option<TransferFigures> {
    peer::program()?;
    let figures = if case.to_libudt { to_libudt(case) } else { from_libudt(case) };
    println!("{case:?}: {figures:?}");
    Some(figures)
}

fn to_libudt(case: &TransferCase) -> TransferFigures {
    let (mut peer, listener, out) = LibudtPeer::listen(case.any_port(), case.mss);
    let relay = case.impairments.map(|impairments| Relay::start(listener, impairments, case.bytes));
    let to = relay.as_ref().map_or(listener, |relay| relay.address);
    let reader = read_all(out);
    let (start, mut content) = (Instant::now(), TransferContent::new(case));
    let mut end = ConnectionEnd::connect(ClockedSocket::bind(case.any_port()), case.config(), to);
    let (mut piece, mut waits) = (content.next(), true);
    while end.connection.closed().is_none() {
        assert!(start.elapsed() < case.most, "it takes too long: {:?}", end.connection);
        end.drive(if waits { Nanos::millis(5) } else { Nanos(0) });
        // Sending makes room to write, so the loop waits only if nothing was written.
        waits = true;
        while !piece.is_empty() && write(&mut end, &mut piece) {
            waits = false;
            piece = if piece.is_empty() { content.next() } else { piece };
        }
        if piece.is_empty() {
            end.connection.close(end.socket.now());
        }
    }
    let took = start.elapsed();
    assert_eq!(end.connection.closed(), Some(CloseReason::Closed), "{:?}", end.connection);
    // The shutdown may be lost. It is repeated in answer to each packet from libudt.
    let until = Instant::now() + Duration::from_secs(20);
    while peer.has_ended().is_none() && Instant::now() < until {
        end.drive(Nanos::millis(5));
    }
    let (status, said) = peer.wait(Duration::from_secs(30));
    assert!(status.success(), "{said}");
    assert_eq!(reader.join().expect("the reader does not panic"), content.hash.finalize());
    TransferFigures { took, counts: end.connection.counts() }
}

/// Writes as much of `piece` as there is room for. Returns false if there is no room.
fn write(end: &mut ConnectionEnd, piece: &mut Vec<u8>) -> bool {
    match end.connection.write(piece) {
        Ok(written) => piece.drain(..written),
        Err(IoError::Full | IoError::NotOpen | IoError::Closed) => return false,
    };
    true
}

fn read_all(mut out: impl Read + Send + 'static) -> JoinHandle<Hash> {
    std::thread::spawn(move || {
        let (mut hash, mut room) = (Hasher::new(), vec![0; 1 << 17]);
        while let Ok(length @ 1..) = out.read(&mut room) {
            hash.update(&room[..length]);
        }
        hash.finalize()
    })
}

fn from_libudt(case: &TransferCase) -> TransferFigures {
    let socket = ClockedSocket::bind(case.any_port());
    let relay = case.impairments.map(|impairments| Relay::start(socket.address(), impairments, case.bytes));
    let to = relay.as_ref().map_or(socket.address(), |relay| relay.address);
    let start = Instant::now();
    let (mut peer, input) = LibudtPeer::connect(to, case.mss);
    let writer = write_all(TransferContent::new(case), input);
    let mut end = ConnectionEnd::accept(socket, case.config(), Nanos::secs(60));
    let mut hash = Hasher::new();
    // libudt ends once everything is acknowledged. It sends one shutdown, which may be lost.
    while peer.has_ended().is_none() {
        assert!(start.elapsed() < case.most, "it takes too long: {:?}", end.connection);
        end.drive(Nanos::millis(5));
        read(&mut end, &mut hash);
    }
    let took = start.elapsed();
    read(&mut end, &mut hash);
    assert!(matches!(end.connection.closed(), Some(CloseReason::PeerClosed) | None), "{:?}", end.connection);
    let (status, said) = peer.wait(Duration::from_secs(30));
    assert!(status.success(), "{said}");
    let content = writer.join().expect("the writer does not panic");
    assert_eq!((content.left, content.hash.finalize()), (0, hash.finalize()));
    TransferFigures { took, counts: end.connection.counts() }
}

fn write_all(
    mut content: TransferContent,
    mut input: impl Write + Send + 'static,
) -> JoinHandle<TransferContent> {
    std::thread::spawn(move || {
        loop {
            let piece = content.next();
            if piece.is_empty() || input.write_all(&piece).is_err() {
                return content;
            }
        }
    })
}

/// Runs a transfer from libudt to libudt with the same parameters, for comparison. Returns the time that it took.
pub(crate) fn libudt_alone(case: &TransferCase) -> Duration {
    let (_receiver, listener, out) = LibudtPeer::listen(case.any_port(), case.mss);
    let relay = case.impairments.map(|impairments| Relay::start(listener, impairments, case.bytes));
    let to = relay.as_ref().map_or(listener, |relay| relay.address);
    let reader = read_all(out);
    let start = Instant::now();
    let (mut sender, input) = LibudtPeer::connect(to, case.mss);
    let writer = write_all(TransferContent::new(case), input);
    let (status, said) = sender.wait(case.most);
    let took = start.elapsed();
    assert!(status.success(), "{said}");
    let content = writer.join().expect("the writer does not panic");
    assert_eq!(reader.join().expect("the reader does not panic"), content.hash.finalize());
    took
}

fn read(end: &mut ConnectionEnd, hash: &mut Hasher) {
    while !end.connection.peek().is_empty() {
        let piece = end.connection.peek();
        hash.update(piece);
        let length = piece.len();
        end.connection.consume(length);
    }
}
