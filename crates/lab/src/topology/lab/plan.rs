//! The plan of a lab, and the names and addresses that follow from its ID. Pure.
//!
//! A plan has one of four shapes: veth pairs, a bridge, a wide-area link, or virtual machines. A new shape needs a
//! constructor of `LabPlan` here, and a function for its links in `build.rs`. Hosts that veth pairs join may have
//! several links, each with a subnet of its own; all other hosts have one link (`LabHost::device`), and share one
//! subnet. A subnet behind a host in the middle needs routes, for which `Rtnl` has no method yet (`add_route` only
//! restores a route that was read), and IP in the middle, where `build_middle` turns IPv6 off. `TopologyHost` names one
//! link of a host; the engine determines the link that carries the data by counters (`carry.rs`).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::emulator::WanSpec;
use landspeed_kernel::netlink::HardwareAddress;

use super::host::{LabHost, LabLink};
use crate::failure::FailureContext;
use crate::topology::error::Error;
use crate::topology::hosts::ReachMethod;
use crate::topology::vm::{GuestLogin, GuestSpec};

/// The ID of a lab: six hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabId(String);

const ID_LEN: usize = 6;

impl LabId {
    pub(super) fn random() -> Result<Self, Error> {
        let number = getrandom::u32().during(|| "choose a lab id".into())?;
        Ok(LabId(format!("{:06x}", number & 0xff_ffff)))
    }
}

impl fmt::Display for LabId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LabId {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self, Error> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if given.len() == ID_LEN && given.bytes().all(hex) {
            return Ok(LabId(given.to_owned()));
        }
        let given = given.chars().take(40).collect();
        Err(Error::Name {
            what: "lab id",
            given,
            expected: "six hexadecimal digits, as `landspeed lab list` shows",
        })
    }
}

/// Length of the hosts' common IPv4 prefix, in bits.
pub(super) const V4_PREFIX: u8 = 24;
/// Length of the hosts' common IPv6 prefix, in bits.
pub(super) const V6_PREFIX: u8 = 64;

/// The plan of a lab that has no ID yet: its hosts, and how they are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabPlan {
    label: String,
    /// Names of the hosts.
    hosts: Vec<String>,
    /// The pairs of hosts that exchange data, as indices of hosts.
    pub(super) pairs: Vec<[usize; 2]>,
    /// The name of the namespace to which all hosts are linked, and how they are joined there; `None` if a veth pair
    /// joins two hosts directly.
    middle: Option<(&'static str, LabInterconnect)>,
    /// Number of links of each host.
    links: u8,
}

/// The way in which hosts are joined in the namespace between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LabInterconnect {
    Bridge(PortRates),
    /// One emulated wide-area link, with the first host of every pair at one end and the second host at the other. All
    /// pairs share it.
    Link(Box<WanSpec>),
    /// Bridges between virtual machines, which are the hosts.
    Guests(GuestSpec),
}

/// Rates of the ports of a bridge, in bits of frames per second; `None` for a port without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PortRates {
    /// Rate of the port of each host except the last.
    pub(crate) port_bps: Option<u64>,
    /// Rate for the last host, whose port the traffic of all others shares under `--fan`.
    pub(crate) trunk_bps: Option<u64>,
}

impl PortRates {
    /// Returns the rate of each host's port, in the order of the hosts.
    pub(super) fn of(self, hosts: usize) -> impl Iterator<Item = Option<u64>> {
        let last = hosts.saturating_sub(1);
        (0..hosts).map(move |number| if number == last { self.trunk_bps } else { self.port_bps })
    }
}

impl LabPlan {
    /// Returns a plan of two hosts and a number of veth pairs between them. The label is the words that name the lab.
    pub(crate) fn veth(label: impl Into<String>, hosts: [&str; 2], links: u8) -> Self {
        let hosts = hosts.map(str::to_owned).into();
        LabPlan { label: label.into(), hosts, pairs: vec![[0, 1]], middle: None, links }
    }

    /// Returns a plan of hosts on a bridge, which is in the namespace `middle`.
    pub(crate) fn bridge(label: String, middle: &'static str, hosts: Vec<String>, rates: PortRates) -> Self {
        let middle = Some((middle, LabInterconnect::Bridge(rates)));
        LabPlan { label, hosts, pairs: vec![[0, 1]], middle, links: 1 }
    }

    /// Returns a plan of pairs of hosts that share an emulated link, which is in the namespace `middle`.
    pub(crate) fn link(label: String, middle: &'static str, hosts: Vec<[String; 2]>, spec: WanSpec) -> Self {
        let pairs = (0..hosts.len()).map(|n| [2 * n, 2 * n + 1]).collect();
        let hosts = hosts.into_iter().flatten().collect();
        let middle = Some((middle, LabInterconnect::Link(Box::new(spec))));
        LabPlan { label, hosts, pairs, middle, links: 1 }
    }

