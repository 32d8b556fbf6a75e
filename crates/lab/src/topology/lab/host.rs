//! The hosts of a lab, and their links.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::topology::hosts::{ReachMethod, TopologyHost};

/// One host of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabHost {
    /// Its name, such as "a", "b", "h0" or "h1".
    pub name: String,
    /// Its network namespace, by the name that `ip netns` shows. All guests of a lab have one, from which they are
    /// reached.
    pub netns: String,
    /// The way to start an agent on the host.
    pub reach: ReachMethod,
    /// The name of its network device towards the other hosts.
    pub device: String,
    /// IPv4 address in the benchmark range (RFC 2544); all hosts are in one /24.
    pub v4: Ipv4Addr,
    /// IPv6 address, unique local (RFC 4193); all hosts are in one /64.
    pub v6: Ipv6Addr,
    /// Its further links to the same hosts, each with a subnet of its own.
    pub more_links: Vec<LabLink>,
}

impl LabHost {
    /// Returns all its links, the main one first.
    pub(crate) fn links(&self) -> Vec<LabLink> {
        let first = LabLink { device: self.device.clone(), v4: self.v4, v6: self.v6 };
        std::iter::once(first).chain(self.more_links.iter().cloned()).collect()
    }
}

/// A link of a host: its device, and its addresses there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabLink {
    pub device: String,
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
}

impl From<&LabHost> for TopologyHost {
    fn from(host: &LabHost) -> Self {
        TopologyHost {
            name: host.name.clone(),
            reach: host.reach.clone(),
            device: Some(host.device.clone()),
            v4: Some(host.v4),
            v6: Some(host.v6),
        }
    }
}
