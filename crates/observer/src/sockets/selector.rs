//! The rule that identifies the sockets of a watch target among all sockets.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use landspeed_kernel::netlink::{InetSocket, PortFilter, Rtnl, SockDiag, SocketKind};
use landspeed_record::WatchTarget;

use super::listed_socket::{ListedSocket, canonical, list};
use super::owners::inodes_of_target;
use crate::Error;

/// The largest number of ports for which sockets are listed port by port. For more ports, one list of all sockets is
/// cheaper.
const FEW_PORTS: usize = 8;

/// A socket that was chosen before, and how to find it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChosenSocket {
    /// SO_COOKIE of the socket.
    pub(crate) cookie: u64,
    pub(crate) port: u16,
}

#[derive(Debug)]
pub(crate) enum SocketSelector {
    /// Only these sockets. No sockets are added later.
    Sockets(Vec<ChosenSocket>),
    /// Sockets with this address at either end.
    Address {
        /// The address. Port 0 matches any port, and an unspecified address any address.
        at: SocketAddr,
        /// True if the address belongs to this host. Sockets that are not bound to an address can then match too.
        own: bool,
    },
    /// Sockets of the processes that a target names, and of their descendants.
    Processes {
        target: WatchTarget,
        /// The inode numbers of all sockets that the processes held at the start or at any refresh.
        inodes: BTreeSet<u32>,
    },
}

impl SocketSelector {
    pub(super) fn address(at: SocketAddr) -> Self {
        let at = canonical(at);
        let routed = || Rtnl::open().and_then(|rtnl| rtnl.route_get(at.ip())).is_ok_and(|to| to.local);
        SocketSelector::Address { at, own: at.ip().is_unspecified() || routed() }
    }

    pub(super) fn processes(target: WatchTarget) -> Result<Self, Error> {
        Ok(SocketSelector::Processes { target, inodes: inodes_of_target(target)? })
    }

    /// Returns true if the rule may match sockets that are created later.
    pub(crate) fn may_grow(&self) -> bool {
        !matches!(self, SocketSelector::Sockets(_))
    }

    /// Adds the sockets that the target's processes hold now, if the target names processes.
    pub(crate) fn refresh(&mut self) {
        match self {
            // The sockets of a process that ended disappear by themselves.
            SocketSelector::Processes { target, inodes } => {
                inodes.extend(inodes_of_target(*target).unwrap_or_default());
            }
            SocketSelector::Sockets(_) | SocketSelector::Address { .. } => {}
        }
    }

    /// Returns the sockets that exist now and match, without listeners.
    pub(crate) fn list(&self, diag: &SockDiag, notes: &mut Vec<String>) -> Result<Vec<ListedSocket>, Error> {
        let mut found = list(diag, &self.ports(), notes)?;
        found.retain(|found| self.is_one(found));
        // A socket is listed twice if both its local and its remote port match a filter.
        found.sort_by_key(ListedSocket::cookie);
        found.dedup_by_key(|f| f.cookie());
        Ok(found)
    }

    /// Returns the port filters for the kernel's lists. If the rule does not restrict the ports, returns one filter
    /// that matches any port.
    fn ports(&self) -> Vec<PortFilter> {
        match self {
            SocketSelector::Address { at, .. } if at.port() != 0 => {
                vec![PortFilter { local: at.port(), remote: 0 }, PortFilter { local: 0, remote: at.port() }]
            }
            SocketSelector::Sockets(own) => {
                let ports: BTreeSet<u16> = own.iter().map(|socket| socket.port).collect();
                if ports.len() > FEW_PORTS || ports.contains(&0) {
                    return vec![PortFilter::default()];
                }
                ports.into_iter().map(|local| PortFilter { local, remote: 0 }).collect()
            }
            _ => vec![PortFilter::default()],
        }
    }

    fn is_one(&self, found: &ListedSocket) -> bool {
        let key = found.key();
        match self {
            SocketSelector::Sockets(own) => own.iter().any(|socket| socket.cookie == found.cookie()),
            SocketSelector::Processes { inodes, .. } => inodes.contains(&found.socket.inode),
            SocketSelector::Address { at, own } => {
                meets(*at, key.local) || meets(*at, key.remote) || (*own && takes(*at, key.local))
            }
        }
    }

