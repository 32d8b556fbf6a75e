//! Describes the network interfaces of the calling thread's network namespace.
//!
//! Their properties are read over netlink, because /sys/class/net shows the namespace in which sysfs was mounted.
//! netlink does not report the NUMA node and the interrupts. They are read from sysfs below the device's bus address,
//! which is the same in every namespace.

use std::net::IpAddr;

use landspeed_kernel::netlink::{Error, Ethtool, InterfaceAddress, Link, Rtnl, SettingGroup};
use landspeed_kernel::rdma::{self, RdmaPort};
use landspeed_record::LinkFacts;
use landspeed_record::units::cpu_list;

use super::irqs::receive_cpus;
use crate::files::SystemFiles;

/// The interfaces, and notes on their properties that could not be read.
pub(super) struct HostLinks {
    pub(super) links: Vec<LinkFacts>,
    pub(super) notes: Vec<String>,
}

/// Returns all interfaces but loopback, in the order of their indices.
pub(super) fn all(root: &SystemFiles) -> Result<HostLinks, Error> {
    let rtnl = Rtnl::open()?;
    let mut found = HostLinks { links: Vec::new(), notes: Vec::new() };
    let ethtool = Ethtool::open().map_err(|error| found.notes.push(format!("links: {error}"))).ok();
    let addresses = rtnl.all_addresses()?;
    let ports = rdma::ports();
    for link in rtnl.links()? {
        if link.flags & libc::IFF_LOOPBACK as u32 == 0 {
            let soft_rdma = soft_rdma(&ports, &link.name);
            let facts = facts(root, &link, &addresses, ethtool.as_ref());
            found.links.push(LinkFacts { soft_rdma, ..facts });
        }
    }
    Ok(found)
}

/// Returns the name of the RDMA device in software on an interface; `None` if there is none.
fn soft_rdma(ports: &[RdmaPort], interface: &str) -> Option<String> {
    let port = ports.iter().find(|port| port.is_soft && port.interface == interface)?;
    Some(port.device.clone())
}

fn facts(
    root: &SystemFiles,
    link: &Link,
    addresses: &[InterfaceAddress],
    ethtool: Option<&Ethtool>,
) -> LinkFacts {
    // Virtual devices have a kind. Some of them report a driver, a bus or a speed that means nothing and is ignored.
    let driver = Ethtool::driver(&link.name).unwrap_or_default();
    let physical = link.kind.is_none();
    let pci = pci_address(&driver.bus).filter(|_| physical).map(|bus| format!("sys/bus/pci/devices/{bus}"));
    let (rx_queues, tx_queues) = queues(link, ethtool);
    let speed = ethtool.filter(|_| physical).and_then(|ethtool| ethtool.speed_mbps(&link.name).ok()?);
    LinkFacts {
        name: link.name.clone(),
        index: link.index,
        driver: link.kind.clone().unwrap_or(driver.driver),
        mtu_bytes: link.mtu,
        mac: link.mac.to_string(),
        speed_mbps: speed.map(u64::from),
        addresses: ordered(link.index, addresses),
        // -1 if the machine has no nodes.
        numa_node: pci.as_deref().and_then(|device| root.number(format!("{device}/numa_node"))),
        local_cpus: pci.as_deref().and_then(|device| local_cpus(root, device)).unwrap_or_default(),
        rx_queues,
        tx_queues,
        irq_cpus: pci.as_deref().map(|device| receive_cpus(root, device)).unwrap_or_default(),
        upper: link.master,
        lower: lower(link),
        up: link.up && link.carrier,
        soft_rdma: None,
    }
}

/// Returns the index of the interface below a virtual one; `None` if there is none. netlink uses the same field for the
/// other end of a veth pair, which is not below this interface.
pub(super) fn lower(link: &Link) -> Option<u32> {
    let is_stacked = link.kind.as_deref().is_some_and(|kind| kind != "veth") && link.peer_netnsid.is_none();
    link.peer.filter(|lower| is_stacked && *lower != 0 && *lower != link.index)
}

