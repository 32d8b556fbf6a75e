//! UDP sockets that share a port: the one that holds it, a listener's, and one for each of its flows.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::RecvFlags;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::socket::{self, HeldPort, Listen};
use crate::transport::Port;
use crate::{Error, raw};

/// Datagrams that are taken before anything else is looked at, however many come.
const MOST_AT_ONCE: usize = 256;

/// A datagram and where it came from.
type Received = (SocketAddr, Vec<u8>);

/// Holds a port of `at`, on which `listen` starts to listen.
pub(crate) fn reserve(at: SocketAddr, listen: Listen) -> Result<Box<dyn Port>, Error> {
    let held = bind(at)?;
    let address = socket::local(&held)?;
    deafen(&held).map_err(|source| Error::refused("hold", address, source))?;
    HeldPort::of(held, listen)
}

/// A UDP socket to ask the kernel on; otherwise why there is none.
pub(crate) fn probe() -> Result<Socket, String> {
    Socket::new(Domain::IPV4, Type::DGRAM, None)
        .or_else(|_| Socket::new(Domain::IPV6, Type::DGRAM, None))
        .map_err(|error| format!("this host opens no UDP socket: {error}"))
}

/// Whether the kernel cuts what is sent (UDP_SEGMENT); otherwise why not, and the remedy.
pub(crate) fn segments(probe: &Socket, remedy: &str) -> Result<(), String> {
    has(probe, libc::UDP_SEGMENT).map_err(|error| {
        format!("this kernel has no UDP_SEGMENT, which came with Linux 4.18 ({error}): {remedy}")
    })
}

/// Whether the kernel joins what comes (UDP_GRO); otherwise why not, and the remedy.
pub(crate) fn joins(probe: &Socket, remedy: &str) -> Result<(), String> {
    has(probe, libc::UDP_GRO)
        .map_err(|error| format!("this kernel has no UDP_GRO, which came with Linux 5.0 ({error}): {remedy}"))
}

fn has(probe: &Socket, name: i32) -> io::Result<()> {
    raw::set::<u32>(probe, libc::IPPROTO_UDP, name, 1)
}

/// Connects a socket to itself: it takes nothing from other sockets, and the kernel refuses what comes to its port for it. What is left of a
/// flow does so because a child of this program holds its socket from its fork until it becomes another program: it takes nothing from the
/// next flow over the same ports then.
pub(crate) fn deafen(socket: &Socket) -> io::Result<()> {
    socket.connect(&socket.local_addr()?)
}

/// A socket for a flow to `server`, from `source_port` unless that is zero.
pub(crate) fn dial(server: SocketAddr, source_port: u16) -> Result<Socket, Error> {
    match source_port {
        0 => open(server),
        port => bind(socket::any(server, port)),
    }
}

/// Payload of the largest datagram that the path of a connected socket lets through whole, as far as this host knows.
pub(crate) fn largest(socket: &Socket) -> io::Result<u32> {
    let (level, name, headers) = match socket.domain()? {
        Domain::IPV6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU, 48),
        _ => (libc::IPPROTO_IP, libc::IP_MTU, 28),
    };
    Ok(raw::get::<u32>(socket, level, name)?.saturating_sub(headers))
}

/// Whether the kernel cuts datagrams into fragments that are larger than the path takes as far as it knows, or refuses them with EMSGSIZE
/// (IP_MTU_DISCOVER, ip(7)).
pub(crate) fn cut_large(socket: &Socket, cuts: bool) -> io::Result<()> {
    let (level, name, value) = match (socket.domain()?, cuts) {
        (Domain::IPV6, true) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_WANT),
        (Domain::IPV6, false) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
        (_, true) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_WANT),
        (_, false) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
    };
    raw::set(socket, level, name, value.cast_unsigned())
}

/// As [`another`], for the port's holder, its listener and the client's end.
pub(crate) fn bind(address: SocketAddr) -> Result<Socket, Error> {
    another(address).map_err(|source| Error::refused("bind to", address, source))
}

/// A socket bound to `address`. SO_REUSEPORT lets the port's holder, its listener and its flows share the
/// port, and no other user's socket (socket(7)); a connected one gets what is its own.
pub(crate) fn another(address: SocketAddr) -> io::Result<Socket> {
    let socket = socket::open(address, Type::DGRAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// A socket towards or on `address`.
pub(crate) fn open(address: SocketAddr) -> Result<Socket, Error> {
    socket::open(address, Type::DGRAM, None)
        .map_err(|source| Error::refused("open a socket for", address, source))
}

/// What a listener takes in at one look: datagrams cut to `ROOM` bytes, those that went astray first.
pub(crate) struct Arrivals<const ROOM: usize> {
    astray: VecDeque<Received>,
    left: usize,
}

impl<const ROOM: usize> Arrivals<ROOM> {
    pub(crate) fn new() -> Self {
        Arrivals { astray: VecDeque::new(), left: MOST_AT_ONCE }
    }

    /// The next datagram that is there; `None` where there is none, or enough were taken.
    pub(crate) fn next(&mut self, socket: &impl AsFd) -> io::Result<Option<Received>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let astray = self.astray.pop_front();
        astray.map_or_else(|| next::<ROOM>(socket), |received| Ok(Some(received)))
    }

    /// Takes what others sent to a flow's socket between its bind and its connect.
    pub(crate) fn take_astray(&mut self, socket: &Socket, peer: SocketAddr) -> io::Result<()> {
        for _ in 0..MOST_AT_ONCE {
            match next::<ROOM>(socket)? {
                Some((from, _)) if from == peer => {}
                Some(received) => self.astray.push_back(received),
                None => break,
            }
        }
        Ok(())
    }
}

/// The next datagram that is there, cut to `ROOM` bytes.
fn next<const ROOM: usize>(socket: &impl AsFd) -> io::Result<Option<Received>> {
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
