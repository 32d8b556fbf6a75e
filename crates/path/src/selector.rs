//! Selects the connections that a path carries.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::socket::plain;

/// A selection of connections by ports and networks. A connection is selected if one of these choices admits it, or if
/// there are no choices. Other connections stay on TCP, and are not counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectionSelector(Vec<PortOrNetwork>);

/// A port or a network, parsed from "6379", "10.0.0.0/8" or "fd00::1".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortOrNetwork {
    /// The port that the server listens on.
    Port(u16),
    /// The peer's network: its first address, and the prefix length in bits.
    Network(IpAddr, u8),
}

impl ConnectionSelector {
    /// Creates a selection of the connections that at least one of `choices` admits; of all connections if there are no
    /// choices.
    pub fn new(choices: Vec<PortOrNetwork>) -> Self {
        ConnectionSelector(choices)
    }

    /// Returns true if all connections are admitted.
    pub(crate) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a connection with `peer` is admitted; `listening` is the address that the server listens on.
    pub(crate) fn admits(&self, peer: SocketAddr, listening: SocketAddr) -> bool {
        let admits = |choice: &PortOrNetwork| match *choice {
            PortOrNetwork::Port(port) => listening.port() == port,
            PortOrNetwork::Network(first, bits) => network(plain(peer).ip(), bits) == Some(first),
        };
        self.is_all() || self.0.iter().any(admits)
    }

    /// Returns true if a connection that arrives at this listening address may be admitted. Its peer is not known yet.
    pub(crate) fn may_admit(&self, listening: SocketAddr) -> bool {
        let may = |choice: &PortOrNetwork| match *choice {
            PortOrNetwork::Port(port) => listening.port() == port,
            PortOrNetwork::Network(..) => true,
        };
        self.is_all() || self.0.iter().any(may)
    }
}

/// Returns the first address of the network of `address` with a prefix of `bits`; `None` if the address has fewer
/// bits.
fn network(address: IpAddr, bits: u8) -> Option<IpAddr> {
    let bits = u32::from(bits);
    Some(match address {
        IpAddr::V4(v4) => {
            IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0)).into())
        }
        IpAddr::V6(v6) => {
            IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0)).into())
        }
    })
}

/// The reason why a text is neither a port nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortOrNetworkError {
    /// The text is neither a number nor an address nor a network.
    #[error("this is neither a port (6379) nor a network (10.0.0.0/8, fd00::/8) nor an address (10.0.0.1)")]
    Neither,
    /// The number is not a port.
    #[error("a port is a number from 1 to 65535")]
    Port,
    /// The prefix length is not a number from 0 to the length of the address in bits. The value is that length.
    #[error("after '/' comes how many bits the addresses of the network have in common: 0 to {0}")]
    Bits(u32),
    /// The address is not the first one of its network. The values are that first address and the prefix length in
    /// bits.
    #[error("this is an address in the network {0}/{1}: write {0}/{1}, or the address alone")]
    Inside(IpAddr, u8),
}

impl FromStr for PortOrNetwork {
    type Err = PortOrNetworkError;

    fn from_str(text: &str) -> Result<Self, PortOrNetworkError> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let port = text.parse().ok().filter(|port| *port != 0);
            return port.map(PortOrNetwork::Port).ok_or(PortOrNetworkError::Port);
        }
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| PortOrNetworkError::Neither)?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(all), |bits| bits.parse().ok().filter(|bits| *bits <= all));
        let bits = bits.ok_or(PortOrNetworkError::Bits(all.into()))?;
        match network(address, bits) {
            Some(first) if first == address => Ok(unmapped(address, bits)),
            first => Err(PortOrNetworkError::Inside(first.unwrap_or(address), bits)),
        }
    }
}

