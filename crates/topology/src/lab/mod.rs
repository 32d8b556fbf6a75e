//! The lab: hosts that are network namespaces of this machine, joined by veth pairs.
//!
//! Nothing outside the lab's own namespaces changes: links are born inside them, sysctls are written inside
//! them, nothing is put on the host's bridges or routes. What remains afterwards is what `ip netns` leaves
//! too: the empty folder /run/netns (and /run/landspeed/labs). landspeed loads no kernel module; where veth
//! or bridge is one, the kernel loads it when the first such link is made.
//!
//! No traffic of its own: no IPv6 link-local addresses, so no router solicitation and no duplicate address
//! detection; no router advertisements heeded; no spanning tree. Only ARP and neighbour discovery remain, and
//! a few multicast listener reports in the lab's first seconds.

mod agents;
mod build;
mod keeper;
mod kind;
mod owner;
mod plan;
mod store;
mod sweep;
mod topologies;

use std::net::{Ipv4Addr, Ipv6Addr};

use landspeed_emulator::Link;
use landspeed_record::{QueueSample, WanStats};

use crate::error::Error;
use crate::namespace::{Namespace, with_namespace};
use crate::registry::{Host, Hosts, Reach, first_pair};
pub use keeper::{keep_with, outlive_owner};
pub use kind::LabKind;
pub use plan::LabId;
use plan::Plan;
pub use store::RUN_DIR_VARIABLE;
use store::Store;
pub use sweep::{LabInfo, Removed, Which, down, leave, list};
pub(crate) use topologies::{BackToBack, Switch, Wan};

/// One host of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabHost {
    /// "a", "b", "h0", "h1", ...
    pub name: String,
    /// Its network namespace, as `ip netns` shows it.
    pub netns: String,
    /// Its link to the other hosts.
    pub device: String,
    /// IPv4 address, of the benchmark range (RFC 2544); all hosts in one /24.
    pub v4: Ipv4Addr,
    /// IPv6 address, unique local (RFC 4193); all hosts in one /64.
    pub v6: Ipv6Addr,
}

/// A lab that stands, until dropped.
#[derive(Debug)]
#[must_use = "the lab is removed when this is dropped"]
pub struct Lab {
    id: LabId,
    kind: LabKind,
    lab_hosts: Vec<LabHost>,
    hosts: Vec<Host>,
    /// What carries frames, where that is landspeed itself.
    link: Option<Link>,
    /// In the order they were made; removed in reverse.
    namespaces: Vec<Namespace>,
    store: Store,
}

impl Lab {
    /// Makes a lab of a random id. Several can stand at once; what was made is removed again where a later
    /// part fails, and by a keeper ([`keep_with`]) where this process dies. Needs root.
    pub fn create(kind: LabKind) -> Result<Self, Error> {
        let _making = sweep::making();
        let store = Store::open()?;
        let plan = Plan::new(LabId::random()?, kind);
        keeper::start()?;
        // First of all, so that a crash from here on can be cleaned up by another landspeed.
        store.add(&plan)?;
        let mut lab = Lab {
            id: plan.id.clone(),
            kind: plan.kind.clone(),
            hosts: plan.hosts.iter().map(Host::from).collect(),
            lab_hosts: plan.hosts.clone(),
            link: None,
            namespaces: Vec::new(),
            store,
        };
        for name in plan.namespaces() {
            lab.namespaces.push(Namespace::create(&name)?);
        }
        build::build(&plan)?;
        if let (LabKind::Wan(spec), Some(middle)) = (&plan.kind, plan.middle_namespace()) {
            let ports = plan.wan_ports();
            let start = || Link::start(spec, ports.each_ref().map(String::as_str));
            lab.link = Some(with_namespace(&middle, start)??);
        }
        Ok(lab)
    }

    /// Its id, part of the names of its namespaces.
    pub fn id(&self) -> &LabId {
        &self.id
    }

    /// Its kind.
    pub fn kind(&self) -> &LabKind {
        &self.kind
    }

    /// Its hosts.
    pub fn hosts(&self) -> &[LabHost] {
        &self.lab_hosts
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Agents that outlived their session would keep their namespace alive without a name. Nobody is
        // left to tell of a failure; the state file then stays for `landspeed lab down`.
        let names: Vec<String> = self.namespaces.iter().map(|n| n.name().to_owned()).collect();
        let _ = agents::end_within(&names);
        // Its sockets would keep the namespace between the hosts.
        self.link = None;
        while let Some(namespace) = self.namespaces.pop() {
            drop(namespace);
        }
        if !names.iter().any(|name| crate::namespace::exists(name)) {
            let _ = self.store.remove(&self.id);
        }
    }
}

impl Hosts for Lab {
    fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    fn label(&self) -> String {
        self.kind.to_string()
    }

    fn is_lab(&self) -> bool {
        true
    }

    fn wan_stats(&self) -> Option<WanStats> {
        self.link.as_ref().map(Link::stats)
    }

    fn mark_wan(&self) {
        if let Some(link) = &self.link {
            link.mark();
        }
    }

    fn wan_since_mark(&self) -> Option<(WanStats, Vec<QueueSample>)> {
        self.link.as_ref().map(Link::since_mark)
    }

    fn pairs(&self) -> Vec<[&Host; 2]> {
        match self.kind {
            // a and b, a2 and b2, ...
            LabKind::Wan(_) => self.hosts.as_chunks::<2>().0.iter().map(|[a, b]| [a, b]).collect(),
            _ => first_pair(&self.hosts),
        }
    }
}

impl From<&LabHost> for Host {
    fn from(host: &LabHost) -> Self {
        Host {
            name: host.name.clone(),
            reach: Reach::Namespace(host.netns.clone()),
            device: Some(host.device.clone()),
            v4: Some(host.v4),
            v6: Some(host.v6),
        }
    }
}
