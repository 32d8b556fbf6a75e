//! What all transports over stream sockets do alike: connecting, accepting, the proof of the key, the flow. A transport adds
//! its [`Kind`].

mod accept;
mod connect;
mod flow;
mod plain;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use landspeed_record::{Details, NotAsAsked, Settings};
use landspeed_units::Bytes;
use socket2::{SockAddr, Socket};

pub(crate) use accept::StreamListener;
pub(crate) use connect::connect;
use flow::unacknowledged;
pub(crate) use plain::receive;

use crate::options::Options;
use crate::transport::{Key, Progress, Receiver, Sender};
use crate::{Error, socket};

/// What one transport over stream sockets has for itself.
pub(crate) trait Kind: Sync {
    fn options(&self) -> &'static Options;

    /// A socket towards or on `at`.
    fn socket(&self, at: SocketAddr) -> io::Result<Socket>;

    /// A socket for a flow to `server`, from `source_port` unless that is zero.
    fn dial(&self, server: SocketAddr, source_port: u16) -> Result<Socket, Error> {
        match source_port {
            0 => open(self, server),
            port => bind(self, socket::any(server, port)),
        }
    }

    /// A socket on which the holder of `key` listens at `at`.
    fn bind(&self, at: SocketAddr, _key: &Key) -> Result<Socket, Error> {
        bind(self, at)
    }

    /// What a client of `server` connects to.
    fn address(&self, server: SocketAddr, _key: &Key) -> io::Result<SockAddr> {
        Ok(server.into())
    }

    /// How far the peer has acknowledged, by what was sent and what waits (SIOCOUTQ) where the kernel tells no more.
    fn progress(&self, stream: &Stream) -> io::Result<Progress> {
        let waiting = unacknowledged(&stream.socket)?;
        let acked = Bytes(stream.sent.load(Ordering::Relaxed).saturating_sub(waiting));
        Ok(Progress { acked, outstanding: waiting > 0, ..Progress::default() })
    }

    /// Adds what only this transport knows of a flow: see [`crate::Flow::tell`].
    fn tell(&self, _stream: &Stream, _details: &mut Details) {}

    /// Settings that are no options of the socket, and not as asked: see [`crate::Flow::not_as_asked`].
    fn fell_back(&self, _stream: &Stream, _settings: &Settings) -> Vec<NotAsAsked> {
        Vec::new()
    }

    fn sender<'a>(&self, stream: &'a Stream, _settings: &Settings) -> io::Result<Box<dyn Sender + 'a>> {
        Ok(plain_sender(stream))
    }

    fn receiver<'a>(&self, stream: &'a Stream, _settings: &Settings) -> io::Result<Box<dyn Receiver + 'a>> {
        Ok(plain_receiver(&stream.socket))
    }
}

/// A socket bound to `address`. SO_REUSEADDR lets a listener share the port with the socket that holds it, and a flow take a
/// source port that a connection of another program left in TIME_WAIT.
pub(crate) fn bind<K: Kind + ?Sized>(kind: &K, address: SocketAddr) -> Result<Socket, Error> {
    let socket = open(kind, address)?;
    let refused = |source| Error::refused("bind to", address, source);
    socket.set_reuse_address(true).map_err(refused)?;
    socket.bind(&SockAddr::from(address)).map_err(refused)?;
    Ok(socket)
}

/// A socket whose close is abrupt: with SO_LINGER 0 the kernel sends RST and keeps no TIME_WAIT (tcp(7)), so that the next
/// trial can have the same ports.
pub(crate) fn open<K: Kind + ?Sized>(kind: &K, address: SocketAddr) -> Result<Socket, Error> {
    let make = || {
        let socket = kind.socket(address)?;
        socket.set_linger(Some(Duration::ZERO))?;
        Ok(socket)
    };
    make().map_err(|source| Error::refused("open a socket for", address, source))
}

/// The socket of a flow, and what was sent.
pub(crate) struct Stream {
    pub(crate) socket: Socket,
    /// Bytes that plain senders handed over.
    pub(crate) sent: AtomicU64,
    /// Sends that the kernel numbered, because it was lent their memory.
    pub(crate) numbers: AtomicU32,
}

pub(crate) fn plain_sender(stream: &Stream) -> Box<dyn Sender + '_> {
    Box::new(plain::PlainSender(stream))
}

pub(crate) fn plain_receiver(socket: &Socket) -> Box<dyn Receiver + '_> {
    Box::new(plain::PlainReceiver(socket))
}