    /// Returns the listening TCP sockets that belong to the target, even if the target has no flows.
    pub(crate) fn listeners(&self, diag: &SockDiag) -> Result<Vec<InetSocket>, Error> {
        let mut all = diag.list(SocketKind::TcpListener, PortFilter::default())?;
        all.retain(|listener| self.is_listener(listener, &BTreeSet::new()));
        Ok(all)
    }

    /// Returns true if a listening socket belongs to the target, even if the target has no flows. `own_inodes` are the
    /// inode numbers of the sockets of the workload's process.
    pub(crate) fn is_listener(&self, listener: &InetSocket, own_inodes: &BTreeSet<u32>) -> bool {
        match self {
            SocketSelector::Sockets(_) => own_inodes.contains(&listener.inode),
            SocketSelector::Processes { inodes, .. } => inodes.contains(&listener.inode),
            SocketSelector::Address { at, own } => {
                let local = canonical(listener.id.local);
                meets(*at, local) || (*own && takes(*at, local))
            }
        }
    }
}

/// Returns true if `end` matches `at`. In `at`, port 0 matches any port, and an unspecified address matches any
/// address. If `at` has both, it matches nothing.
fn meets(at: SocketAddr, end: SocketAddr) -> bool {
    let port = at.port() == 0 || at.port() == end.port();
    // An `at` without port and address would match every socket, and even the missing peers of unconnected sockets.
    let ip = if at.ip().is_unspecified() { at.port() != 0 } else { at.ip() == end.ip() };
    port && ip
}

/// Returns true if a socket that is bound to `local` receives packets to the address and port `at`.
fn takes(at: SocketAddr, local: SocketAddr) -> bool {
    at.port() != 0 && at.port() == local.port() && covers(local.ip(), at.ip())
}

/// Returns true if a socket bound to `bound` receives packets to `address`. A socket bound to `::` is assumed to
/// receive IPv4 too, because IPV6_V6ONLY is not checked.
pub(crate) fn covers(bound: IpAddr, address: IpAddr) -> bool {
    bound == address || (bound.is_unspecified() && (bound.is_ipv6() || address.is_ipv4()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_met_by_port_and_address_or_takes_what_is_sent_to_its_port() {
        for (at, end, met, taken) in [
            ("10.0.0.1:80", "10.0.0.1:80", true, true),
            ("10.0.0.1:0", "10.0.0.1:1234", true, false), // port 0 matches any
            ("0.0.0.0:80", "[fd00::1]:80", true, false),  // an unspecified address matches any
            ("10.0.0.1:80", "10.0.0.1:81", false, false),
            ("10.0.0.1:80", "10.0.0.2:80", false, false),
            ("0.0.0.0:0", "0.0.0.0:0", false, false), // both unspecified match nothing
            ("10.0.0.1:53", "0.0.0.0:53", false, true),
            ("10.0.0.1:53", "[::]:53", false, true),
            ("[fd00::1]:53", "0.0.0.0:53", false, false),
            ("10.0.0.1:53", "0.0.0.0:54", false, false),
            ("10.0.0.1:0", "0.0.0.0:53", false, false),
        ] {
            let ends: [SocketAddr; 2] = [at, end].map(|text| text.parse().unwrap());
            assert_eq!((meets(ends[0], ends[1]), takes(ends[0], ends[1])), (met, taken), "{at} {end}");
        }
    }

    #[test]
    fn the_kernel_is_asked_for_few_ports_one_by_one() {
        let own = |ports: std::ops::Range<u16>| {
            SocketSelector::Sockets(ports.map(|port| ChosenSocket { cookie: port.into(), port }).collect())
        };
        assert_eq!(own(1..3).ports().len(), 2);
        assert_eq!(own(1..100).ports(), [PortFilter::default()]);
        assert_eq!(own(0..1).ports(), [PortFilter::default()], "port 0 would be any anyway");
        assert!(own(1..1).ports().is_empty());
    }
}
