//! Functions that all transports over sockets share: opening a socket, reserving a port, waiting.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use landspeed_record::Settings;
use rustix::event::{PollFd, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::Error;
use crate::transport::{Listener, ProofKey, ReservedPort};

/// Opens a socket to connect to `address` or to bind to it. The socket is for this address family only.
pub(crate) fn open(address: SocketAddr, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, protocol)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

pub(crate) fn local(socket: &Socket) -> Result<SocketAddr, Error> {
    let address =
        socket.local_addr().map_err(|source| Error::refused("read the port of", "a socket", source))?;
    Ok(address.as_socket().expect("an IP socket has an IP address"))
}

/// Returns the wildcard address of `peer`'s family with `port`.
pub(crate) fn any(peer: SocketAddr, port: u16) -> SocketAddr {
    let address: IpAddr =
        if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(address, port)
}

/// Waits until a socket is ready, for at most `slice`. Returns true if a socket is ready.
pub(crate) fn wait(sockets: &mut [PollFd<'_>], slice: Duration) -> io::Result<bool> {
    let slice = Timespec::try_from(slice).expect("a slice is short");
    match poll(sockets, Some(&slice)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(crate) type ListenFn = fn(SocketAddr, &Settings, &ProofKey) -> Result<Box<dyn Listener>, Error>;

/// A port that a socket reserves without listening on it.
pub(crate) struct HeldPort {
    address: SocketAddr,
    /// The socket that is bound to the port, so that the kernel gives the port to no other socket, not even as the
    /// source port of a flow.
    _held: Socket,
    listen: ListenFn,
}

impl HeldPort {
    /// Returns the reserved port to which `held` is bound. `listen` is the function that later listens on it.
    pub(crate) fn of(held: Socket, listen: ListenFn) -> Result<Box<dyn ReservedPort>, Error> {
        Ok(Box::new(HeldPort { address: local(&held)?, _held: held, listen }))
    }
}

impl ReservedPort for HeldPort {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn listen(&self, settings: &Settings, key: &ProofKey) -> Result<Box<dyn Listener>, Error> {
        (self.listen)(self.address, settings, key)
    }
}
