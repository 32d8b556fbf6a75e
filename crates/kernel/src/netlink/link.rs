//! Network interfaces: reading their current state.

use crate::netlink::attr::{Attrs, MessageBody, u32_at, u64_at};
use crate::netlink::error::{Error, FailureContext, RequestFailure};
use crate::netlink::hardware_address::HardwareAddress;
use crate::netlink::rtnl::{Rtnl, check_name};

/// Size of struct ifinfomsg in bytes.
pub(crate) const HEADER: usize = 16;

/// The `IFLA_*` numbers of linux/if_link.h that this crate uses.
pub(crate) mod ifla {
    pub(crate) const ADDRESS: u16 = 1;
    pub(crate) const IFNAME: u16 = 3;
    pub(crate) const MTU: u16 = 4;
    pub(crate) const LINK: u16 = 5;
    pub(crate) const QDISC: u16 = 6;
    pub(crate) const MASTER: u16 = 10;
    pub(crate) const TXQLEN: u16 = 13;
    pub(crate) const LINKINFO: u16 = 18;
    pub(crate) const STATS64: u16 = 23;
    pub(crate) const AF_SPEC: u16 = 26;
    pub(crate) const NET_NS_FD: u16 = 28;
    pub(crate) const NUM_TX_QUEUES: u16 = 31;
    pub(crate) const NUM_RX_QUEUES: u16 = 32;
    pub(crate) const CARRIER: u16 = 33;
    pub(crate) const CARRIER_CHANGES: u16 = 35;
    pub(crate) const LINK_NETNSID: u16 = 37;
    pub(crate) const GSO_MAX_SIZE: u16 = 41;
    pub(crate) const NEW_NETNSID: u16 = 45;
    pub(crate) const NEW_IFINDEX: u16 = 49;
    pub(crate) const MIN_MTU: u16 = 50;
    pub(crate) const MAX_MTU: u16 = 51;
    pub(crate) const PERM_ADDRESS: u16 = 54;
    pub(crate) const PARENT_DEV_NAME: u16 = 56;
    pub(crate) const GRO_MAX_SIZE: u16 = 58;
    pub(crate) const TSO_MAX_SIZE: u16 = 59;
    pub(crate) const GSO_IPV4_MAX_SIZE: u16 = 63;
    pub(crate) const GRO_IPV4_MAX_SIZE: u16 = 64;
    pub(crate) const INFO_KIND: u16 = 1;
    pub(crate) const INFO_DATA: u16 = 2;
}

/// A network interface as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// Index within its namespace.
    pub index: u32,
    pub name: String,
    /// Kind: "veth", "bridge", ...; `None` for physical devices and the loopback.
    pub kind: Option<String>,
    /// `IFF_*` flags.
    pub flags: u32,
    pub mtu: u32,
    /// Lowest and highest MTU in bytes; zero if the driver reports none.
    pub mtu_range: (u32, u32),
    pub txqlen: u32,
    pub mac: HardwareAddress,
    /// The permanent hardware address, which identifies a physical device even if its name changes; `None` for virtual
    /// devices.
    pub permanent_mac: Option<HardwareAddress>,
    /// True if the link is administratively up.
    pub up: bool,
    /// True if the link has a carrier.
    pub carrier: bool,
    /// Number of times that the carrier came or went since the device was created.
    pub carrier_changes: u32,
    /// Number of allocated receive queues.
    pub rx_queues: u32,
    /// Number of allocated transmit queues.
    pub tx_queues: u32,
    /// Largest packet that the stack builds for later segmentation (GSO, TSO), in bytes.
    pub gso_max_size: u32,
    /// Largest packet built by GRO, in bytes; `None` before Linux 5.19.
    pub gro_max_size: Option<u32>,
    /// Largest IPv4 packet that the stack builds for later segmentation (GSO, TSO), in bytes. It may exceed 64 KiB (BIG
    /// TCP). `None` before Linux 6.3.
    pub gso_ipv4_max_size: Option<u32>,
    /// Largest IPv4 packet built by GRO, in bytes; `None` before Linux 6.3.
    pub gro_ipv4_max_size: Option<u32>,
    /// Largest packet that the device segments itself (TSO), in bytes.
    pub tso_max_size: u32,
    pub qdisc: String,
    /// Index of the bridge or bond to which the link belongs as a port; `None` if the link is not a port.
    pub master: Option<u32>,
    /// Index of the other end of a veth pair, or of the device below this one in a stack (VLAN, macvlan). The index is
    /// valid in the namespace of that other device.
    pub peer: Option<u32>,
    /// Id of the namespace of the device `peer`; `None` if it is in this link's namespace.
    pub peer_netnsid: Option<i32>,
    /// Bus address of the hardware ("0000:01:00.0"); `None` for virtual devices.
    pub parent: Option<String>,
    /// Number of packets sent since the device was created.
    pub tx_packets: u64,
}

