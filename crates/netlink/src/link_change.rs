//! Network interfaces: one change at a time.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::attr::Body;
use crate::error::{During, Error};
use crate::hardware_address::HardwareAddress;
use crate::link::{header, ifla};
use crate::rtnl::{Rtnl, check_name};

#[derive(Debug, Clone)]
pub enum LinkChange<'a> {
    Mtu(u32),
    TxQueueLen(u32),
    Up(bool),
    /// Largest packet handed to segmentation, in bytes.
    GsoMaxSize(u32),
    /// Largest packet built by GRO, in bytes.
    GroMaxSize(u32),
    /// As `GsoMaxSize` for IPv4.
    GsoIpv4MaxSize(u32),
    /// As `GroMaxSize` for IPv4.
    GroIpv4MaxSize(u32),
    /// Into the network namespace behind this descriptor.
    Netns(BorrowedFd<'a>),
    /// Another name; the link must be down on kernels before 6.2.
    Name(&'a str),
    /// Into the bridge or bond with this index; 0 takes it out.
    Master(u32),
    Mac(HardwareAddress),
    /// Whether the kernel makes an IPv6 link-local address when the link comes up.
    Ipv6LinkLocal(bool),
}

impl LinkChange<'_> {
    /// "set mtu of eth0 to 9000".
    fn on(&self, device: &str) -> String {
        let (property, value) = self.words();
        format!("set {property} of {device} to {value}")
    }

    fn words(&self) -> (&'static str, String) {
        let switch = |on: bool, yes: &str, no: &str| if on { yes.to_owned() } else { no.to_owned() };
        match self {
            LinkChange::Mtu(n) => ("mtu", n.to_string()),
            LinkChange::TxQueueLen(n) => ("txqueuelen", n.to_string()),
            LinkChange::Up(up) => ("state", switch(*up, "up", "down")),
            LinkChange::GsoMaxSize(n) => ("gso_max_size", n.to_string()),
            LinkChange::GroMaxSize(n) => ("gro_max_size", n.to_string()),
            LinkChange::GsoIpv4MaxSize(n) => ("gso_ipv4_max_size", n.to_string()),
            LinkChange::GroIpv4MaxSize(n) => ("gro_ipv4_max_size", n.to_string()),
            LinkChange::Netns(_) => ("network namespace", "another".to_owned()),
            LinkChange::Name(name) => ("name", (*name).to_owned()),
            LinkChange::Master(index) => ("master", format!("link number {index}")),
            LinkChange::Mac(mac) => ("hardware address", mac.to_string()),
            LinkChange::Ipv6LinkLocal(on) => ("IPv6 link-local address", switch(*on, "automatic", "none")),
        }
    }
}

/// IFLA_AF_SPEC { AF_INET6 { IFLA_INET6_ADDR_GEN_MODE } }: EUI-64 or none.
fn address_generation(on: bool) -> Body {
    const ADDR_GEN_MODE: u16 = 8;
    const EUI64: u8 = 0;
    const NONE: u8 = 1;
    let mode = Body::default().u8(ADDR_GEN_MODE, if on { EUI64 } else { NONE });
    Body::default().nest(libc::AF_INET6 as u16, mode)
}

impl LinkChange<'_> {
    fn body(&self, index: u32) -> Body {
        const UP: u32 = libc::IFF_UP as u32;
        let same = || header(index, 0, 0);
        match self {
            LinkChange::Mtu(n) => same().u32(ifla::MTU, *n),
            LinkChange::TxQueueLen(n) => same().u32(ifla::TXQLEN, *n),
            LinkChange::Up(up) => header(index, if *up { UP } else { 0 }, UP),
            LinkChange::GsoMaxSize(n) => same().u32(ifla::GSO_MAX_SIZE, *n),
            LinkChange::GroMaxSize(n) => same().u32(ifla::GRO_MAX_SIZE, *n),
            LinkChange::GsoIpv4MaxSize(n) => same().u32(ifla::GSO_IPV4_MAX_SIZE, *n),
            LinkChange::GroIpv4MaxSize(n) => same().u32(ifla::GRO_IPV4_MAX_SIZE, *n),
            LinkChange::Netns(fd) => same().u32(ifla::NET_NS_FD, fd.as_raw_fd().cast_unsigned()),
            LinkChange::Name(name) => same().string(ifla::IFNAME, name),
            LinkChange::Master(master) => same().u32(ifla::MASTER, *master),
            LinkChange::Mac(mac) => same().attr(ifla::ADDRESS, &mac.0),
            LinkChange::Ipv6LinkLocal(on) => same().nest(ifla::AF_SPEC, address_generation(*on)),
        }
    }
}

impl Rtnl {
    /// Makes one change to a link. The kernel may do less than asked without saying so: read it back.
    pub fn set_link(&self, device: &str, change: LinkChange<'_>) -> Result<(), Error> {
        if let LinkChange::Name(name) = change {
            check_name(name)?;
        }
        let index = self.index_of(device)?;
        let done = self.channel.request(libc::RTM_SETLINK, 0, &change.body(index));
        done.map(drop).during(|| change.on(device))
    }
}
