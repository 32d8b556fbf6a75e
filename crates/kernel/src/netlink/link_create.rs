//! Creates virtual network interfaces.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::netlink::attr::MessageBody;
use crate::netlink::channel::flag;
use crate::netlink::error::{Error, FailureContext};
use crate::netlink::hardware_address::HardwareAddress;
use crate::netlink::link::{HEADER, header, ifla};
use crate::netlink::rtnl::{Rtnl, check_name};

const VETH_INFO_PEER: u16 = 1;

#[derive(Debug, Clone)]
pub struct VethEnd<'a> {
    pub name: &'a str,
    /// Hardware address; if `None`, the kernel chooses a random one.
    pub mac: Option<HardwareAddress>,
    /// The network namespace in which this end is created; if `None`, that of the socket.
    pub netns: Option<BorrowedFd<'a>>,
    /// Number of receive queues and of transmit queues; 1 is the kernel's default.
    pub queues: u32,
}

impl VethEnd<'_> {
    fn describe(&self, body: MessageBody) -> MessageBody {
        body.string(ifla::IFNAME, self.name)
            .with(self.mac.as_ref(), |b, mac| b.attr(ifla::ADDRESS, &mac.0))
            .with(self.netns, |b, fd| b.u32(ifla::NET_NS_FD, fd.as_raw_fd().cast_unsigned()))
            .u32(ifla::NUM_TX_QUEUES, self.queues)
            .u32(ifla::NUM_RX_QUEUES, self.queues)
    }
}

impl Rtnl {
    /// Creates a veth pair. Each end is created directly in its namespace, so it is never visible in another one.
    pub fn create_veth(&self, a: &VethEnd<'_>, b: &VethEnd<'_>) -> Result<(), Error> {
        check_name(a.name)?;
        check_name(b.name)?;
        let peer = b.describe(MessageBody::new(&[0; HEADER]));
        let data = MessageBody::default().attr(VETH_INFO_PEER, peer.bytes());
        let info = MessageBody::default().string(ifla::INFO_KIND, "veth").nest(ifla::INFO_DATA, data);
        self.create(&a.describe(header(0, 0, 0)).nest(ifla::LINKINFO, info))
            .during(|| format!("create veth pair {} and {}", a.name, b.name))
    }

    /// Creates a bridge with spanning tree off and the kernel's default for multicast snooping.
    pub fn create_bridge(&self, name: &str) -> Result<(), Error> {
        let info = MessageBody::default().string(ifla::INFO_KIND, "bridge");
        let body = header(0, 0, 0).string(ifla::IFNAME, check_name(name)?).nest(ifla::LINKINFO, info);
        self.create(&body).during(|| format!("create bridge {name}"))
    }

    fn create(&self, body: &MessageBody) -> Result<(), crate::netlink::error::RequestFailure> {
        self.channel.request(libc::RTM_NEWLINK, flag::CREATE | flag::EXCL, body).map(drop)
    }
}
