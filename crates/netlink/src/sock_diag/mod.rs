//! Sockets of a network namespace, whoever holds them: sock_diag(7), the interface behind `ss`.
//!
//! Any user sees every socket of the namespace; whose process it is, this interface does not tell, but the
//! inode leads there.

mod id;
mod socket;

pub use id::SocketId;
pub use socket::{InetSocket, SocketMemory};

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt::{socket_domain, socket_protocol};
use rustix::net::{AddressFamily, netlink};

use crate::attr::Body;
use crate::channel::Channel;
use crate::error::{During, Error, Failure};

/// linux/sock_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// States of include/net/tcp_states.h as bits of `idiag_states`.
mod state {
    pub(super) const ESTABLISHED: u32 = 1 << 1;
    pub(super) const SYN_SENT: u32 = 1 << 2;
    pub(super) const FIN_WAIT1: u32 = 1 << 4;
    pub(super) const FIN_WAIT2: u32 = 1 << 5;
    pub(super) const CLOSE: u32 = 1 << 7;
    pub(super) const CLOSE_WAIT: u32 = 1 << 8;
    pub(super) const LAST_ACK: u32 = 1 << 9;
    pub(super) const LISTEN: u32 = 1 << 10;
    pub(super) const CLOSING: u32 = 1 << 11;
}

/// Which sockets are listed. The kernel leaves the others out, so a list of listeners is cheap on a host
/// with a hundred thousand connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKind {
    /// TCP connections from SYN to last acknowledgement; neither listeners nor those in TIME_WAIT.
    TcpFlow,
    TcpListener,
    /// UDP sockets, connected or not.
    Udp,
}

/// How a kind is asked for.
struct Question {
    name: &'static str,
    protocol: u8,
    states: u32,
    /// A listener's TCP_INFO says nothing that the queues do not.
    extensions: u8,
}

impl SocketKind {
    fn question(self) -> Question {
        use state::*;
        const TCP: u8 = libc::IPPROTO_TCP as u8;
        match self {
            SocketKind::TcpFlow => Question {
                name: "TCP",
                protocol: TCP,
                states: ESTABLISHED | SYN_SENT | FIN_WAIT1 | FIN_WAIT2 | CLOSE_WAIT | LAST_ACK | CLOSING,
                extensions: socket::INFO | socket::CONGESTION | socket::MEMORY,
            },
            SocketKind::TcpListener => {
                Question { name: "listening TCP", protocol: TCP, states: LISTEN, extensions: socket::MEMORY }
            }
            SocketKind::Udp => Question {
                name: "UDP",
                protocol: libc::IPPROTO_UDP as u8,
                // What the kernel calls a connected UDP socket, and one that is not.
                states: ESTABLISHED | CLOSE,
                extensions: socket::MEMORY,
            },
        }
    }

    /// Not what is left of a connection that no process has any more: such a stub keeps addresses, cookie and,
    /// in FIN_WAIT2, even the state, but no TCP_INFO (`inet_twsk_diag_fill`).
    fn is_whole(self, socket: &InetSocket) -> bool {
        self != SocketKind::TcpFlow || !socket.tcp_info.is_empty()
    }
}

/// Ports that a list is limited to, by the kernel; 0 is any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ports {
    /// Own end.
    pub local: u16,
    /// The peer's end; no listener and no unconnected socket has one.
    pub remote: u16,
}

/// A sock_diag socket in the network namespace of the thread that opened it.
pub struct SockDiag {
    channel: Channel,
}

impl SockDiag {
    pub fn open() -> Result<Self, Error> {
        let channel = Channel::open(netlink_sys::protocols::NETLINK_SOCK_DIAG);
        channel.map_err(Failure::from).during(|| "open sock_diag".into()).map(|channel| SockDiag { channel })
    }

    /// One that another process has opened in its network namespace and handed over, and uses no more: it tells of the sockets there.
    ///
    /// `None` for a descriptor of anything else.
    pub fn of(fd: OwnedFd) -> Option<Self> {
        let is_one = socket_domain(&fd) == Ok(AddressFamily::NETLINK)
            && socket_protocol(&fd) == Ok(Some(netlink::SOCK_DIAG));
        is_one.then(|| SockDiag { channel: Channel::of(fd) })
    }