fn parse(message: &[u8]) -> Result<Link, RequestFailure> {
    let short = || RequestFailure::Malformed("a link message without its header".into());
    let index = u32_at(message, 4).ok_or_else(short)?;
    let flags = u32_at(message, 8).ok_or_else(short)?;
    let attrs = Attrs::after(message, HEADER);
    let number = |kind| attrs.u32(kind).unwrap_or(0);
    let mac = |kind| attrs.get(kind).map(|bytes| HardwareAddress(bytes.to_vec()));
    Ok(Link {
        index,
        name: attrs
            .string(ifla::IFNAME)
            .ok_or_else(|| RequestFailure::Malformed("a link without a name".into()))?,
        kind: attrs.nested(ifla::LINKINFO).and_then(|info| info.string(ifla::INFO_KIND)),
        flags,
        mtu: number(ifla::MTU),
        mtu_range: (number(ifla::MIN_MTU), number(ifla::MAX_MTU)),
        txqlen: number(ifla::TXQLEN),
        mac: mac(ifla::ADDRESS).unwrap_or_default(),
        permanent_mac: mac(ifla::PERM_ADDRESS),
        up: flags & libc::IFF_UP as u32 != 0,
        carrier: attrs.u8(ifla::CARRIER).unwrap_or(0) != 0,
        carrier_changes: number(ifla::CARRIER_CHANGES),
        rx_queues: number(ifla::NUM_RX_QUEUES),
        tx_queues: number(ifla::NUM_TX_QUEUES),
        gso_max_size: number(ifla::GSO_MAX_SIZE),
        gro_max_size: attrs.u32(ifla::GRO_MAX_SIZE),
        gso_ipv4_max_size: attrs.u32(ifla::GSO_IPV4_MAX_SIZE),
        gro_ipv4_max_size: attrs.u32(ifla::GRO_IPV4_MAX_SIZE),
        tso_max_size: number(ifla::TSO_MAX_SIZE),
        qdisc: attrs.string(ifla::QDISC).unwrap_or_default(),
        master: attrs.u32(ifla::MASTER),
        peer: attrs.u32(ifla::LINK),
        peer_netnsid: attrs.i32(ifla::LINK_NETNSID),
        parent: attrs.string(ifla::PARENT_DEV_NAME),
        // The second field of struct rtnl_link_stats64.
        tx_packets: attrs.get(ifla::STATS64).and_then(|stats| u64_at(stats, 8)).unwrap_or(0),
    })
}

/// Returns a request body that starts with struct ifinfomsg for the device with this index. With index 0, an attribute
/// must name the device.
pub(crate) fn header(index: u32, flags: u32, change: u32) -> MessageBody {
    MessageBody::of_words(&[0, index, flags, change])
}

impl Link {
    /// Parses the body of an RTM_NEWLINK message, for example from a capture.
    pub fn from_message(message: &[u8]) -> Result<Link, Error> {
        parse(message).during(|| "read a link message".into())
    }
}

impl Rtnl {
    pub fn links(&self) -> Result<Vec<Link>, Error> {
        self.channel
            .dump(libc::RTM_GETLINK, &header(0, 0, 0))
            .and_then(|answers| answers.iter().map(|m| parse(m)).collect())
            .during(|| "list links".into())
    }

    pub fn link(&self, device: &str) -> Result<Link, Error> {
        let body = header(0, 0, 0).string(ifla::IFNAME, check_name(device)?);
        let answer = self.channel.request_one(libc::RTM_GETLINK, &body);
        answer.and_then(|m| parse(&m)).during(|| format!("look up link {device}"))
    }

    pub fn link_at(&self, index: u32) -> Result<Link, Error> {
        let answer = self.channel.request_one(libc::RTM_GETLINK, &header(index, 0, 0));
        answer.and_then(|m| parse(&m)).during(|| format!("look up link number {index}"))
    }
}
