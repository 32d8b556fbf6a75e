//! Routes: listing, removing and restoring them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::netlink::attr::{Attrs, MessageBody, u32_at};
use crate::netlink::channel::flag;
use crate::netlink::error::{Error, FailureContext, RequestFailure};
use crate::netlink::raw::RawMessage;
use crate::netlink::rtnl::Rtnl;

/// Size of struct rtmsg in bytes.
pub(crate) const HEADER: usize = 12;

/// `RTA_*` of linux/rtnetlink.h.
pub(crate) mod rta {
    pub(crate) const DST: u16 = 1;
    pub(crate) const OIF: u16 = 4;
    pub(crate) const GATEWAY: u16 = 5;
    pub(crate) const PRIORITY: u16 = 6;
    pub(crate) const PREFSRC: u16 = 7;
    pub(crate) const METRICS: u16 = 8;
    pub(crate) const MULTIPATH: u16 = 9;
    pub(crate) const CACHEINFO: u16 = 12;
    pub(crate) const TABLE: u16 = 15;
    pub(crate) const VIA: u16 = 18;
    pub(crate) const ENCAP_TYPE: u16 = 21;
    pub(crate) const ENCAP: u16 = 22;
    pub(crate) const EXPIRES: u16 = 23;
    pub(crate) const NH_ID: u16 = 30;
}

/// `RTNH_F_ONLINK | RTNH_F_PERVASIVE`: the flags that a request may contain. With the other flags the kernel reports
/// the state of the next hop (dead, link down, offloaded). It refuses requests that contain them.
const SETTABLE_FLAGS: u32 = 0x04 | 0x02;

/// A destination: an address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IpPrefix {
    pub address: IpAddr,
    /// Length in bits.
    pub len: u8,
}

impl IpPrefix {
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let mask = u128::MAX.checked_shl(128 - u32::from(self.len)).unwrap_or(0);
        address.is_ipv4() == self.address.is_ipv4() && (bits(address) ^ bits(self.address)) & mask == 0
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.len == 0 { f.write_str("default") } else { write!(f, "{}/{}", self.address, self.len) }
    }
}

/// A route. The kernel's whole message is kept, so that metrics, several next hops, encapsulation and unknown
/// attributes can be restored too.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Route {
    raw: RawMessage,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Route({self}, {:?})", self.raw)
    }
}

impl fmt::Display for Route {
    /// Formats the route: "fd00::/64 via fe80::1 dev 3 metric 1024 table 254".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.destination().fmt(f)?;
        self.gateway().map_or(Ok(()), |gateway| write!(f, " via {gateway}"))?;
        self.devices().iter().try_for_each(|index| write!(f, " dev {index}"))?;
        if self.metric() != 0 {
            write!(f, " metric {}", self.metric())?;
        }
        write!(f, " table {}", self.table())
    }
}

impl Route {
    fn parse(message: &[u8]) -> Result<Self, RequestFailure> {
        match message.len() >= HEADER {
            true => Ok(Route { raw: RawMessage(message.to_vec()) }),
            false => Err(RequestFailure::Malformed("a route message without its header".into())),
        }
    }

