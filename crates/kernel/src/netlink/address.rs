//! IP addresses of links, with all properties that are needed to restore an address exactly.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::netlink::attr::{Attrs, MessageBody, u32_at};
use crate::netlink::channel::flag;
use crate::netlink::error::{Error, FailureContext, RequestFailure};
use crate::netlink::rtnl::Rtnl;

/// Size of struct ifaddrmsg in bytes.
const HEADER: usize = 8;

/// `IFA_*` of linux/if_addr.h.
mod ifa {
    pub(super) const ADDRESS: u16 = 1;
    pub(super) const LOCAL: u16 = 2;
    pub(super) const LABEL: u16 = 3;
    pub(super) const BROADCAST: u16 = 4;
    pub(super) const CACHEINFO: u16 = 6;
    pub(super) const FLAGS: u16 = 8;
    pub(super) const RT_PRIORITY: u16 = 9;
    pub(super) const PROTO: u16 = 11;
}

/// `IFA_F_*` flags of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AddressFlags(pub u32);

impl AddressFlags {
    /// IPv6: a temporary (privacy) address, which only the kernel can create. IPv4: a secondary address, that is, not
    /// the first address of its prefix on the link.
    pub(crate) const TEMPORARY: Self = AddressFlags(0x01);
    /// The kernel does not run duplicate address detection, so the address is usable immediately.
    pub const NODAD: Self = AddressFlags(0x02);
    pub const DADFAILED: Self = AddressFlags(0x08);
    /// The address is past its preferred lifetime.
    pub(crate) const DEPRECATED: Self = AddressFlags(0x20);
    /// Duplicate address detection is in progress.
    pub const TENTATIVE: Self = AddressFlags(0x40);
    /// The flags of temporary states. Only the kernel sets them.
    const STATE: u32 = Self::DADFAILED.0 | Self::DEPRECATED.0 | Self::TENTATIVE.0 | 0x04;

    /// Returns true if all flags of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for AddressFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        AddressFlags(self.0 | other.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceAddress {
    pub index: u32,
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub prefix_len: u8,
    /// `RT_SCOPE_*`: 0 global, 253 link, 254 host.
    pub scope: u8,
    pub flags: AddressFlags,
    /// Address of the other end of a point-to-point link; `None` on other links. If set, the prefix is that of this
    /// address.
    pub peer: Option<IpAddr>,
    /// IPv4 broadcast address.
    pub broadcast: Option<IpAddr>,
    /// IPv4 label ("eth0:1").
    pub label: Option<String>,
    /// Remaining lifetime in seconds; `None` if unlimited.
    pub valid_s: Option<u32>,
    /// Remaining time in seconds during which new connections may use the address; `None` if unlimited.
    pub preferred_s: Option<u32>,
    /// Metric of the route to the prefix; `None` for the kernel's default.
    pub metric: Option<u32>,
    /// Origin of the address (`IFAPROT_*`, Linux 5.18): 1 loopback, 2 router advertisement, 3 link-local.
    pub proto: Option<u8>,
}

impl InterfaceAddress {
    /// Returns a permanent address with global scope that is usable immediately (IPv6: without duplicate address
    /// detection).
    pub fn new(index: u32, address: IpAddr, prefix_len: u8) -> Self {
        let broadcast = match address {
            IpAddr::V4(v4) if prefix_len < 31 => {
                let hosts = u32::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
                Some(IpAddr::from((u32::from(v4) | hosts).to_be_bytes()))
            }
            _ => None,
        };
        InterfaceAddress {
            index,
            address,
            prefix_len,
            scope: libc::RT_SCOPE_UNIVERSE,
            flags: if address.is_ipv6() { AddressFlags::NODAD } else { AddressFlags::default() },
            peer: None,
            broadcast,
            label: None,
            valid_s: None,
            preferred_s: None,
            metric: None,
            proto: None,
        }
    }

    /// Returns true for a temporary (privacy) IPv6 address. On IPv4 the same flag means "secondary".
    pub fn is_temporary(&self) -> bool {
        self.address.is_ipv6() && self.flags.contains(AddressFlags::TEMPORARY)
    }

