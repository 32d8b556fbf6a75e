//! Link-local IPv6 addresses, which are valid only together with an interface of the host that uses them (RFC 4007).

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The kernel's table of every IPv6 address of this thread's network namespace, with its interface.
const TABLE: &str = "/proc/thread-self/net/if_inet6";
/// `IFA_F_TENTATIVE` of linux/if_addr.h.
const TENTATIVE: u32 = 0x40;
/// `IFA_F_DADFAILED` of linux/if_addr.h: another host has the address.
const FAILED: u32 = 0x08;
const LONGEST_CHECK: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

/// An IP address in its usual notation, with an optional zone if it is link-local: `192.0.2.1`, `fe80::1%eth0`,
/// `fe80::1%3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZonedAddress {
    pub ip: IpAddr,
    /// Name or number of the interface.
    pub zone: Option<String>,
}

/// An IP address with an optional zone, and a port: `192.0.2.1:4711`, `[fe80::1%eth0]:4711`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZonedSocketAddress {
    pub address: ZonedAddress,
    pub port: u16,
}

/// The error for a text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct AddressError(&'static str);

/// Returns true if `ip` is valid only on one link.
pub fn is_link_local(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Returns the socket address of `ip` and `port`. The interface number `zone` is used only if `ip` is link-local.
pub fn at_zone(ip: IpAddr, port: u16, zone: u32) -> SocketAddr {
    match ip {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => SocketAddrV6::new(v6, port, 0, zone).into(),
        other => SocketAddr::new(other, port),
    }
}

impl FromStr for ZonedAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (ip, zone) = match text.split_once('%') {
            Some((ip, zone)) => (ip, Some(zone.to_owned())),
            None => (text, None),
        };
        let ip = ip.parse().map_err(|_| AddressError("an IP address, a link-local one as fe80::1%eth0"))?;
        if zone.is_some() && !is_link_local(&ip) {
            return Err(AddressError("an IP address without a zone: only link-local ones (fe80::) have one"));
        }
        Ok(ZonedAddress { ip, zone })
    }
}

impl FromStr for ZonedSocketAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        const EXPECTED: AddressError =
            AddressError("an address and a port, as 192.0.2.1:4711 or [fe80::1%eth0]:4711");
        let (address, port) = text.rsplit_once(':').ok_or(EXPECTED)?;
        let inner = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let address: ZonedAddress = inner.unwrap_or(address).parse().map_err(|_| EXPECTED)?;
        if address.ip.is_ipv6() != inner.is_some() {
            return Err(EXPECTED);
        }
        Ok(ZonedSocketAddress { address, port: port.parse().map_err(|_| EXPECTED)? })
    }
}

impl fmt::Display for ZonedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.zone {
            Some(zone) => write!(f, "{}%{zone}", self.ip),
            None => self.ip.fmt(f),
        }
    }
}

impl ZonedSocketAddress {
    /// Returns the socket address for this thread's network namespace, with the zone as an interface number.
    ///
    /// # Errors
    /// Returns an error if no interface of the zone's name or number has a link-local address.
    pub fn here(&self) -> io::Result<SocketAddr> {
        let ZonedAddress { ip, zone } = &self.address;
        let Some(zone) = zone else { return Ok(SocketAddr::new(*ip, self.port)) };
        let found =
            zones()?.into_iter().find(|known| known.name == *zone || known.index.to_string() == *zone);
        let found = found.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("no interface {zone} has a link-local address"))
        })?;
        Ok(at_zone(*ip, self.port, found.index))
    }
}

/// Waits while this thread's network namespace still checks `ip` for duplicates (RFC 4862, 5.4). During the check, no
/// socket can be bound to the address. The check takes one to two seconds after a link comes up. The wait ends after
/// three seconds, or once the kernel has found that another host has the address.
pub(crate) fn wait_until_usable(ip: &IpAddr) {
    let IpAddr::V6(ip) = ip else { return };
    let is_tentative = || {
        let known = addresses().unwrap_or_default();
        known.iter().any(|known| known.address == *ip && known.flags & (TENTATIVE | FAILED) == TENTATIVE)
    };
    let end = Instant::now() + LONGEST_CHECK;
    while is_tentative() && Instant::now() < end {
        std::thread::sleep(PAUSE);
    }
}

/// An interface and one of its IPv6 addresses.
pub(crate) struct InterfaceAddress {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) address: Ipv6Addr,
    /// `IFA_F_*` of linux/if_addr.h.
    flags: u32,
}

/// Returns the link-local addresses of this thread's network namespace, with their interfaces.
pub(crate) fn zones() -> io::Result<Vec<InterfaceAddress>> {
    Ok(addresses()?.into_iter().filter(|zone| zone.address.is_unicast_link_local()).collect())
}

fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let table = match std::fs::read_to_string(TABLE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        table => table?,
    };
    Ok(table.lines().filter_map(interface_address).collect())
}

/// Parses a line of the table: address, index, prefix length, scope and flags in hexadecimal; then the name.
fn interface_address(line: &str) -> Option<InterfaceAddress> {
    let mut fields = line.split_ascii_whitespace();
    let address = u128::from_str_radix(fields.next()?, 16).ok()?.into();
    let index = u32::from_str_radix(fields.next()?, 16).ok()?;
    let flags = u32::from_str_radix(fields.nth(2)?, 16).ok()?;
    Some(InterfaceAddress { index, name: fields.next()?.to_owned(), address, flags })
}

/// Returns the addresses to dial for `address`. A link-local address without a zone may be behind any interface that
/// has a link-local address itself, except the interface that has this very address.
pub(crate) fn ways(address: SocketAddr) -> Vec<SocketAddr> {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => {
            let own = zones().unwrap_or_default().into_iter().filter(|zone| zone.address != *v6.ip());
            own.map(|zone| at_zone(address.ip(), address.port(), zone.index)).collect()
        }
        _ => vec![address],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_print() {
        for good in ["192.0.2.1", "2001:db8::1", "fe80::1", "fe80::1%eth0.100", "fe80::1%3"] {
            assert_eq!(good.parse::<ZonedAddress>().unwrap().to_string(), good);
        }
        for bad in ["", "eth0", "192.0.2.1%eth0", "2001:db8::1%eth0", "fe80::1/64"] {
            assert!(bad.parse::<ZonedAddress>().is_err(), "{bad}");
        }
        for good in ["192.0.2.1:4711", "[fe80::1%eth0]:4711", "[::]:0"] {
            assert!(good.parse::<ZonedSocketAddress>().is_ok(), "{good}");
        }
        for bad in
            ["192.0.2.1", "fe80::1%eth0:1", "[192.0.2.1]:1", "[fe80::1%eth0]", "[::]:65536", "[::1%lo]:1"]
        {
            assert!(bad.parse::<ZonedSocketAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_kernels_table_is_read() {
        let line = "fe80000000000000409 8ccfffeac2608".replace(' ', "") + " 1f 40 20 80       va";
        let zone = interface_address(&line).unwrap();
        assert_eq!((zone.index, zone.name.as_str(), zone.flags), (31, "va", 0x80));
        assert_eq!(zone.address, "fe80::4098:ccff:feac:2608".parse::<Ipv6Addr>().unwrap());
        assert!(interface_address("").is_none() && interface_address("xyz 1").is_none());
    }
}
