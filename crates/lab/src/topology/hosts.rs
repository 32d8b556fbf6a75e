//! The hosts of a topology, and how to reach them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::topology::path::PathLink;
use crate::topology::vm::GuestLogin;

/// The hosts of an open topology. They can be reached until this value is dropped.
pub trait HostSet: fmt::Debug + Send {
    /// Returns the hosts, in the order of the user or of the topology's drawing.
    fn hosts(&self) -> &[TopologyHost];

    /// Returns the words that name the hosts, for records, such as "lab:back-to-back" or "alice@dtn1 dtn2".
    fn label(&self) -> String;

    /// Returns true if landspeed created the hosts on this machine. Knobs of a machine that several of them share must
    /// then not be changed.
    fn is_lab(&self) -> bool;

    /// Returns a caveat about all figures from these hosts; `None` if they need none.
    fn caveat(&self) -> Option<&'static str> {
        None
    }

    /// Returns the emulated link between the hosts; `None` if landspeed does not carry their frames.
    fn link(&self) -> Option<&dyn PathLink> {
        None
    }

    /// Returns the pairs of hosts that exchange data at the same time. All pairs that share a link are listed, and all
    /// links that two hosts share.
    fn pairs(&self) -> Vec<HostPair> {
        if self.hosts().len() < 2 { Vec::new() } else { vec![HostPair::of([0, 1])] }
    }
}

/// Two hosts that exchange data over one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPair {
    /// Indices of the hosts, the sender first.
    pub ends: [usize; 2],
    /// Addresses of the receiver on the pair's link; empty where the link is the one that [`TopologyHost`] describes.
    pub addresses: Vec<IpAddr>,
}

impl HostPair {
    /// Returns a pair whose hosts have one link.
    pub fn of(ends: [usize; 2]) -> Self {
        HostPair { ends, addresses: Vec::new() }
    }
}

/// One host, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyHost {
    /// Its name, such as "a", "h3", "alice@dtn1" or "local".
    pub name: String,
    /// The way to start or find an agent on the host.
    pub reach: ReachMethod,
    /// The name of its network device towards the other hosts; `None` if the topology does not determine it.
    pub device: Option<String>,
    /// Its IPv4 address on `device`; `None` if unknown.
    pub v4: Option<Ipv4Addr>,
    /// Its IPv6 address on `device`; `None` if unknown.
    pub v6: Option<Ipv6Addr>,
}

/// A way to start an agent on a host, or to reach one that runs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReachMethod {
    /// Start it as a child of this process, in this named network namespace of this machine.
    Namespace(String),
    /// Start it as a child of this process.
    Local,
    /// Start it by the user's own ssh, with this destination. The destination never starts with '-'.
    Ssh(String),
    /// Start it by ssh in a virtual machine that landspeed booted.
    Guest(GuestLogin),
    /// Connect to an agent that was started by hand, by the line that it printed.
    Invite(InviteLine),
}

/// The line that a hand-started agent printed. It may contain a secret, so `Debug` and `Display` show only its address
/// and port.
#[derive(Clone, PartialEq, Eq)]
pub struct InviteLine(String);

impl InviteLine {
    pub(crate) fn new(line: &str) -> Self {
        InviteLine(line.to_owned())
    }

    /// Returns the whole line, for the crate that connects to the agent.
    pub fn line(&self) -> &str {
        &self.0
    }

    /// Returns the agent's IP address; `None` if the line has none. An IPv6 zone is removed, because it is valid only
    /// on the host that printed the line.
    pub fn address(&self) -> Option<IpAddr> {
        let (address, _) = self.place().rsplit_once(':')?;
        let address = address.trim_start_matches('[').trim_end_matches(']');
        address.split('%').next()?.parse().ok()
    }

    /// Returns the address and port in the line, such as "192.0.2.1:4711", without the token before them and the pin
    /// after them.
    fn place(&self) -> &str {
        let rest = self.0.split("://").nth(1).unwrap_or_default();
        rest.rsplit('@').next().unwrap_or_default().split(['/', '#']).next().unwrap_or_default()
    }
}

impl fmt::Debug for InviteLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InviteLine({self})")
    }
}

impl fmt::Display for InviteLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "landspeed://{}", self.place().escape_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_keeps_its_secret() {
        let invite = InviteLine::new("landspeed://TOKEN@192.0.2.1:4711/#PIN");
        assert_eq!(
            format!("{invite} {invite:?}"),
            "landspeed://192.0.2.1:4711 InviteLine(landspeed://192.0.2.1:4711)"
        );
        for (line, address) in [
            ("landspeed://TOKEN@192.0.2.1:4711/#PIN", Some("192.0.2.1")),
            ("landspeed://TOKEN@[fe80::1%eth0]:4711/#PIN", Some("fe80::1")),
            ("landspeed://[2001:db8::1]:4711/#PIN", Some("2001:db8::1")),
            ("landspeed://TOKEN@host:4711/#PIN", None),
            ("landspeed://", None),
        ] {
            assert_eq!(InviteLine::new(line).address(), address.map(|ip| ip.parse().unwrap()), "{line}");
        }
    }
}