    /// Returns true if both addresses are equal except for the remaining time of limited lifetimes and the states that
    /// the kernel sets, such as duplicate address detection in progress. Of labels, only the part after the interface's
    /// name is compared, because the kernel changes this name when the interface is renamed (inetdev_changename in
    /// net/ipv4/devinet.c).
    pub fn same_as(&self, other: &InterfaceAddress) -> bool {
        let timeless = |a: &InterfaceAddress| InterfaceAddress {
            flags: AddressFlags(a.flags.0 & !AddressFlags::STATE),
            valid_s: a.valid_s.map(|_| 0),
            preferred_s: a.preferred_s.map(|_| 0),
            label: a.label.as_ref().and_then(|label| Some(label.split_once(':')?.1.to_owned())),
            ..a.clone()
        };
        timeless(self) == timeless(other)
    }

    fn parse(message: &[u8]) -> Result<Self, RequestFailure> {
        let short = || RequestFailure::Malformed("an address message without its address".into());
        let &[_, prefix_len, flags, scope, ..] = message else { return Err(short()) };
        let attrs = Attrs::after(message, HEADER);
        let (address, local) = (attrs.ip(ifa::ADDRESS), attrs.ip(ifa::LOCAL));
        let own = local.or(address).ok_or_else(short)?;
        let lifetime = |at| u32_at(attrs.get(ifa::CACHEINFO)?, at).filter(|s| *s != u32::MAX);
        Ok(InterfaceAddress {
            index: u32_at(message, 4).ok_or_else(short)?,
            address: own,
            prefix_len,
            scope,
            flags: AddressFlags(attrs.u32(ifa::FLAGS).unwrap_or(flags.into())),
            peer: address.filter(|a| *a != own),
            broadcast: attrs.ip(ifa::BROADCAST),
            label: attrs.string(ifa::LABEL),
            preferred_s: lifetime(0),
            valid_s: lifetime(4),
            metric: attrs.u32(ifa::RT_PRIORITY).filter(|m| *m != 0),
            proto: attrs.u8(ifa::PROTO).filter(|p| *p != 0),
        })
    }

    fn header(&self) -> MessageBody {
        let mut header = [0u8; HEADER];
        header[0] = family(self.address);
        header[1] = self.prefix_len;
        header[3] = self.scope;
        header[4..].copy_from_slice(&self.index.to_ne_bytes());
        MessageBody::new(&header)
    }

    fn key(&self) -> MessageBody {
        self.header().ip(ifa::LOCAL, self.address).ip(ifa::ADDRESS, self.peer.unwrap_or(self.address))
    }

    fn whole(&self) -> MessageBody {
        let mut lifetimes = [0u8; 16];
        lifetimes[..4].copy_from_slice(&self.preferred_s.unwrap_or(u32::MAX).to_ne_bytes());
        lifetimes[4..8].copy_from_slice(&self.valid_s.unwrap_or(u32::MAX).to_ne_bytes());
        self.key()
            .u32(ifa::FLAGS, self.flags.0 & !AddressFlags::STATE)
            .attr(ifa::CACHEINFO, &lifetimes)
            .with(self.broadcast, |b, ip| b.ip(ifa::BROADCAST, ip))
            .with(self.label.as_ref(), |b, label| b.string(ifa::LABEL, label))
            .with(self.metric, |b, metric| b.u32(ifa::RT_PRIORITY, metric))
            .with(self.proto, |b, proto| b.u8(ifa::PROTO, proto))
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

/// Returns `AF_INET` or `AF_INET6`.
pub(crate) fn family(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 }
}

impl Rtnl {
    /// Returns the IPv4 and IPv6 addresses of one link in the kernel's order. The first IPv4 address of each prefix is
    /// the primary address.
    pub fn addresses(&self, index: u32) -> Result<Vec<InterfaceAddress>, Error> {
        let mut header = [0u8; HEADER];
        header[4..].copy_from_slice(&index.to_ne_bytes());
        self.addresses_under(&header).during(|| format!("list addresses of link number {index}"))
    }

