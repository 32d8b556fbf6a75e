//! Looks up the route to an address, and adds a route that limits the congestion window (ip-route(8): "cwnd lock").

use std::net::{IpAddr, SocketAddr};

use crate::netlink::address::family;
use crate::netlink::attr::{Attrs, MessageBody};
use crate::netlink::channel::flag;
use crate::netlink::error::{Error, FailureContext, RequestFailure};
use crate::netlink::route::{HEADER, rta};
use crate::netlink::rtnl::Rtnl;

/// `RTAX_*` of linux/rtnetlink.h, within RTA_METRICS.
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const RTAX_CWND: u16 = 7;

/// The route that the kernel would choose to an address now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteLookup {
    pub index: u32,
    pub device: String,
    /// The source address that the kernel would use; `None` if it reports none.
    pub source: Option<IpAddr>,
    /// The next hop; `None` if the address is reached directly.
    pub gateway: Option<IpAddr>,
    pub local: bool,
    /// MTU in bytes that is set for the route or was learned on the path; `None` if the MTU of the link applies.
    pub mtu: Option<u32>,
}

impl Rtnl {
    /// Returns the route that the kernel would use to `to`.
    ///
    /// # Errors
    /// Returns an error whose [`Error::errno`] is ENETUNREACH if there is no route.
    pub fn route_get(&self, to: IpAddr) -> Result<RouteLookup, Error> {
        self.route_towards(SocketAddr::new(to, 0))
    }

    /// Returns the route that the kernel would use to an address. The zone of an IPv6 address (`scope_id`), if it is
    /// not zero, names the outgoing interface. The port is ignored.
    pub fn route_towards(&self, to: SocketAddr) -> Result<RouteLookup, Error> {
        let (to, zone) = match to {
            SocketAddr::V4(v4) => (IpAddr::from(*v4.ip()), 0),
            SocketAddr::V6(v6) => (IpAddr::from(*v6.ip()), v6.scope_id()),
        };
        let mut header = [0u8; HEADER];
        header[0] = family(to);
        header[1] = if to.is_ipv4() { 32 } else { 128 };
        let asked = MessageBody::new(&header).ip(rta::DST, to);
        let asked = asked.with((zone != 0).then_some(zone), |body, zone| body.u32(rta::OIF, zone));
        let answer = self.channel.request_one(libc::RTM_GETROUTE, &asked);
        let message = answer.during(|| format!("look up the route to {to}"))?;
        let attrs = Attrs::after(&message, HEADER);
        let index =
            attrs.u32(rta::OIF).ok_or_else(|| RequestFailure::Malformed("a route without a link".into()));
        let index = index.during(|| format!("look up the route to {to}"))?;
        Ok(RouteLookup {
            index,
            device: self.link_at(index)?.name,
            source: attrs.ip(rta::PREFSRC),
            gateway: attrs.ip(rta::GATEWAY),
            local: message.get(7) == Some(&libc::RTN_LOCAL),
            mtu: attrs.nested(rta::METRICS).and_then(|m| m.u32(RTAX_MTU)).filter(|mtu| *mtu != 0),
        })
    }

    /// Adds a route to the neighbour `to` on `device`. The route limits the congestion window of connections to `to` to
    /// `segments` segments.
    ///
    /// The limit takes effect from the second connection on. The kernel reads the limit from the metrics that TCP keeps
    /// for the peer, and writes them when the first connection ends (tcp_init_metrics, tcp_update_metrics in
    /// net/ipv4/tcp_metrics.c).
    pub fn add_route_with_window(&self, to: IpAddr, device: &str, segments: u32) -> Result<(), Error> {
        let bits = if to.is_ipv4() { 32 } else { 128 };
        // struct rtmsg: family, prefix lengths of destination and source, TOS, table, protocol, scope, type, flags.
        let header = [
            family(to),
            bits,
            0,
            0,
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            libc::RT_SCOPE_LINK,
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ];
        let metrics = MessageBody::new(&[]).u32(RTAX_LOCK, 1 << RTAX_CWND).u32(RTAX_CWND, segments);
        let body = MessageBody::new(&header)
            .ip(rta::DST, to)
            .u32(rta::OIF, self.index_of(device)?)
            .attr(rta::METRICS, metrics.bytes());
        let done = self.channel.request(libc::RTM_NEWROUTE, flag::CREATE | flag::REPLACE, &body);
        done.map(drop).during(|| format!("add a route to {to} with a window of {segments} segments"))
    }
}