    fn attrs(&self) -> Attrs<'_> {
        Attrs::after(&self.raw.0, HEADER)
    }

    /// Returns one byte of struct rtmsg, or zero if the message is too short. A message from a journal may have any
    /// length.
    fn byte(&self, at: usize) -> u8 {
        self.raw.0.get(at).copied().unwrap_or(0)
    }

    pub fn is_ipv6(&self) -> bool {
        i32::from(self.byte(0)) == libc::AF_INET6
    }

    pub fn destination(&self) -> IpPrefix {
        let any: IpAddr =
            if self.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        IpPrefix { address: self.attrs().ip(rta::DST).unwrap_or(any), len: self.byte(1) }
    }

    /// Returns the type of service (TOS). Routes to the same destination may have different TOS values.
    pub fn tos(&self) -> u8 {
        self.byte(3)
    }

    /// Returns the routing table: 254 main, 255 local.
    pub fn table(&self) -> u32 {
        self.attrs().u32(rta::TABLE).unwrap_or(self.byte(4).into())
    }

    /// Returns the origin of the route, `RTPROT_*`: 2 kernel, 3 boot, 4 static.
    pub fn protocol(&self) -> u8 {
        self.byte(5)
    }

    /// Returns the type of the route, `RTN_*`: 1 unicast, 2 local, 3 broadcast, 4 anycast, 5 multicast.
    pub fn kind(&self) -> u8 {
        self.byte(7)
    }

    pub(crate) fn gateway(&self) -> Option<IpAddr> {
        self.attrs().ip(rta::GATEWAY)
    }

    /// Returns the metric. Of several routes to the same destination, the kernel prefers the one with the lowest
    /// metric.
    pub fn metric(&self) -> u32 {
        self.attrs().u32(rta::PRIORITY).unwrap_or(0)
    }

    /// Returns the indexes of the links that the route uses: several for a multipath route, none for a blackhole.
    pub fn devices(&self) -> Vec<u32> {
        match self.attrs().get(rta::MULTIPATH) {
            Some(hops) => next_hops(hops).filter_map(|hop| u32_at(hop, 4)).collect(),
            None => self.attrs().u32(rta::OIF).into_iter().collect(),
        }
    }

    /// Returns true if the kernel creates the route itself from the addresses and the state of a link: a local,
    /// broadcast, anycast, multicast or prefix route. The kernel creates such a route again when the address or the
    /// link comes back.
    pub fn is_automatic(&self) -> bool {
        self.protocol() == libc::RTPROT_KERNEL || self.kind() != libc::RTN_UNICAST && self.table() == 255
    }

    /// Returns true if both routes are equal except for values that the kernel changes over time: ages, remaining
    /// lifetimes and states of the link.
    pub fn same_as(&self, other: &Route) -> bool {
        self.settable(false).bytes() == other.settable(false).bytes()
    }

    /// Returns the route's message in the form that the kernel accepts in a request: without attributes and flags that
    /// only the kernel may set. The lifetime is included if `keep_expiry` is true.
    fn settable(&self, keep_expiry: bool) -> MessageBody {
        let attrs = self.attrs();
        let mut header = [0u8; HEADER];
        header.iter_mut().zip(&self.raw.0).for_each(|(to, from)| *to = *from);
        let flags = u32_at(&header, 8).unwrap_or(0) & SETTABLE_FLAGS;
        header[8..].copy_from_slice(&flags.to_ne_bytes());
        let by_object = attrs.get(rta::NH_ID).is_some();
        let mut body = MessageBody::new(&header);
        for (kind, value) in attrs {
            body = match kind {
                rta::CACHEINFO | rta::EXPIRES => body,
                // If a route uses a next-hop object, the kernel's message also has the content of the object. A request
                // may not contain both.
                rta::OIF | rta::GATEWAY | rta::VIA | rta::MULTIPATH | rta::ENCAP | rta::ENCAP_TYPE
                    if by_object =>
                {
                    body
                }
                rta::MULTIPATH => body.attr(kind, &settable_hops(value)),
                _ => body.attr(kind, value),
            };
        }
        body.with(self.expires_s().filter(|_| keep_expiry), |b, s| b.u32(rta::EXPIRES, s))
    }

    /// Returns the seconds until an IPv6 route expires, or `None` for a route that does not expire. A restored route
    /// gets this lifetime. The kernel reports it in clock ticks of 10 ms (struct rta_cacheinfo: rta_expires).
    pub(crate) fn expires_s(&self) -> Option<u32> {
        const USER_HZ: u32 = 100;
        let ticks = u32_at(self.attrs().get(rta::CACHEINFO)?, 8)?;
        (self.is_ipv6() && ticks != 0 && ticks.cast_signed() > 0).then_some(ticks.div_ceil(USER_HZ))
    }

    /// Returns a sort key for adding routes. Routes without a gateway come first, because a gateway must be reachable
    /// before routes through it are added. Longer prefixes come before shorter ones.
    fn rank(&self) -> (bool, u8) {
        let indirect = self.gateway().is_some()
            || [rta::MULTIPATH, rta::VIA].iter().any(|k| self.attrs().get(*k).is_some());
        (indirect, u8::MAX - self.destination().len)
    }

    /// Sorts routes into an order in which the kernel accepts them: the route to a gateway comes before the routes
    /// through the gateway.
    pub fn sort_for_adding(routes: &mut [Route]) {
        routes.sort_by_key(Route::rank);
    }
}

/// Iterates over the next hops of a multipath route. Each next hop is a struct rtnexthop (u16 length, u8 flags, u8
/// weight, i32 index), followed by attributes.
fn next_hops(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let hop = bytes.get(..len).filter(|hop| hop.len() >= 8)?;
        bytes = bytes.get((len + 3) & !3..).unwrap_or_default();
        Some(hop)
    })
}

fn settable_hops(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len());
    for hop in next_hops(bytes) {
        let start = all.len();
        all.extend_from_slice(hop);
        all[start + 2] &= SETTABLE_FLAGS as u8;
        all.resize((all.len() + 3) & !3, 0);
    }
    all
}

impl Rtnl {
    /// Returns all routes of both families and all tables in the kernel's order, without cached exceptions.
    pub fn routes(&self) -> Result<Vec<Route>, Error> {
        let mut routes = self.routes_of(libc::AF_INET).during(|| "list IPv4 routes".into())?;
        // A kernel booted with ipv6.disable=1 has no IPv6 routes to list.
        match self.routes_of(libc::AF_INET6) {
            Ok(v6) => routes.extend(v6),
            Err(RequestFailure::Kernel { errno: libc::EAFNOSUPPORT | libc::EOPNOTSUPP, .. }) => {}
            Err(e) => return Err(e).during(|| "list IPv6 routes".into()),
        }
        Ok(routes)
    }

    /// Adds a route and keeps the existing ones.
    ///
    /// # Errors
    /// Returns an error with [`Error::is_present`] if the same route already exists.
    pub fn add_route(&self, route: &Route) -> Result<(), Error> {
        // APPEND, not EXCL: with EXCL the kernel refuses an IPv6 route over one link because another link has a route
        // to the same destination with the same metric (fe80::/64).
        let done =
            self.channel.request(libc::RTM_NEWROUTE, flag::CREATE | flag::APPEND, &route.settable(true));
        done.map(drop).during(|| format!("add route {route}"))
    }

    /// Removes a route.
    ///
    /// # Errors
    /// Returns an error with [`Error::is_absent`] if the route does not exist.
    pub fn delete_route(&self, route: &Route) -> Result<(), Error> {
        let done = self.channel.request(libc::RTM_DELROUTE, 0, &route.settable(false));
        done.map(drop).during(|| format!("delete route {route}"))
    }

    fn routes_of(&self, family: i32) -> Result<Vec<Route>, RequestFailure> {
        let mut header = [0u8; HEADER];
        header[0] = family as u8;
        let answers = self.channel.dump(libc::RTM_GETROUTE, &MessageBody::new(&header))?;
        answers.iter().map(|m| Route::parse(m)).collect()
    }
}
