//! The common part of all transports over stream sockets: connecting, accepting, the proof of the key, and the flow.
//! Each of these transports implements [`StreamTransport`].

mod accept;
mod connect;
mod flow;
mod plain;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use landspeed_record::units::Bytes;
use landspeed_record::{Details, SettingMismatch, Settings};
use socket2::{SockAddr, Socket};

pub(crate) use accept::StreamListener;
pub(crate) use connect::connect;
use flow::unacknowledged;
pub(crate) use plain::receive;

use crate::options::SocketOptions;
use crate::transport::{AckProgress, ProofKey, Receiver, Sender};
use crate::{Error, socket};

/// The part of a transport over stream sockets that differs between transports.
pub(crate) trait StreamTransport: Sync {
    fn options(&self) -> &'static SocketOptions;

    /// Opens a socket to connect to `at` or to bind to it.
    fn socket(&self, at: SocketAddr) -> io::Result<Socket>;

    /// Opens a socket for a flow to `server`. Binds the socket to `source_port`, unless this port is zero.
    fn dial(&self, server: SocketAddr, source_port: u16) -> Result<Socket, Error> {
        match source_port {
            0 => open(self, server),
            port => bind(self, socket::any(server, port)),
        }
    }

    /// Opens a socket bound to `at`, for a listener of flows that prove `key`.
    fn bind(&self, at: SocketAddr, _key: &ProofKey) -> Result<Socket, Error> {
        bind(self, at)
    }

    /// Returns the address to which a client of `server` connects.
    fn address(&self, server: SocketAddr, _key: &ProofKey) -> io::Result<SockAddr> {
        Ok(server.into())
    }

    /// Returns what the peer has acknowledged. By default, subtracts the unacknowledged bytes (SIOCOUTQ) from the bytes
    /// sent, for sockets about which the kernel reports nothing else.
    fn progress(&self, stream: &StreamSocket) -> io::Result<AckProgress> {
        let waiting = unacknowledged(&stream.socket)?;
        let acked = Bytes(stream.sent.load(Ordering::Relaxed).saturating_sub(waiting));
        Ok(AckProgress { acked, outstanding: waiting > 0, ..AckProgress::default() })
    }

    /// Adds to `details` what only this transport records of a flow ([`crate::Flow::add_details`]).
    fn add_details(&self, _stream: &StreamSocket, _details: &mut Details) {}

    /// Returns the settings, other than socket options, whose values differ from the requested ones
    /// ([`crate::Flow::not_as_asked`]).
    fn fell_back(&self, _stream: &StreamSocket, _settings: &Settings) -> Vec<SettingMismatch> {
        Vec::new()
    }

    fn sender<'a>(&self, stream: &'a StreamSocket, _settings: &Settings) -> io::Result<Box<dyn Sender + 'a>> {
        Ok(plain_sender(stream))
    }

    fn receiver<'a>(
        &self,
        stream: &'a StreamSocket,
        _settings: &Settings,
    ) -> io::Result<Box<dyn Receiver + 'a>> {
        Ok(plain_receiver(&stream.socket))
    }
}

/// Opens a socket bound to `address`. With SO_REUSEADDR, a listener can share the port with the socket that reserves
/// it, and a flow can use a source port that another program's connection left in TIME_WAIT.
pub(crate) fn bind<K: StreamTransport + ?Sized>(kind: &K, address: SocketAddr) -> Result<Socket, Error> {
    let socket = open(kind, address)?;
    let refused = |source| Error::refused("bind to", address, source);
    socket.set_reuse_address(true).map_err(refused)?;
    socket.bind(&SockAddr::from(address)).map_err(refused)?;
    Ok(socket)
}

/// Opens a socket whose close is abrupt. With SO_LINGER 0, the kernel sends RST and keeps no TIME_WAIT (tcp(7)), so
/// that the next trial can use the same ports.
pub(crate) fn open<K: StreamTransport + ?Sized>(kind: &K, address: SocketAddr) -> Result<Socket, Error> {
    let make = || {
        let socket = kind.socket(address)?;
        socket.set_linger(Some(Duration::ZERO))?;
        Ok(socket)
    };
    make().map_err(|source| Error::refused("open a socket for", address, source))
}

/// The socket of a flow, and counts of what was sent on it.
pub(crate) struct StreamSocket {
    pub(crate) socket: Socket,
    /// The number of bytes that the flow's senders without zero-copy have sent.
    pub(crate) sent: AtomicU64,
    /// The number that the kernel gives the socket's next zero-copy send.
    pub(crate) numbers: AtomicU32,
}

pub(crate) fn plain_sender(stream: &StreamSocket) -> Box<dyn Sender + '_> {
    Box::new(plain::PlainSender(stream))
}

pub(crate) fn plain_receiver(socket: &Socket) -> Box<dyn Receiver + '_> {
    Box::new(plain::PlainReceiver(socket))
}
