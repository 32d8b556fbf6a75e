//! Deletes the metrics that TCP keeps for each peer between connections (RFC 9040).

use std::net::IpAddr;

use crate::netlink::error::{Error, FailureContext};
use crate::netlink::genl::{Genl, command};

/// From linux/tcp_metrics.h.
const CMD_DEL: u8 = 2;
const ADDR_IPV4: u16 = 1;
const ADDR_IPV6: u16 = 2;

/// A socket of the `tcp_metrics` family in the network namespace of the thread that opened it.
pub struct TcpMetrics(Genl);

impl TcpMetrics {
    pub fn open() -> Result<Self, Error> {
        Genl::open("tcp_metrics").map(TcpMetrics)
    }

    /// Deletes the RTT, congestion window and slow-start threshold that TCP keeps for one peer. The next connection to
    /// the peer then starts without them, like the first one. Returns false if TCP kept none.
    pub fn delete(&self, peer: IpAddr) -> Result<bool, Error> {
        let kind = if peer.is_ipv4() { ADDR_IPV4 } else { ADDR_IPV6 };
        match self
            .0
            .set(&command(CMD_DEL).ip(kind, peer))
            .during(|| format!("clear the TCP metrics of {peer}"))
        {
            Ok(()) => Ok(true),
            Err(e) if e.is_absent() => Ok(false),
            Err(e) => Err(e),
        }
    }
}
