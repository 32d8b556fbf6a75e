//! The lab: hosts that are network namespaces of this machine, joined by veth pairs, or virtual machines whose bridges
//! are in one.
//!
//! Nothing outside the lab's own namespaces changes. Links are created and sysctls are written inside them, and the
//! host's bridges and routes are not used. After a lab, only empty folders remain: /run/netns, which `ip netns` leaves
//! too, and /run/landspeed/labs. landspeed loads no kernel module, but the kernel may load the modules of veth and
//! bridge when the first such device is created.
//!
//! A lab has almost no traffic of its own. It has no IPv6 link-local addresses, so no router solicitation and no
//! duplicate address detection. It ignores router advertisements, and has no spanning tree. Only ARP and neighbour
//! discovery remain, and a few multicast listener reports in the first seconds.

mod agents;
mod build;
mod held;
mod host;
mod keeper;
mod open;
mod owner;
mod plan;
mod store;
mod sweep;

use crate::emulator::EmulatedLink;
use landspeed_kernel::netlink::{LinkChange, Rtnl, VethEnd, in_throwaway};
use rustix::thread::{CapabilitySet, capabilities};

use crate::topology::error::Error;
use crate::topology::hosts::{HostPair, HostSet, TopologyHost};
use crate::topology::namespace::{Namespace, with_namespace};
use crate::topology::path::PathLink;
use crate::topology::vm::{Accelerator, Guests};
pub use held::{find_held, hold, hosts, plan_held};
pub use host::{LabHost, LabLink};
pub use keeper::{keep_with, outlive_owner};
pub use landspeed_kernel::folder::RUN_DIR_VARIABLE;
pub(crate) use plan::PortRates;
pub use plan::{LabId, LabPlan};
use plan::{LabInterconnect, LabLayout};
use store::LabStore;
pub use sweep::{LabInfo, LabSelection, RemovedLab, down, leave, list};

/// A lab that exists until it is dropped.
#[derive(Debug)]
#[must_use = "the lab is removed when this is dropped"]
pub struct Lab {
    id: LabId,
    plan: LabPlan,
    lab_hosts: Vec<LabHost>,
    hosts: Vec<TopologyHost>,
    /// The emulated link between the hosts; `None` if the kernel carries the frames.
    link: Option<EmulatedLink>,
    /// The virtual machines that are the hosts; `None` if the hosts are namespaces.
    guests: Option<Guests>,
    /// The namespaces in the order of their creation. They are removed in reverse order.
    namespaces: Vec<Namespace>,
    store: LabStore,
}

impl Lab {
    /// Creates a lab with a random ID. Several labs can exist at a time. If a step fails, the earlier steps are undone.
    /// If this process dies, a keeper ([`keep_with`]) removes the lab. Needs root.
    pub(crate) fn make(plan: LabPlan) -> Result<Self, Error> {
        Self::make_named(plan, None)
    }

    /// Creates a lab with a random ID, and with a name under which a user can hold it, if one is given.
    fn make_named(plan: LabPlan, name: Option<&str>) -> Result<Self, Error> {
        // A signal that ends this process does not wait until a kernel was tried.
        let accelerator = plan.guest_spec().map(Guests::accelerator_for).transpose()?;
        let making = sweep::making();
        let store = LabStore::open()?;
        let layout = LabLayout::new(LabId::random()?, plan);
        keeper::start()?;
        // The state file is written first, so that another landspeed can clean up after a crash in any later step.
        store.add(&layout, name)?;
        let mut lab = Lab {
            id: layout.id.clone(),
            plan: layout.plan.clone(),
            hosts: layout.hosts.iter().map(TopologyHost::from).collect(),
            lab_hosts: layout.hosts.clone(),
            link: None,
            guests: None,
            namespaces: Vec::new(),
            store,
        };
        for name in layout.namespaces() {
            lab.namespaces.push(Namespace::create(&name)?);
        }
        lab.join(&layout, accelerator)?;
        // Another command may have taken down the parts of the lab that existed by then. If this process were killed,
        // no command would find the rest.
        if !lab.store.has(&lab.id) {
            return Err(Error::TakenDown(lab.id.to_string()));
        }
        // A signal that ends this process does not wait until guests have booted.
        drop(making);
        lab.guests.as_ref().map_or(Ok(()), Guests::wait)?;
        Ok(lab)
    }