    /// All sockets of this kind, IPv4 and IPv6. The kernel walks its whole table for it, a millisecond on a small
    /// host, and each socket that it tells costs some 5 us (measured with 10,000 connections, Linux 6.18).
    /// [`Error::is_absent`] where the kernel lacks the protocol's part of sock_diag.
    pub fn list(&self, kind: SocketKind, ports: Ports) -> Result<Vec<InetSocket>, Error> {
        let mut found = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let id = id::of_ports(ports.local, ports.remote);
            let answers = self.channel.dump(SOCK_DIAG_BY_FAMILY, &request(kind, family as u8, &id));
            let parsed = answers.and_then(|all| all.iter().map(|m| InetSocket::parse(m)).collect());
            let sockets: Vec<InetSocket> =
                parsed.during(|| format!("list {} sockets", kind.question().name))?;
            found.extend(sockets.into_iter().filter(|socket| kind.is_whole(socket)));
        }
        Ok(found)
    }

    /// One TCP connection by the id that a list gave it: a look-up in a hash table, however many sockets there are.
    /// `None` where it is no more.
    pub fn tcp_flow(&self, id: &SocketId) -> Result<Option<InetSocket>, Error> {
        let body = request(SocketKind::TcpFlow, id.family(), &id.encode());
        match self.channel.request_one(SOCK_DIAG_BY_FAMILY, &body) {
            Ok(answer) => {
                let socket = InetSocket::parse(&answer).during(|| format!("look up {id}"))?;
                Ok(Some(socket).filter(|socket| SocketKind::TcpFlow.is_whole(socket)))
            }
            // ESTALE: the addresses are another socket's by now.
            Err(Failure::Kernel { errno: libc::ENOENT | libc::ESTALE, .. }) => Ok(None),
            Err(failure) => Err(failure).during(|| format!("look up {id}")),
        }
    }
}

impl AsFd for SockDiag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// struct inet_diag_req_v2: family, protocol, extensions, padding, states, socket id.
fn request(kind: SocketKind, family: u8, id: &[u8; id::SIZE]) -> Body {
    let mut header = [0u8; 8 + id::SIZE];
    header[0] = family;
    let question = kind.question();
    header[1] = question.protocol;
    header[2] = question.extensions;
    header[4..8].copy_from_slice(&question.states.to_ne_bytes());
    header[8..].copy_from_slice(id);
    Body::new(&header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_connection_is_found_by_port_and_by_id_until_it_is_no_more() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let client = TcpStream::connect(at).unwrap();
        let server = listener.accept().unwrap().0;
        let diag = SockDiag::open().unwrap();
        let to = Ports { local: 0, remote: at.port() };
        let [found] = &diag.list(SocketKind::TcpFlow, to).unwrap()[..] else { panic!("one end is remote") };
        assert_eq!((found.id.local, found.id.remote), (client.local_addr().unwrap(), at));
        assert!(found.inode != 0 && found.tcp_info.len() > 100 && found.congestion.is_some(), "{found:?}");
        assert_eq!(diag.tcp_flow(&found.id).unwrap().map(|again| again.id), Some(found.id));
        let stranger = SocketId { cookie: found.id.cookie ^ 1, ..found.id };
        assert_eq!(diag.tcp_flow(&stranger).unwrap(), None, "another socket of the same ends");
        // The server's end goes first: its stub in FIN_WAIT2 or TIME_WAIT is no connection.
        drop(server);
        drop(client);
        let listed = diag.list(SocketKind::TcpFlow, to).unwrap();
        assert!(listed.iter().all(|socket| socket.inode == 0), "{listed:?}");
    }

    #[test]
    fn one_that_was_handed_over_tells_of_the_namespace_in_which_it_was_opened() {
        let there = || {
            let loopback = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
            assert!(loopback.unwrap().success());
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let diag = SockDiag::open().unwrap();
            (diag.as_fd().try_clone_to_owned().unwrap(), listener, client)
        };
        let Ok((handed, listener, client)) = crate::in_throwaway(there) else {
            return eprintln!("SKIP one_that_was_handed_over: needs root for another namespace");
        };
        let diag = SockDiag::of(handed).unwrap();
        let to = Ports { local: 0, remote: listener.local_addr().unwrap().port() };
        let [found] = &diag.list(SocketKind::TcpFlow, to).unwrap()[..] else { panic!("one end is remote") };
        assert_eq!(found.id.local, client.local_addr().unwrap());
        assert!(SockDiag::of(listener.into()).is_none());
    }

    #[test]
    fn each_kind_is_listed_apart() {
        let (listener, udp) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let diag = SockDiag::open().unwrap();
        let list = |kind, local| diag.list(kind, Ports { local, remote: 0 }).unwrap();
        let port = listener.local_addr().unwrap().port();
        let waiting = &list(SocketKind::TcpListener, port)[0];
        assert_eq!((waiting.id.local, waiting.state), (listener.local_addr().unwrap(), 10));
        assert!(waiting.send_queue > 0, "the backlog");
        assert!(list(SocketKind::TcpFlow, port).is_empty());
        let datagrams = list(SocketKind::Udp, udp.local_addr().unwrap().port());
        assert!(datagrams.iter().any(|socket| socket.id.local == udp.local_addr().unwrap()));
        assert!(datagrams[0].memory.unwrap().receive_limit > 0);
    }
}
