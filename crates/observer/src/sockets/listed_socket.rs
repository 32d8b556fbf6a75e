//! A socket that the kernel listed.

use std::net::SocketAddr;

use landspeed_kernel::netlink::{InetSocket, PortFilter, SockDiag, SocketKind};
use landspeed_record::{FlowKey, IpProtocol};

use crate::Error;
use crate::tcp_info::raw::TcpInfo;

/// A socket that sock_diag returned, and its protocol.
#[derive(Debug, Clone)]
pub(crate) struct ListedSocket {
    pub(crate) protocol: IpProtocol,
    pub(crate) socket: InetSocket,
}

impl ListedSocket {
    pub(crate) fn new(kind: SocketKind, socket: InetSocket) -> Self {
        let protocol = match kind {
            SocketKind::TcpFlow | SocketKind::TcpListener => IpProtocol::TCP,
            SocketKind::Udp => IpProtocol::UDP,
        };
        ListedSocket { protocol, socket }
    }

    pub(crate) fn cookie(&self) -> u64 {
        self.socket.id.cookie
    }

    pub(crate) fn key(&self) -> FlowKey {
        FlowKey {
            protocol: self.protocol,
            local: canonical(self.socket.id.local),
            remote: canonical(self.socket.id.remote),
        }
    }

    /// Returns the payload bytes acknowledged and received since the connection began; zero for UDP, whose sockets
    /// count no bytes.
    pub(crate) fn moved_bytes(&self) -> u64 {
        let info = TcpInfo::from_bytes(&self.socket.tcp_info);
        info.bytes_acked.saturating_add(info.bytes_received)
    }
}

/// Lists the TCP connections and UDP sockets that match one of `ports`. If the kernel has no sock_diag for UDP, lists
/// no UDP sockets and adds a note.
pub(super) fn list(
    diag: &SockDiag,
    ports: &[PortFilter],
    notes: &mut Vec<String>,
) -> Result<Vec<ListedSocket>, Error> {
    let mut found = Vec::new();
    for kind in [SocketKind::TcpFlow, SocketKind::Udp] {
        for ports in ports {
            match diag.list(kind, *ports) {
                Ok(sockets) => {
                    found.extend(sockets.into_iter().map(|socket| ListedSocket::new(kind, socket)))
                }
                Err(error) if kind == SocketKind::Udp && error.is_absent() => {
                    let note =
                        format!("UDP sockets: {error}: this kernel lacks udp_diag (CONFIG_INET_UDP_DIAG)");
                    if !notes.contains(&note) {
                        notes.push(note);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(found)
}

/// Converts an IPv4-mapped IPv6 address to IPv4; returns other addresses unchanged.
pub(crate) fn canonical(end: SocketAddr) -> SocketAddr {
    match end {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => {
            SocketAddr::new(v6.ip().to_canonical(), v6.port())
        }
        end => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_is_shown_as_ipv4_whatever_the_socket() {
        let shown = |end: &str| canonical(end.parse().unwrap()).to_string();
        assert_eq!(shown("[::ffff:10.0.0.1]:80"), "10.0.0.1:80");
        assert_eq!(shown("[fe80::1%3]:80"), "[fe80::1%3]:80", "the scope stays");
        assert_eq!(shown("[::]:80"), "[::]:80");
    }
}
