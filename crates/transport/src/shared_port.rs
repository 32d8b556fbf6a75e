//! UDP sockets that share a port: the one that holds it, a listener's, and one for each of its flows.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::RecvFlags;
use socket2::{SockAddr, Socket, Type};

use crate::Error;
use crate::socket::{self, HeldPort, Listen};
use crate::transport::Port;

/// Datagrams that are taken before anything else is looked at, however many come.
pub(crate) const MOST_AT_ONCE: usize = 256;

/// A datagram and where it came from.
pub(crate) type Received = (SocketAddr, Vec<u8>);

/// Holds a port of `at`, on which `listen` starts to listen.
pub(crate) fn reserve(at: SocketAddr, listen: Listen) -> Result<Box<dyn Port>, Error> {
    let held = bind(at)?;
    let address = socket::local(&held)?;
    // Connected to itself it takes nothing from anybody, and the kernel refuses what comes.
    held.connect(&SockAddr::from(address)).map_err(|source| Error::refused("hold", address, source))?;
    HeldPort::of(held, listen)
}

/// A socket bound to `address`. SO_REUSEPORT lets the port's holder, its listener and its flows share the
/// port, and no other user's socket (socket(7)); a connected one gets what is its own.
pub(crate) fn bind(address: SocketAddr) -> Result<Socket, Error> {
    let socket = open(address)?;
    let refused = |source| Error::refused("bind to", address, source);
    socket.set_reuse_port(true).map_err(refused)?;
    socket.bind(&SockAddr::from(address)).map_err(refused)?;
    Ok(socket)
}

/// A socket towards or on `address`.
pub(crate) fn open(address: SocketAddr) -> Result<Socket, Error> {
    socket::open(address, Type::DGRAM, None)
        .map_err(|source| Error::refused("open a socket for", address, source))
}

/// The next datagram that is there, cut to `ROOM` bytes.
pub(crate) fn next<const ROOM: usize>(socket: &impl AsFd) -> io::Result<Option<Received>> {
    let mut datagram = [0; ROOM];
    match rustix::net::recvfrom(socket, &mut datagram, RecvFlags::DONTWAIT) {
        Ok((length, _, from)) => {
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            let from = from.ok_or_else(|| io::Error::other("a datagram without an address"))?;
            Ok(Some((from, datagram[..length].to_vec())))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        // What became of an answer is not the listener's concern.
        Err(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::INTR | rustix::io::Errno::HOSTUNREACH) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// What others sent to a flow's socket between its bind and its connect.
pub(crate) fn astray<const ROOM: usize>(socket: &Socket, peer: SocketAddr) -> io::Result<Vec<Received>> {
    let mut all = Vec::new();
    for _ in 0..MOST_AT_ONCE {
        match next::<ROOM>(socket)? {
            Some((from, _)) if from == peer => {}
            Some(received) => all.push(received),
            None => break,
        }
    }
    Ok(all)
}