    /// Joins the hosts, whose namespaces exist.
    fn join(&mut self, layout: &LabLayout, accelerator: Option<Accelerator>) -> Result<(), Error> {
        build::build(layout)?;
        match layout.middle() {
            Some((middle, LabInterconnect::Link(spec))) => {
                let ports = layout.link_ports();
                let start = || EmulatedLink::start(spec, ports.each_ref().map(String::as_str));
                self.link = Some(with_namespace(&middle, start)??);
            }
            Some((middle, LabInterconnect::Guests(spec))) => {
                let start = |accelerator| Guests::start(&middle, spec, accelerator);
                self.guests = accelerator.map(start).transpose()?;
            }
            Some((_, LabInterconnect::Bridge(_))) | None => {}
        }
        Ok(())
    }

    pub fn id(&self) -> &LabId {
        &self.id
    }

    pub fn hosts(&self) -> &[LabHost] {
        &self.lab_hosts
    }

    /// Returns the virtual machines that are the hosts; `None` if the hosts are namespaces.
    pub fn guests(&self) -> Option<&Guests> {
        self.guests.as_ref()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Agents that outlived their session would keep their namespace alive without a name. A failure cannot be
        // reported here; the state file then stays for `landspeed lab down`.
        let names: Vec<String> = self.namespaces.iter().map(|n| n.name().to_owned()).collect();
        self.guests = None;
        let _ = agents::end_within(&names);
        // Closes the link's sockets, which would keep the namespace between the hosts alive.
        self.link = None;
        while let Some(namespace) = self.namespaces.pop() {
            drop(namespace);
        }
        if !names.iter().any(|name| crate::topology::namespace::exists(name)) {
            let _ = self.store.remove(&self.id);
        }
    }
}

impl HostSet for Lab {
    fn hosts(&self) -> &[TopologyHost] {
        &self.hosts
    }

    fn label(&self) -> String {
        self.plan.label().to_owned()
    }

    fn is_lab(&self) -> bool {
        true
    }

    fn caveat(&self) -> Option<&'static str> {
        self.guests.as_ref().map(|guests| guests.accelerator().caveat())
    }

    fn link(&self) -> Option<&dyn PathLink> {
        self.link.as_ref().map(|link| link as &dyn PathLink)
    }

    fn pairs(&self) -> Vec<HostPair> {
        let over_each_link = |ends: [usize; 2]| {
            let links = self.lab_hosts[ends[1]].links();
            links
                .into_iter()
                .map(move |link| HostPair { ends, addresses: vec![link.v4.into(), link.v6.into()] })
        };
        self.plan.pairs.iter().copied().flat_map(over_each_link).collect()
    }
}

/// Returns the parameters of the lab `name` from the only word of a command line: the text after the name and ':', or
/// an empty text. Returns `None` if the words do not name this lab.
pub(crate) fn parameters<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    let [word] = words else { return None };
    match word.strip_prefix(name)? {
        "" => Some(""),
        rest => rest.strip_prefix(':'),
    }
}

/// Returns the error for words that do not name a lab of the expected form.
pub(crate) fn no_lab(words: &[String], expected: &'static str) -> Error {
    Error::Name { what: "lab", given: words.join(" ").chars().take(40).collect(), expected }
}

/// Checks that labs can be created here, by creating links in a temporary namespace. Returns the reason as an error if
/// they cannot.
pub(crate) fn can_run() -> Result<(), String> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    if !capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
        return Err("making network namespaces needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): try sudo".into());
    }
    let tried = in_throwaway(|| {
        let rtnl = Rtnl::open()?;
        let end = |name| VethEnd { name, mac: None, netns: None, queues: 1 };
        rtnl.create_veth(&end("ls-try-a"), &end("ls-try-b"))?;
        rtnl.create_bridge("ls-try-br")?;
        rtnl.set_link("ls-try-a", LinkChange::Master(rtnl.index_of("ls-try-br")?))
    });
    match tried {
        Err(e) => Err(format!("this kernel refuses a network namespace: {e}")),
        Ok(Err(e)) => Err(format!("this kernel lacks what a lab is made of: {e}")),
        Ok(Ok(())) => Ok(()),
    }
}
