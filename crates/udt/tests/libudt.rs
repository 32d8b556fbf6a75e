//! Connections with Debian's libudt, over real sockets on loopback, on which every so manieth datagram is lost.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use landspeed_udt::packet::HANDSHAKE;
use landspeed_udt::{Answer, Config, Connection, Identity, Listener, Reason, Seq, SocketId, SocketType};
use landspeed_units::Nanos;

/// The program of peer.cpp; `None` where the machine cannot make it.
fn peer(name: &str) -> Option<PathBuf> {
    if !Path::new("/usr/include/udt/udt.h").exists() {
        eprintln!("SKIPPED: libudt-dev is not installed");
        return None;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut compiler = Command::new("g++");
    compiler.args(["-O1", "-o"]).arg(&program).args(["tests/peer.cpp", "-ludt", "-lpthread"]);
    match compiler.status() {
        Ok(status) => assert!(status.success(), "g++ failed"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: g++ is not installed");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    Some(program)
}

/// Ends the program with the test, whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: &Path, words: &[&str]) -> Running {
    Running(Command::new(program).args(words).stdout(Stdio::piped()).spawn().expect("the peer starts"))
}

struct Socket {
    socket: UdpSocket,
    began: Instant,
    /// One of so many datagrams is lost, in each direction.
    loses: u64,
    count: u64,
}

impl Socket {
    fn new(loses: u64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        Socket { socket, began: Instant::now(), loses, count: 0 }
    }

    fn now(&self) -> Nanos {
        Nanos::secs(1000) + Nanos::from(self.began.elapsed())
    }

    fn is_lost(&mut self) -> bool {
        self.count += 1;
        // Where slow start ends at its beginning, a transfer takes long.
        self.count > 300 && self.count.is_multiple_of(self.loses)
    }

    fn receive<'a>(&mut self, wait: Nanos, room: &'a mut [u8]) -> Option<(&'a [u8], SocketAddr)> {
        let wait = Duration::from(wait.max(Nanos::micros(20)).min(Nanos::millis(50)));
        self.socket.set_read_timeout(Some(wait)).unwrap();
        let (length, from) = self.socket.recv_from(room).ok()?;
        (!self.is_lost()).then_some((&room[..length], from))
    }

    /// One round of the loop that drives a connection.
    fn drive(&mut self, connection: &mut Connection) {
        let mut now = self.now();
        assert!(now < Nanos::secs(1040), "it takes too long: {connection:?}");
        connection.handle_timeout(now);
        let to = connection.peer();
        while let Some(transmit) = connection.poll_transmit(now, 16) {
            for datagram in transmit.datagrams() {
                if !self.is_lost() {
                    self.socket.send_to(datagram, to).unwrap();
                }
            }
            now = self.now();
        }
        let Some(next) = connection.next_timeout() else { return };
        let mut room = [0; 2048];
        if let Some((datagram, from)) = self.receive(next - now, &mut room)
            && from == to
        {
            connection.handle(self.now(), datagram);
        }
    }
}

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;
const BYTES: usize = 2_000_000;

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|at| ((at as u32).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// A name for the program's arguments.
fn name(socket_type: SocketType) -> &'static str {
    if socket_type == SocketType::Stream { "stream" } else { "messages" }
}

fn sends_to_libudt(socket_type: SocketType) {
    let Some(program) = peer(&format!("send-{}", name(socket_type))) else { return };
    let mut running = start(&program, &["listen", name(socket_type)]);
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let port: u16 = lines.next().unwrap().unwrap().parse().unwrap();
    let mut socket = Socket::new(50);
    let identity = Identity { socket: SocketId(77), first_seq: Seq::MAX.minus(100), seed: 1 };
    let config = Config { socket_type, ..Config::default() };
    let mut connection = Connection::connect(socket.now(), config, identity, ([127, 0, 0, 1], port).into());
    let data = pattern();
    let mut written = 0;
    while connection.closed().is_none() {
        socket.drive(&mut connection);
        let rest = &data[written..];
        if rest.is_empty() {
            connection.close(socket.now());
        } else if socket_type == SocketType::Stream {
            written += connection.write(rest).unwrap_or(0);
        } else {
            written += write_messages(&mut connection, socket.now(), rest, written);
        }
    }
    assert_eq!(connection.closed(), Some(Reason::Closed), "{connection:?}");
    assert!(connection.counts().sent_again > 0);
    // The shutdown may have been lost: each packet of libudt's is answered by another one.
    let until = socket.now() + Nanos::secs(2);
    while socket.now() < until && running.0.try_wait().unwrap().is_none() {
        let mut room = [0; 2048];
        if let Some((datagram, _)) = socket.receive(Nanos::millis(20), &mut room) {
            connection.handle(socket.now(), datagram);
        }
        socket.drive(&mut connection);
    }
    assert_eq!(lines.next().unwrap().unwrap(), format!("{BYTES} {:016x}", fnv(FNV, &data)));
}

/// Writes messages of several lengths as long as there is room.
fn write_messages(connection: &mut Connection, now: Nanos, data: &[u8], before: usize) -> usize {
    let mut written = 0;
    while written < data.len() {
        let length = (data.len() - written).min(1 + (before + written) % 20_000);
        if connection.write_message(now, &data[written..][..length], true, None).is_err() {
            break;
        }
        written += length;
    }
    written
}

fn receives_from_libudt(socket_type: SocketType) {
    let Some(program) = peer(&format!("receive-{}", name(socket_type))) else { return };
    let mut socket = Socket::new(50);
    let port = socket.socket.local_addr().unwrap().port().to_string();
    let mut running = start(&program, &["connect", &port, name(socket_type), &BYTES.to_string()]);
    let mut connection = accept(&mut socket, socket_type);
    let (mut hash, mut bytes, mut room) = (FNV, 0, vec![0; 1 << 20]);
    loop {
        match socket_type {
            SocketType::Stream => {
                while !connection.peek().is_empty() {
                    let piece = connection.peek();
                    (hash, bytes) = (fnv(hash, piece), bytes + piece.len());
                    connection.consume(piece.len());
                }
            }
            SocketType::Datagram => {
                while let Some(length) = connection.read_message(&mut room).unwrap() {
                    (hash, bytes) = (fnv(hash, &room[..length]), bytes + length);
                }
            }
        }
        // libudt says once that it closes, and that may be lost.
        if connection.closed().is_some() || bytes == BYTES && running.0.try_wait().unwrap().is_some() {
            break;
        }
        socket.drive(&mut connection);
    }
    assert!(matches!(connection.closed(), Some(Reason::PeerClosed) | None), "{connection:?}");
    assert_eq!((bytes, hash), (BYTES, fnv(FNV, &pattern())));
    assert!(running.0.wait().unwrap().success());
}

/// Listens until libudt has proven its cookie.
fn accept(socket: &mut Socket, socket_type: SocketType) -> Connection {
    let listener = Listener::new([5; 32], socket_type);
    let config = Config { socket_type, ..Config::default() };
    let mut room = [0; 2048];
    loop {
        assert!(socket.now() < Nanos::secs(1020), "libudt does not connect");
        let Some((datagram, from)) = socket.receive(Nanos::millis(50), &mut room) else { continue };
        let mut reply = [0; HANDSHAKE];
        match listener.handle(socket.now(), from, datagram, &mut reply) {
            Answer::Ignore => {}
            Answer::Reply(length) => {
                socket.socket.send_to(&reply[..length], from).unwrap();
            }
            Answer::Proven(request) => {
                let identity = Identity { socket: SocketId(99), first_seq: Seq::new(0), seed: 1 };
                return Connection::accept(socket.now(), config, identity, &request);
            }
        }
    }
}

#[test]
fn a_stream_to_libudt() {
    sends_to_libudt(SocketType::Stream);
}

#[test]
fn messages_to_libudt() {
    sends_to_libudt(SocketType::Datagram);
}

#[test]
fn a_stream_from_libudt() {
    receives_from_libudt(SocketType::Stream);
}

#[test]
fn messages_from_libudt() {
    receives_from_libudt(SocketType::Datagram);
}