    pub fn all_addresses(&self) -> Result<Vec<InterfaceAddress>, Error> {
        self.addresses_under(&[0; HEADER]).during(|| "list addresses".into())
    }

    /// Adds an address.
    ///
    /// # Errors
    /// Returns an error with [`Error::is_present`] if the link already has the address.
    pub fn add_address(&self, address: &InterfaceAddress) -> Result<(), Error> {
        self.new_address(address, flag::EXCL, "add")
    }

    /// Adds an address. If the link already has the address, sets its flags and lifetimes.
    pub fn replace_address(&self, address: &InterfaceAddress) -> Result<(), Error> {
        self.new_address(address, flag::REPLACE, "put back")
    }

    /// Removes an address.
    ///
    /// # Errors
    /// Returns an error with [`Error::is_absent`] if the link does not have the address.
    pub fn delete_address(&self, address: &InterfaceAddress) -> Result<(), Error> {
        let done = self.channel.request(libc::RTM_DELADDR, 0, &address.key());
        done.map(drop).during(|| format!("delete address {address} of link number {}", address.index))
    }

    fn addresses_under(&self, header: &[u8]) -> Result<Vec<InterfaceAddress>, RequestFailure> {
        let answers = self.channel.dump(libc::RTM_GETADDR, &MessageBody::new(header))?;
        answers.iter().map(|m| InterfaceAddress::parse(m)).collect()
    }

    fn new_address(&self, address: &InterfaceAddress, how: u16, verb: &str) -> Result<(), Error> {
        let done = self.channel.request(libc::RTM_NEWADDR, flag::CREATE | how, &address.whole());
        done.map(drop).during(|| format!("{verb} address {address} on link number {}", address.index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_the_same() {
        let mut address = InterfaceAddress::new(7, "198.18.0.1".parse().unwrap(), 24);
        address.label = Some("eth0:1".into());
        address.valid_s = Some(60);
        address.preferred_s = Some(30);
        address.flags = AddressFlags::NODAD;
        assert_eq!(InterfaceAddress::parse(address.whole().bytes()).unwrap(), address);
        assert_eq!(address.broadcast, Some("198.18.0.255".parse().unwrap()));

        let peer = InterfaceAddress {
            peer: Some("fd00::2".parse().unwrap()),
            ..InterfaceAddress::new(7, "fd00::1".parse().unwrap(), 128)
        };
        assert_eq!(InterfaceAddress::parse(peer.whole().bytes()).unwrap(), peer);
        for end in 0..peer.whole().bytes().len() {
            let _ = InterfaceAddress::parse(&peer.whole().bytes()[..end]);
        }
    }

    #[test]
    fn running_lifetimes_make_no_difference() {
        let address = InterfaceAddress {
            valid_s: Some(60),
            ..InterfaceAddress::new(7, "fd00::1".parse().unwrap(), 64)
        };
        let later = InterfaceAddress {
            valid_s: Some(50),
            flags: address.flags | AddressFlags::TENTATIVE,
            ..address.clone()
        };
        assert!(address.same_as(&later));
        assert!(!address.same_as(&InterfaceAddress { valid_s: None, ..address.clone() }));
        assert!(!address.same_as(&InterfaceAddress { scope: 253, ..address.clone() }));
    }

    #[test]
    fn a_label_follows_the_name_of_its_interface() {
        let labelled = |label: &str| InterfaceAddress {
            label: Some(label.into()),
            ..InterfaceAddress::new(7, "198.18.0.1".parse().unwrap(), 24)
        };
        assert!(labelled("eth0").same_as(&labelled("lan0")));
        assert!(labelled("eth0:1").same_as(&labelled("lan0:1")));
        assert!(!labelled("eth0:1").same_as(&labelled("eth0:2")));
        assert!(!labelled("eth0:1").same_as(&labelled("eth0")));
    }
}
