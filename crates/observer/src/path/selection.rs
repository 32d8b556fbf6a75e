//! Selects the packets that the tracer watches.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use landspeed_kernel::netlink::Rtnl;
use landspeed_record::WatchTarget;
use landspeed_record::units::Bytes;
use rustix::net::{getpeername, getsockname, ipproto, sockopt};

use crate::{Error, WatchSubject};

/// The largest number of flows that the programs distinguish. With more flows, the look-up for each packet would cost
/// too much.
const MOST_FLOWS: usize = 2000;

/// The place where packets are watched: a link in a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TracedLink {
    /// The inode number of the namespace.
    pub(super) netns: u32,
    pub(super) index: u32,
    pub(super) mtu: Bytes,
    /// True if the device frees a packet only after it was sent, as physical devices do.
    pub(super) completion: bool,
}

impl TracedLink {
    /// Returns the link with the name `link` in the calling thread's network namespace.
    pub(super) fn of(link: &str) -> Result<Self, Error> {
        let gone = |why: String| Error::Gone { object: format!("link '{}'", link.escape_default()), why };
        let found = Rtnl::open().and_then(|rtnl| rtnl.link(link)).map_err(|e| gone(e.to_string()))?;
        let loopback = found.flags & libc::IFF_LOOPBACK.cast_unsigned() != 0;
        Ok(TracedLink {
            netns: namespace()?,
            index: found.index,
            mtu: Bytes(found.mtu.into()),
            // A tun device frees a packet when its program has read it. Other virtual devices pass the packet itself
            // on.
            completion: found.kind.as_deref().map_or(!loopback, |kind| kind == "tun"),
        })
    }
}

/// Returns the inode number of the calling thread's network namespace. The name in /proc contains it:
/// "net:[4026531833]".
fn namespace() -> Result<u32, Error> {
    const PATH: &str = "/proc/thread-self/ns/net";
    let target = std::fs::read_link(PATH).map_err(|e| Error::io("read", PATH, e))?;
    let target = target.to_string_lossy();
    let number = target.strip_prefix("net:[").and_then(|rest| rest.strip_suffix(']'));
    number.and_then(|number| number.parse().ok()).ok_or_else(|| Error::shape(PATH, format!("'{target}'")))
}

/// The key by which the tracer recognises a flow: its protocol and ports. Addresses are left out, because on one link
/// of one namespace the ports are distinctive enough. A remote port of 0 matches any port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowPorts {
    pub(super) protocol: u8,
    pub(super) local: u16,
    pub(super) remote: u16,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PacketSelection {
    /// The flows to watch. If it is empty, all flows of the link are watched.
    pub(super) flows: Vec<FlowPorts>,
    /// If set, only flows with this address at one end are watched. Port 0 matches any port.
    pub(super) address: Option<SocketAddr>,
    /// True if the packets may include UDP datagrams.
    pub(super) datagrams: bool,
    /// Notes on the selection for a reader of the trace.
    pub(super) notes: Vec<String>,
}

impl PacketSelection {
    /// Returns the selection of the packets of `subject`.
    pub(super) fn at(subject: &WatchSubject<'_>) -> Self {
        let all = |note: &str| PacketSelection {
            datagrams: true,
            notes: vec![note.to_owned()],
            ..PacketSelection::default()
        };
        match subject.target {
            WatchTarget::Workload if subject.sockets.len() > MOST_FLOWS => all(
                "packets of all flows of the link are counted: the workload's flows are too many to tell apart",
            ),
            WatchTarget::Workload => PacketSelection::at_sockets(subject.sockets),
            WatchTarget::Flow { at } => {
                PacketSelection { address: Some(at), datagrams: true, ..PacketSelection::default() }
            }
            WatchTarget::Programs | WatchTarget::Pid { .. } | WatchTarget::Name { .. } | WatchTarget::Top => {
                all("packets of all flows of the link are counted: a packet does not name its process")
            }
        }
    }

    fn at_sockets(sockets: &[(u32, BorrowedFd<'_>)]) -> Self {
        let flows: Vec<_> = sockets.iter().filter_map(|(_, socket)| ports(socket)).collect();
        if flows.is_empty() {
            return PacketSelection { datagrams: true, ..PacketSelection::default() };
        }
        let datagrams = flows.iter().any(|flow| flow.protocol == libc::IPPROTO_UDP as u8);
        PacketSelection { flows, datagrams, ..PacketSelection::default() }
    }

    /// Returns the watched address as IPv6, with IPv4 mapped into it (RFC 4291 section 2.5.5.2), and the port; `None`
    /// if no address is set.
    pub(super) fn end(&self) -> Option<([u8; 16], u16)> {
        let end = self.address?;
        let address = match end.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Some((address.octets(), end.port()))
    }
}

/// Returns the protocol and ports of a socket's packets; `None` if the socket is not an IP socket. The packets of a
/// Multipath TCP socket are TCP packets.
fn ports(socket: &BorrowedFd<'_>) -> Option<FlowPorts> {
    let local = SocketAddr::try_from(getsockname(socket).ok()?).ok()?;
    let remote = getpeername(socket).ok().flatten().and_then(|name| SocketAddr::try_from(name).ok());
    let protocol = match sockopt::socket_protocol(socket) {
        Ok(Some(protocol)) if protocol == ipproto::UDP => libc::IPPROTO_UDP,
        _ => libc::IPPROTO_TCP,
    };
    Some(FlowPorts {
        protocol: protocol as u8,
        local: local.port(),
        remote: remote.map_or(0, |end| end.port()),
    })
}
