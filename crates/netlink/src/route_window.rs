//! A route that holds the congestion window down (ip-route(8): "cwnd lock"; include/uapi/linux/rtnetlink.h,
//! RTAX_CWND).

use std::net::IpAddr;

use crate::attr::Body;
use crate::channel::flag;
use crate::error::{During, Error};
use crate::route::{HEADER, rta};
use crate::rtnl::Rtnl;

const RTAX_LOCK: u16 = 1;
const RTAX_CWND: u16 = 7;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;

impl Rtnl {
    /// Adds a route to one neighbour on `device` over which a connection has at most `segments` in flight.
    ///
    /// The kernel heeds it from the second connection on: it looks at what TCP remembers of the peer, which
    /// the end of the first one writes (tcp_init_metrics, tcp_update_metrics in net/ipv4/tcp_metrics.c).
    pub fn add_route_with_window(&self, to: IpAddr, device: &str, segments: u32) -> Result<(), Error> {
        let bits = if to.is_ipv4() { 32 } else { 128 };
        let family = if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mut header = [0u8; HEADER];
        header[0] = family as u8;
        header[1] = bits;
        header[4] = RT_TABLE_MAIN;
        header[5] = RTPROT_STATIC;
        header[6] = RT_SCOPE_LINK;
        header[7] = RTN_UNICAST;
        let metrics = Body::new(&[]).u32(RTAX_LOCK, 1 << RTAX_CWND).u32(RTAX_CWND, segments);
        let body = Body::new(&header)
            .ip(rta::DST, to)
            .u32(rta::OIF, self.index_of(device)?)
            .attr(rta::METRICS, metrics.bytes());
        let done = self.channel.request(libc::RTM_NEWROUTE, flag::CREATE | flag::REPLACE, &body);
        done.map(drop).during(|| format!("add a route to {to} with a window of {segments} segments"))
    }
}
