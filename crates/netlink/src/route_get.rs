//! Which way a packet would go.

use std::net::IpAddr;

use crate::address::family;
use crate::attr::{Attrs, Body};
use crate::error::{During, Error, Failure};
use crate::route::{HEADER, rta};
use crate::rtnl::Rtnl;

/// RTAX_MTU within RTA_METRICS.
const RTAX_MTU: u16 = 2;

/// The way to an address, as the kernel would choose it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteTo {
    pub index: u32,
    pub device: String,
    /// The source address that the kernel would use.
    pub source: Option<IpAddr>,
    /// The next hop, where the address is not reached directly.
    pub gateway: Option<IpAddr>,
    pub local: bool,
    /// MTU in bytes that the route itself sets or has learned, below the link's.
    pub mtu: Option<u32>,
}

impl Rtnl {
    /// Asks the kernel for the way to `to`. [`Error::errno`] is ENETUNREACH where there is none.
    pub fn route_get(&self, to: IpAddr) -> Result<RouteTo, Error> {
        let mut header = [0u8; HEADER];
        header[0] = family(to);
        header[1] = if to.is_ipv4() { 32 } else { 128 };
        let answer = self.channel.request_one(libc::RTM_GETROUTE, &Body::new(&header).ip(rta::DST, to));
        let message = answer.during(|| format!("look up the route to {to}"))?;
        let attrs = Attrs::after(&message, HEADER);
        let index = attrs.u32(rta::OIF).ok_or_else(|| Failure::Malformed("a route without a link".into()));
        let index = index.during(|| format!("look up the route to {to}"))?;
        Ok(RouteTo {
            index,
            device: self.link_at(index)?.name,
            source: attrs.ip(rta::PREFSRC),
            gateway: attrs.ip(rta::GATEWAY),
            local: message.get(7) == Some(&libc::RTN_LOCAL),
            mtu: attrs.nested(rta::METRICS).and_then(|m| m.u32(RTAX_MTU)).filter(|mtu| *mtu != 0),
        })
    }
}
