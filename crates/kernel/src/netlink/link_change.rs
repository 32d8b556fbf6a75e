//! Changes one property of a network interface.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::netlink::attr::MessageBody;
use crate::netlink::error::{Error, FailureContext};
use crate::netlink::hardware_address::HardwareAddress;
use crate::netlink::link::{header, ifla};
use crate::netlink::rtnl::{Rtnl, check_name};

#[derive(Debug, Clone)]
pub enum LinkChange<'a> {
    Mtu(u32),
    TxQueueLen(u32),
    Up(bool),
    /// Largest packet that the stack builds for later segmentation (GSO, TSO), in bytes.
    GsoMaxSize(u32),
    /// Largest packet built by GRO, in bytes.
    GroMaxSize(u32),
    /// Largest IPv4 packet that the stack builds for later segmentation (GSO, TSO), in bytes.
    GsoIpv4MaxSize(u32),
    /// Largest IPv4 packet built by GRO, in bytes.
    GroIpv4MaxSize(u32),
    /// Moves the link into the network namespace behind this descriptor.
    Netns(BorrowedFd<'a>),
    /// Renames the link. On kernels before 6.2 the link must be down.
    Name(&'a str),
    /// Adds the link to the bridge or bond with this index; 0 removes it.
    Master(u32),
    Mac(HardwareAddress),
    /// Whether the kernel creates an IPv6 link-local address when the link comes up.
    Ipv6LinkLocal(bool),
}

/// Returns the content of IFLA_AF_SPEC: AF_INET6 { IFLA_INET6_ADDR_GEN_MODE }, EUI-64 or none.
fn address_generation(on: bool) -> MessageBody {
    const ADDR_GEN_MODE: u16 = 8;
    const EUI64: u8 = 0;
    const NONE: u8 = 1;
    let mode = MessageBody::default().u8(ADDR_GEN_MODE, if on { EUI64 } else { NONE });
    MessageBody::default().nest(libc::AF_INET6 as u16, mode)
}

impl LinkChange<'_> {
    /// Returns the property's name, the new value as text, and the request for the link with this index.
    fn request(&self, index: u32) -> (&'static str, String, MessageBody) {
        const UP: u32 = libc::IFF_UP as u32;
        let same = || header(index, 0, 0);
        let number = |property, attribute, n: &u32| (property, n.to_string(), same().u32(attribute, *n));
        match self {
            LinkChange::Mtu(n) => number("mtu", ifla::MTU, n),
            LinkChange::TxQueueLen(n) => number("txqueuelen", ifla::TXQLEN, n),
            LinkChange::GsoMaxSize(n) => number("gso_max_size", ifla::GSO_MAX_SIZE, n),
            LinkChange::GroMaxSize(n) => number("gro_max_size", ifla::GRO_MAX_SIZE, n),
            LinkChange::GsoIpv4MaxSize(n) => number("gso_ipv4_max_size", ifla::GSO_IPV4_MAX_SIZE, n),
            LinkChange::GroIpv4MaxSize(n) => number("gro_ipv4_max_size", ifla::GRO_IPV4_MAX_SIZE, n),
            LinkChange::Up(true) => ("state", "up".into(), header(index, UP, UP)),
            LinkChange::Up(false) => ("state", "down".into(), header(index, 0, UP)),
            LinkChange::Netns(fd) => {
                let body = same().u32(ifla::NET_NS_FD, fd.as_raw_fd().cast_unsigned());
                ("network namespace", "another".into(), body)
            }
            LinkChange::Name(name) => ("name", (*name).to_owned(), same().string(ifla::IFNAME, name)),
            LinkChange::Master(master) => {
                ("master", format!("link number {master}"), same().u32(ifla::MASTER, *master))
            }
            LinkChange::Mac(mac) => ("hardware address", mac.to_string(), same().attr(ifla::ADDRESS, &mac.0)),
            LinkChange::Ipv6LinkLocal(on) => {
                let value = if *on { "automatic" } else { "none" };
                ("IPv6 link-local address", value.into(), same().nest(ifla::AF_SPEC, address_generation(*on)))
            }
        }
    }
}

impl Rtnl {
    /// Changes one property of a link. The kernel may do less than requested without an error, so read the value back.
    pub fn set_link(&self, device: &str, change: LinkChange<'_>) -> Result<(), Error> {
        if let LinkChange::Name(name) = change {
            check_name(name)?;
        }
        let index = self.index_of(device)?;
        let (property, value, body) = change.request(index);
        let done = self.channel.request(libc::RTM_SETLINK, 0, &body);
        done.map(drop).during(|| format!("set {property} of {device} to {value}"))
    }
}
