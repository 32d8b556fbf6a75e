//! UDP sockets that share a port: one that reserves the port, one for the listener, and one for each flow.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::RecvFlags;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::socket::{self, HeldPort, ListenFn};
use crate::transport::ReservedPort;
use crate::{Error, raw};

/// The largest number of datagrams that a listener receives before it does its other work.
const MOST_AT_ONCE: usize = 256;

/// A datagram that a listener's socket received.
pub(crate) struct ReceivedDatagram {
    pub(crate) from: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

/// Reserves the port `at`. `listen` is the function that later listens on it.
pub(crate) fn reserve(at: SocketAddr, listen: ListenFn) -> Result<Box<dyn ReservedPort>, Error> {
    let held = bind(at)?;
    let address = socket::local(&held)?;
    connect_to_itself(&held).map_err(|source| Error::refused("hold", address, source))?;
    HeldPort::of(held, listen)
}

/// Opens a UDP socket for tests of what the kernel supports.
pub(crate) fn probe() -> Result<Socket, String> {
    Socket::new(Domain::IPV4, Type::DGRAM, None)
        .or_else(|_| Socket::new(Domain::IPV6, Type::DGRAM, None))
        .map_err(|error| format!("this host opens no UDP socket: {error}"))
}

/// Checks that the kernel can cut large sends into datagrams (UDP_SEGMENT). The error message ends with `remedy`.
pub(crate) fn segments(probe: &Socket, remedy: &str) -> Result<(), String> {
    has(probe, libc::UDP_SEGMENT).map_err(|error| {
        format!("this kernel has no UDP_SEGMENT, which came with Linux 4.18 ({error}): {remedy}")
    })
}

/// Checks that the kernel can join received datagrams (UDP_GRO). The error message ends with `remedy`.
pub(crate) fn joins(probe: &Socket, remedy: &str) -> Result<(), String> {
    has(probe, libc::UDP_GRO)
        .map_err(|error| format!("this kernel has no UDP_GRO, which came with Linux 5.0 ({error}): {remedy}"))
}

fn has(probe: &Socket, name: i32) -> io::Result<()> {
    raw::set::<u32>(probe, libc::IPPROTO_UDP, name, 1)
}

/// Connects a socket to its own address. The socket then receives nothing from others, and the kernel refuses
/// datagrams to its port. A flow does this when it ends, because a child process may have a copy of its socket
/// between fork and exec, and the copy must not receive datagrams of the next flow over the same ports.
pub(crate) fn connect_to_itself(socket: &Socket) -> io::Result<()> {
    socket.connect(&socket.local_addr()?)
}

/// Opens a socket for a flow to `server`. Binds the socket to `source_port`, unless this port is zero.
pub(crate) fn dial(server: SocketAddr, source_port: u16) -> Result<Socket, Error> {
    match source_port {
        0 => open(server),
        port => bind(socket::any(server, port)),
    }
}

/// Returns the payload, in bytes, of the largest datagram that fits the path MTU that this host knows for a connected
/// socket.
pub(crate) fn largest(socket: &Socket) -> io::Result<u32> {
    let (level, name, headers) = match socket.domain()? {
        Domain::IPV6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU, 48),
        _ => (libc::IPPROTO_IP, libc::IP_MTU, 28),
    };
    Ok(raw::get::<u32>(socket, level, name)?.saturating_sub(headers))
}

/// Sets the kernel's treatment of datagrams that are larger than the known path MTU (IP_MTU_DISCOVER, ip(7)). If
/// `cuts` is true, the kernel cuts them into fragments, otherwise it refuses them with EMSGSIZE.
pub(crate) fn cut_large(socket: &Socket, cuts: bool) -> io::Result<()> {
    let (level, name, value) = match (socket.domain()?, cuts) {
        (Domain::IPV6, true) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_WANT),
        (Domain::IPV6, false) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
        (_, true) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_WANT),
        (_, false) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
    };
    raw::set(socket, level, name, value.cast_unsigned())
}

/// Opens a socket bound to `address`, which may share the port with other sockets of this user. The error names the
/// address.
pub(crate) fn bind(address: SocketAddr) -> Result<Socket, Error> {
    another(address).map_err(|source| Error::refused("bind to", address, source))
}

/// Opens a socket bound to `address`. SO_REUSEPORT lets the port's holder, its listener and its flows share the port,
/// but not with sockets of other users (socket(7)). A connected socket gets the datagrams of its own peer.
pub(crate) fn another(address: SocketAddr) -> io::Result<Socket> {
    let socket = socket::open(address, Type::DGRAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// Opens an unbound UDP socket of the address family of `address`.
pub(crate) fn open(address: SocketAddr) -> Result<Socket, Error> {
    socket::open(address, Type::DGRAM, None)
        .map_err(|source| Error::refused("open a socket for", address, source))
}

/// The datagrams that a listener receives before it does its other work, at most [`MOST_AT_ONCE`], each truncated to
/// `ROOM` bytes. Datagrams of other clients that reached a flow's socket come first.
pub(crate) struct DatagramIntake<const ROOM: usize> {
    astray: VecDeque<ReceivedDatagram>,
    left: usize,
}

impl<const ROOM: usize> DatagramIntake<ROOM> {
    pub(crate) fn new() -> Self {
        DatagramIntake { astray: VecDeque::new(), left: MOST_AT_ONCE }
    }

    /// Returns the next datagram; `None` if there is none, or if the limit is reached.
    pub(crate) fn next(&mut self, socket: &impl AsFd) -> io::Result<Option<ReceivedDatagram>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let astray = self.astray.pop_front();
        astray.map_or_else(|| next::<ROOM>(socket), |received| Ok(Some(received)))
    }

    /// Receives the datagrams that reached a flow's socket between its bind and its connect, and keeps those that are
    /// not from `peer`.
    pub(crate) fn take_astray(&mut self, socket: &Socket, peer: SocketAddr) -> io::Result<()> {
        for _ in 0..MOST_AT_ONCE {
            match next::<ROOM>(socket)? {
                Some(received) if received.from == peer => {}
                Some(received) => self.astray.push_back(received),
                None => break,
            }
        }
        Ok(())
    }
}

/// Receives the next datagram without waiting, truncated to `ROOM` bytes; returns `None` if there is none.
fn next<const ROOM: usize>(socket: &impl AsFd) -> io::Result<Option<ReceivedDatagram>> {
    let mut datagram = [0; ROOM];
    match rustix::net::recvfrom(socket, &mut datagram, RecvFlags::DONTWAIT) {
        Ok((length, _, from)) => {
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            let from = from.ok_or_else(|| io::Error::other("a datagram without an address"))?;
            Ok(Some(ReceivedDatagram { from, bytes: datagram[..length].to_vec() }))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        // ICMP errors about earlier answers do not concern the listener.
        Err(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::INTR | rustix::io::Errno::HOSTUNREACH) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