    /// Returns a plan of two virtual machines, whose bridges are in the namespace `middle`.
    pub(crate) fn guests(label: String, middle: &'static str, spec: GuestSpec) -> Self {
        let middle = Some((middle, LabInterconnect::Guests(spec)));
        LabPlan { label, hosts: vec!["a".into(), "b".into()], pairs: vec![[0, 1]], middle, links: 1 }
    }

    /// Returns true if the hosts are virtual machines, which have a kernel each.
    pub(crate) fn has_guests(&self) -> bool {
        self.guest_spec().is_some()
    }

    /// Returns the specification of the virtual machines that are the hosts; `None` if the hosts are namespaces.
    pub(super) fn guest_spec(&self) -> Option<&GuestSpec> {
        match &self.middle {
            Some((_, LabInterconnect::Guests(spec))) => Some(spec),
            _ => None,
        }
    }

    /// Returns the words that name the lab on a command line, such as "lab:switch:4".
    pub fn label(&self) -> &str {
        &self.label
    }
}

/// A lab with an ID, and the names and addresses of its hosts.
#[derive(Debug, Clone)]
pub(super) struct LabLayout {
    pub(super) id: LabId,
    pub(super) plan: LabPlan,
    pub(super) hosts: Vec<LabHost>,
}

impl LabLayout {
    pub(super) fn new(id: LabId, plan: LabPlan) -> Self {
        let host = |(number, name): (u8, &String)| {
            let host = host(&id, number, name.clone(), plan.links);
            match plan.middle {
                Some((middle, LabInterconnect::Guests(_))) => guest(own(&id, middle), number, host),
                _ => host,
            }
        };
        let hosts = (1..).zip(&plan.hosts).map(host).collect();
        LabLayout { id, plan, hosts }
    }

    /// Returns the namespace between the hosts and how they are joined there; `None` if a veth pair joins them
    /// directly.
    pub(super) fn middle(&self) -> Option<(String, &LabInterconnect)> {
        self.plan.middle.as_ref().map(|(name, interconnect)| (own(&self.id, name), interconnect))
    }

    /// Returns the names of the two devices that a wide-area link joins, in the namespace between the hosts. With one
    /// pair, they are the ports to the two hosts. If several pairs share the link, they are the devices `port` of
    /// [`SIDES`].
    pub(super) fn link_ports(&self) -> [String; 2] {
        if self.hosts.len() > 2 { SIDES.map(|side| side.port.to_owned()) } else { [port(1), port(2)] }
    }

    /// Returns the names of all namespaces, in the order of their creation.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let mut names: Vec<String> = self.middle().map(|(name, _)| name).into_iter().collect();
        for host in &self.hosts {
            // Guests have no namespaces of their own.
            if !names.contains(&host.netns) {
                names.push(host.netns.clone());
            }
        }
        names
    }
}

/// Returns the full name of a lab's namespace.
fn own(id: &LabId, name: &str) -> String {
    format!("ls-{id}-{name}")
}

/// Returns true if a namespace of this name may belong to the lab.
pub(super) fn is_own(id: &LabId, namespace: &str) -> bool {
    let name = namespace.strip_prefix(&own(id, "")).unwrap_or_default();
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// One side of a wide-area link that several pairs share: a bridge to the hosts on that side, and a veth pair from it
/// to the link.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkSide {
    pub(super) bridge: &'static str,
    /// The end that is a port of the bridge.
    pub(super) trunk: &'static str,
    /// The end that the link uses.
    pub(super) port: &'static str,
}

/// The side of hosts a, and that of hosts b.
pub(super) const SIDES: [LinkSide; 2] = [
    LinkSide { bridge: "ls-br-a", trunk: "ls-trunk-a", port: "ls-link-a" },
    LinkSide { bridge: "ls-br-b", trunk: "ls-trunk-b", port: "ls-link-b" },
];

/// Returns the name of the port to a host, in the namespace between the hosts. Hosts are counted from 1.
pub(super) fn port(number: usize) -> String {
    format!("ls-p{}", number - 1)
}

fn host(id: &LabId, number: u8, name: String, links: u8) -> LabHost {
    let LabLink { device, v4, v6 } = link(&name, number, 1);
    let more_links = (2..=links).map(|nth| link(&name, number, nth)).collect();
    let netns = own(id, &name);
    LabHost { reach: ReachMethod::Namespace(netns.clone()), netns, device, v4, v6, more_links, name }
}

/// Returns `host` as a virtual machine. Its addresses are the same, and it gives its device a name itself.
fn guest(netns: String, number: u8, host: LabHost) -> LabHost {
    let reach = ReachMethod::Guest(GuestLogin::new(&netns, number));
    LabHost { netns, reach, device: "d0".to_owned(), ..host }
}