/// Returns `bus` if it is an address such as "0000:3b:00.0"; `None` for any other text. The check is needed because the
/// result becomes part of a path.
fn pci_address(bus: &str) -> Option<&str> {
    let valid = bus.len() >= 7 && bus.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.');
    (valid && bus.contains(':') && !bus.contains("..")).then_some(bus)
}

/// Returns the processors of the NUMA node of the PCI device in the folder `device`; `None` if they are unknown.
fn local_cpus(root: &SystemFiles, device: &str) -> Option<Vec<u32>> {
    cpu_list(&root.word(format!("{device}/local_cpulist"))?)
}

/// Returns the numbers of receive queues and of transmit queues: the queues in use if the driver reports them,
/// otherwise the allocated queues.
fn queues(link: &Link, ethtool: Option<&Ethtool>) -> (u32, u32) {
    let channels = ethtool
        .and_then(|ethtool| ethtool.settings(SettingGroup::Channels, &link.name).ok())
        .unwrap_or_default();
    let of =
        |own: &str| channels.get(own).copied().unwrap_or(0) + channels.get("combined").copied().unwrap_or(0);
    let or = |used: u32, allocated: u32| if used == 0 { allocated } else { used };
    (or(of("rx"), link.rx_queues), or(of("tx"), link.tx_queues))
}

/// Returns the addresses of a link, IPv4 first and link-local last.
fn ordered(index: u32, addresses: &[InterfaceAddress]) -> Vec<IpAddr> {
    let mut own: Vec<IpAddr> = addresses.iter().filter(|a| a.index == index).map(|a| a.address).collect();
    own.sort_by_key(|address| (link_local(address), address.is_ipv6()));
    own
}

fn link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_kernel::netlink::{VethEnd, in_throwaway};

    #[test]
    fn ipv4_comes_first_and_link_local_last() {
        let ips = ["fe80::1", "2001:db8::1", "169.254.1.1", "10.0.0.1"].map(|ip| ip.parse().unwrap());
        let mut addresses: Vec<InterfaceAddress> =
            ips.iter().map(|ip| InterfaceAddress::new(7, *ip, 24)).collect();
        addresses.push(InterfaceAddress::new(8, "10.0.0.2".parse().unwrap(), 24));
        let order: Vec<String> = ordered(7, &addresses).iter().map(ToString::to_string).collect();
        assert_eq!(order, ["10.0.0.1", "2001:db8::1", "169.254.1.1", "fe80::1"]);
    }

    #[test]
    fn only_a_bus_address_becomes_part_of_a_path() {
        assert_eq!(pci_address("0000:3b:00.0"), Some("0000:3b:00.0"));
        for bad in ["", "N/A", "usb-0000:00:14.0-1", "../../etc", "0000:3b:00..", "vif-0", "tap"] {
            assert_eq!(pci_address(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_veth_pair_in_a_namespace_of_its_own_is_described() {
        let outcome = in_throwaway(|| {
            let end = |name| VethEnd { name, mac: None, netns: None, queues: 2 };
            if let Err(error) = Rtnl::open().unwrap().create_veth(&end("one"), &end("two")) {
                eprintln!("SKIP: no veth here: {error}");
                return;
            }
            let links = all(&SystemFiles::default()).unwrap().links;
            let one = links.iter().find(|link| link.name == "one").expect("the pair's end");
            assert_eq!((one.driver.as_str(), one.mtu_bytes, one.up), ("veth", 1500, false));
            assert_eq!((one.speed_mbps, one.irq_cpus.len(), one.mac.len()), (None, 0, 17));
            assert_eq!((one.rx_queues, one.tx_queues), (2, 2), "{one:?}");
        });
        outcome.unwrap_or_else(|error| eprintln!("SKIP: making a network namespace needs root: {error}"));
    }
}