/// Returns a network as a choice. A network of IPv4-mapped IPv6 addresses becomes a network of IPv4 addresses.
fn unmapped(first: IpAddr, bits: u8) -> PortOrNetwork {
    match (plain(SocketAddr::new(first, 0)).ip(), bits.checked_sub(96)) {
        (IpAddr::V4(v4), Some(bits)) if first.is_ipv6() => PortOrNetwork::Network(v4.into(), bits),
        _ => PortOrNetwork::Network(first, bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(choices: &[&str]) -> ConnectionSelector {
        ConnectionSelector::new(choices.iter().map(|text| text.parse().expect(text)).collect())
    }

    fn admits(choices: &[&str], peer: &str, listening: &str) -> bool {
        only(choices).admits(peer.parse().unwrap(), listening.parse().unwrap())
    }

    #[test]
    fn a_port_is_the_one_that_the_server_listens_on() {
        assert!(admits(&["6379"], "10.0.0.1:6379", "10.0.0.1:6379"));
        assert!(admits(&["80", "6379"], "10.0.0.1:45000", "[::]:6379"));
        assert!(!admits(&["6379"], "10.0.0.1:6379", "10.0.0.2:80"));
    }

    #[test]
    fn a_network_is_the_one_that_the_peer_is_in() {
        let with = |choice: &str, peer: &str| admits(&[choice], peer, "10.9.9.9:80");
        assert!(with("10.0.0.0/8", "10.255.0.1:9") && !with("10.0.0.0/8", "11.0.0.1:9"));
        assert!(with("10.0.0.1", "10.0.0.1:9") && !with("10.0.0.1", "10.0.0.2:9"));
        assert!(with("0.0.0.0/0", "1.2.3.4:9") && !with("0.0.0.0/0", "[fd00::1]:9"));
        assert!(with("fd00::/8", "[fdff::1]:9") && !with("fd00::/8", "[fe80::1]:9"));
        assert!(with("::/0", "[fe80::1%2]:9") && with("fd00::1", "[fd00::1]:9"));
    }

    #[test]
    fn an_address_that_is_mapped_into_ipv6_is_one_of_ipv4() {
        let with = |choice: &str, peer: &str| admits(&[choice], peer, "10.9.9.9:80");
        assert!(with("10.0.0.0/8", "[::ffff:10.1.2.3]:9"));
        assert!(with("::ffff:10.0.0.0/104", "10.1.2.3:9") && with("::ffff:10.0.0.1", "10.0.0.1:9"));
        assert!(!with("::ffff:10.0.0.0/104", "11.1.2.3:9"));
    }

    #[test]
    fn alternatives_admit_a_connection_if_one_does_and_no_choice_admits_all() {
        assert!(admits(&["80", "10.0.0.0/8"], "10.0.0.1:9", "10.0.0.2:9"));
        assert!(!admits(&["80", "10.0.0.0/8"], "11.0.0.1:9", "10.0.0.2:9"));
        assert!(admits(&[], "11.0.0.1:9", "10.0.0.2:9"));
    }

    #[test]
    fn before_the_peer_is_known_its_network_may_be_any() {
        let may = |choices: &[&str]| only(choices).may_admit("10.0.0.1:80".parse().unwrap());
        assert!(may(&[]) && may(&["80"]) && may(&["fd00::/8"]) && !may(&["81"]));
    }

    #[test]
    fn an_invalid_choice_is_refused_with_the_valid_ones() {
        let says = |text: &str| text.parse::<PortOrNetwork>().unwrap_err().to_string();
        for text in ["", "http", "10.0.0/8", "10.0.0.1:80", "-1", "/8"] {
            assert!(says(text).starts_with("this is neither a port (6379)"), "{text}");
        }
        assert_eq!([says("0"), says("65536")], ["a port is a number from 1 to 65535"; 2]);
        assert!(says("10.0.0.0/33").ends_with("0 to 32") && says("::/129").ends_with("0 to 128"));
        assert!(says("10.0.0.0/").ends_with("0 to 32") && says("10.0.0.0/x").ends_with("0 to 32"));
        assert_eq!(
            says("10.0.0.1/8"),
            "this is an address in the network 10.0.0.0/8: write 10.0.0.0/8, or the address alone"
        );
    }
}