/// Returns the link `nth` of a host, counted from 1. Each link has a subnet of its own.
fn link(host: &str, number: u8, nth: u8) -> LabLink {
    LabLink {
        device: if nth == 1 { format!("ls-{host}") } else { format!("ls-{host}-{nth}") },
        // RFC 2544 reserves 198.18.0.0/15 for measurements.
        v4: Ipv4Addr::new(198, 18, nth - 1, number),
        v6: Ipv6Addr::new(0xfd00, 0x18, 0, u16::from(nth) - 1, 0, 0, 0, number.into()),
    }
}

/// The kind of device to which a MAC address belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MacOwner {
    Host,
    Port,
    Bridge,
}

/// Returns the locally administered MAC address of a device. It contains "LS". It is the same in every lab, so that
/// RSS, the tables of bridges and packet captures are the same in two runs.
pub(super) fn mac(of: MacOwner, number: usize) -> HardwareAddress {
    let role = match of {
        MacOwner::Host => 0,
        MacOwner::Port => 1,
        MacOwner::Bridge => 2,
    };
    HardwareAddress(vec![0x02, b'L', b'S', 0, role, u8::try_from(number).unwrap_or(u8::MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::choose::find;
    use crate::topology::registry::TopologyPlan;

    fn layout(words: &str) -> LabLayout {
        let words = [words.to_owned()];
        let TopologyPlan::Lab(plan) = find(&words).unwrap().plan(&words).unwrap() else { panic!("a lab") };
        LabLayout::new("00ab12".parse().unwrap(), plan)
    }

    #[test]
    fn everything_follows_from_id_and_plan() {
        let switch = layout("lab:switch:32");
        assert_eq!(switch.namespaces()[..2], ["ls-00ab12-sw", "ls-00ab12-h0"]);
        let last = switch.hosts.last().unwrap();
        assert_eq!((last.device.as_str(), last.v4), ("ls-h31", Ipv4Addr::new(198, 18, 0, 32)));
        let names: std::collections::HashSet<_> = switch.namespaces().into_iter().collect();
        assert_eq!(names.len(), 33);
        let wan = layout("lab:wan:rate=10G");
        assert_eq!(wan.namespaces(), ["ls-00ab12-wan", "ls-00ab12-a", "ls-00ab12-b"]);
        assert_eq!(wan.link_ports(), ["ls-p0", "ls-p1"]);
        let wan = layout("lab:wan:pairs=2");
        let names: Vec<_> = wan.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!((names, wan.plan.pairs.clone()), (vec!["a", "b", "a2", "b2"], vec![[0, 1], [2, 3]]));
        assert_eq!(wan.link_ports(), ["ls-link-a", "ls-link-b"]);
        let guests = layout("lab:vm:6.1,6.12");
        assert_eq!(guests.namespaces(), ["ls-00ab12-vm"]);
        let [a, b] = guests.hosts.as_slice() else { panic!("two guests") };
        let [ReachMethod::Guest(to_a), ReachMethod::Guest(to_b)] = [&a.reach, &b.reach] else {
            panic!("ssh")
        };
        assert_eq!((a.device.as_str(), b.v4), ("d0", Ipv4Addr::new(198, 18, 0, 2)));
        assert_eq!([&to_a.netns, &to_b.netns], [&a.netns, &b.netns]);
        assert_eq!([&*to_a.destination, &*to_b.destination], ["root@10.78.0.1", "root@10.78.0.2"]);
        for layout in [switch, wan, guests] {
            assert!(layout.namespaces().iter().all(|name| is_own(&layout.id, name)));
        }
    }

    #[test]
    fn the_last_hosts_port_is_the_trunk() {
        let rates = |words: &str| {
            let layout = layout(words);
            let Some((_, LabInterconnect::Bridge(rates))) = layout.middle() else { panic!("a bridge") };
            rates.of(layout.hosts.len()).collect::<Vec<_>>()
        };
        assert_eq!(rates("lab:switch:2"), [None, None]);
        assert_eq!(rates("lab:switch:3,port=100M"), [Some(100_000_000), Some(100_000_000), None]);
        assert_eq!(rates("lab:switch:2,trunk=2.5G,port=1G"), [Some(1_000_000_000), Some(2_500_000_000)]);
    }

    #[test]
    fn ids_from_files_cannot_name_anything_else() {
        assert!(LabId::random().unwrap().to_string().parse::<LabId>().is_ok());
        for bad in ["", "abc", "ABCDEF", "../../", "00ab1g", "00ab123"] {
            assert!(bad.parse::<LabId>().is_err(), "{bad}");
        }
        let id = "00ab12".parse().unwrap();
        for bad in ["", "ls-00ab12-", "ls-00ab13-a", "ls-00ab12-../x", "ls-00ab12-a b", "eth"] {
            assert!(!is_own(&id, bad), "{bad}");
        }
    }
}
