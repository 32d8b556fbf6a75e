//! The identity of a socket: struct inet_diag_sockid.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Size in bytes of struct inet_diag_sockid: ports, addresses, interface, cookie.
pub(super) const SIZE: usize = 48;
/// INET_DIAG_NOCOOKIE in both words of the cookie, which matches any socket with the requested addresses.
const ANY_COOKIE: u64 = u64::MAX;

/// The identity of a socket, unique within this boot. An IPv6 socket with an IPv4 peer has IPv4-mapped IPv6 addresses
/// (RFC 4291, 2.5.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InetSocketId {
    /// Local address and port; unspecified if the socket is not bound.
    pub local: SocketAddr,
    /// Address and port of the peer; unspecified with port 0 if the socket is not connected.
    pub remote: SocketAddr,
    /// Index of the link that the socket is bound to; 0 if it is bound to none.
    pub interface: u32,
    /// The kernel's number for the socket (SO_COOKIE). No other socket gets the same number in this boot.
    pub cookie: u64,
}

impl fmt::Display for InetSocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the socket {} to {}", self.local, self.remote)
    }
}

/// Returns the id for a request that selects sockets only by their ports. The port 0 matches any port.
pub(super) fn of_ports(local: u16, remote: u16) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    bytes[0..2].copy_from_slice(&local.to_be_bytes());
    bytes[2..4].copy_from_slice(&remote.to_be_bytes());
    bytes[40..48].copy_from_slice(&ANY_COOKIE.to_ne_bytes());
    bytes
}

impl InetSocketId {
    pub(super) fn family(&self) -> u8 {
        let family = if self.local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        family as u8
    }

    pub(super) fn encode(&self) -> [u8; SIZE] {
        let mut bytes = of_ports(self.local.port(), self.remote.port());
        for (at, ip) in [(4, self.local.ip()), (20, self.remote.ip())] {
            match ip {
                IpAddr::V4(v4) => bytes[at..at + 4].copy_from_slice(&v4.octets()),
                IpAddr::V6(v6) => bytes[at..at + 16].copy_from_slice(&v6.octets()),
            }
        }
        bytes[36..40].copy_from_slice(&self.interface.to_ne_bytes());
        bytes[40..44].copy_from_slice(&(self.cookie as u32).to_ne_bytes());
        bytes[44..48].copy_from_slice(&((self.cookie >> 32) as u32).to_ne_bytes());
        bytes
    }

    /// Decodes an id. Returns `None` for a family other than IPv4 and IPv6.
    pub(super) fn decode(family: u8, bytes: &[u8; SIZE]) -> Option<Self> {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let interface = word(36);
        let end = |port: usize, ip: usize| {
            let port = u16::from_be_bytes([bytes[port], bytes[port + 1]]);
            address(family, bytes[ip..].first_chunk()?, port, interface)
        };
        let cookie = u64::from(word(40)) | u64::from(word(44)) << 32;
        Some(InetSocketId { local: end(0, 4)?, remote: end(2, 20)?, interface, cookie })
    }
}

fn address(family: u8, ip: &[u8; 16], port: u16, interface: u32) -> Option<SocketAddr> {
    match i32::from(family) {
        libc::AF_INET => Some((Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3]), port).into()),
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(*ip);
            // Only a link-local address has a zone, which is the index of the link (RFC 4007).
            let scope = if ip.is_unicast_link_local() { interface } else { 0 };
            Some(SocketAddrV6::new(ip, port, 0, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for (local, remote) in [
            ("10.0.0.1:80", "10.0.0.2:4096"),
            ("[fe80::1%7]:80", "[fe80::2%7]:9"),
            ("[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.2]:65535"),
            ("0.0.0.0:53", "0.0.0.0:0"),
        ] {
            let id = InetSocketId {
                local: local.parse().unwrap(),
                remote: remote.parse().unwrap(),
                interface: 7,
                cookie: 0x1234_5678_9abc_def0,
            };
            assert_eq!(InetSocketId::decode(id.family(), &id.encode()), Some(id));
        }
        assert_eq!(InetSocketId::decode(1, &[0; SIZE]), None);
    }

    #[test]
    fn the_layout_is_the_kernels() {
        let id = InetSocketId {
            local: "1.2.3.4:258".parse().unwrap(),
            remote: "5.6.7.8:772".parse().unwrap(),
            interface: 0,
            cookie: 1,
        };
        let bytes = id.encode();
        assert_eq!(bytes[..8], [1, 2, 3, 4, 1, 2, 3, 4]);
        assert_eq!(bytes[20..24], [5, 6, 7, 8]);
        assert_eq!(bytes[40..48], [1u32.to_ne_bytes(), 0u32.to_ne_bytes()].concat());
    }
}
