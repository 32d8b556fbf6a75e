//! RDMA devices, as /sys/class/infiniband describes them.

use std::fs;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use crate::netlink::Rtnl;

const CLASS: &str = "/sys/class/infiniband";
/// The files of a port that count the packets that it sent: one for rxe, and one for most adapters.
const SENT: [&str; 2] = ["hw_counters/sent_pkts", "counters/port_xmit_packets"];
/// The description that rxe, the driver of RoCE in software, gives its devices.
const SOFT: &str = "rxe";
/// The address type of RoCE v1. Addresses of InfiniBand and iWARP have it too.
const ROCE_V1: &str = "IB/RoCE v1";

/// A port of an RDMA device.
#[derive(Debug)]
pub struct RdmaPort {
    /// Name of the device, such as "mlx5_0".
    pub device: String,
    /// Name of its network interface.
    pub interface: String,
    /// The addresses that are in use.
    pub gids: Vec<RdmaGid>,
    /// True if the device is an InfiniBand or RoCE device; false for iWARP, EFA and usNIC.
    pub is_ca: bool,
    /// True if the port speaks RoCE; false for InfiniBand and iWARP.
    pub is_roce: bool,
    /// True if the device is RoCE in software (rxe).
    pub is_soft: bool,
    folder: PathBuf,
}

/// An address of a port (GID).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdmaGid {
    pub address: Ipv6Addr,
    /// The protocol that uses the address, as the kernel names it: "IB/RoCE v1" or "RoCE v2".
    pub kind: String,
}

/// Returns the ports whose network interface is in this network namespace.
pub fn ports() -> Vec<RdmaPort> {
    let Ok(rtnl) = Rtnl::open() else { return Vec::new() };
    let mut ports = all(Path::new(CLASS));
    ports.retain(|port| rtnl.index_of(&port.interface).is_ok());
    ports
}

fn all(class: &Path) -> Vec<RdmaPort> {
    let folders = entries(class).into_iter().flat_map(|device| entries(&device.join("ports")));
    folders.filter_map(RdmaPort::read).collect()
}

/// Returns the entries of a folder in the order of their names; none if there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = read.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the text of a file without white space around it; `None` if it is empty or cannot be read, as for unused
/// addresses.
fn text(file: PathBuf) -> Option<String> {
    let text = fs::read_to_string(file).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

impl RdmaPort {
    /// Reads a port from its folder, such as rxe0/ports/1. Returns `None` if the port has no network interface.
    fn read(folder: PathBuf) -> Option<Self> {
        let device = folder.parent()?.parent()?;
        let is_ca = text(device.join("node_type")).is_some_and(|kind| kind.starts_with("1:"));
        let is_ethernet = text(folder.join("link_layer")).is_some_and(|layer| layer == "Ethernet");
        Some(RdmaPort {
            device: device.file_name()?.to_string_lossy().into_owned(),
            interface: interface(device, &folder, is_ethernet)?,
            gids: gids(&folder),
            is_ca,
            is_roce: is_ca && is_ethernet,
            is_soft: is_soft(device),
            folder,
        })
    }

    /// Returns true if the port has an address of RoCE v1.
    pub fn has_roce_v1(&self) -> bool {
        self.is_roce && self.gids.iter().any(|gid| gid.kind == ROCE_V1)
    }

    /// Returns the number of packets that the port has sent so far; `None` if the driver does not count them.
    pub fn packets_sent(&self) -> Option<u64> {
        SENT.iter().find_map(|file| text(self.folder.join(file))?.parse().ok())
    }
}

/// Returns the network interface of a port: the one of its addresses, which only Ethernet ports have, or else the one
/// of IP over InfiniBand.
fn interface(device: &Path, folder: &Path, is_ethernet: bool) -> Option<String> {
    let of_addresses = entries(&folder.join("gid_attrs/ndevs")).into_iter().find_map(text);
    if is_ethernet { of_addresses } else { of_addresses.or_else(|| over_infiniband(device, folder)) }
}

/// Returns the interface of IP over InfiniBand on a port. The kernel numbers ports from 1 in the name of their folder,
/// and from 0 in the interface's `dev_port`.
fn over_infiniband(device: &Path, folder: &Path) -> Option<String> {
    let port: u32 = folder.file_name()?.to_str()?.parse().ok()?;
    let number = port.checked_sub(1)?.to_string();
    let mut interfaces = entries(&device.join("device/net")).into_iter();
    let own = interfaces.find(|interface| text(interface.join("dev_port")).as_ref() == Some(&number))?;
    Some(own.file_name()?.to_string_lossy().into_owned())
}

fn gids(folder: &Path) -> Vec<RdmaGid> {
    let gid = |file: PathBuf| {
        let kind = text(folder.join("gid_attrs/types").join(file.file_name()?))?;
        let address: Ipv6Addr = text(file)?.parse().ok()?;
        (!address.is_unspecified()).then_some(RdmaGid { address, kind })
    };
    entries(&folder.join("gids")).into_iter().filter_map(gid).collect()
}

/// Returns true if a device is an rxe device. Only rxe reports the interface below it (`parent`), and rdma-ndd may
/// overwrite the description of any device.
fn is_soft(device: &Path) -> bool {
    let described = text(device.join("node_desc")).is_some_and(|words| words == SOFT);
    described || device.join("parent").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }
    }

    /// Makes a port with an address, as the kernel describes it, and an address that is not used.
    fn port(class: &Path, [device, interface, kind]: [&str; 3]) -> PathBuf {
        let folder = class.join(device).join("ports/1");
        write(&class.join(device), &[("node_type", "1: CA"), ("node_desc", "a host")]);
        write(
            &folder,
            &[
                ("link_layer", "Ethernet"),
                ("gids/0", "0000:0000:0000:0000:0000:0000:0000:0000"),
                ("gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001"),
                ("gid_attrs/ndevs/0", ""),
                ("gid_attrs/ndevs/1", interface),
                ("gid_attrs/types/0", ""),
                ("gid_attrs/types/1", kind),
            ],
        );
        folder
    }

    #[test]
    fn ports_are_read_with_their_interfaces_and_addresses() {
        let class = tempfile::tempdir().unwrap();
        port(class.path(), ["mlx5_0", "eth0", "IB/RoCE v1"]);
        port(class.path(), ["rxe0", "eth1", "RoCE v2"]);
        write(&class.path().join("rxe0"), &[("parent", "eth1")]);
        fs::create_dir_all(class.path().join("mlx5_1/ports/1/gid_attrs/ndevs")).unwrap();
        let found = all(class.path());
        let names: Vec<_> =
            found.iter().map(|port| [port.device.as_str(), port.interface.as_str()]).collect();
        assert_eq!(names, [["mlx5_0", "eth0"], ["rxe0", "eth1"]]);
        assert_eq!(found.iter().map(RdmaPort::has_roce_v1).collect::<Vec<_>>(), [true, false]);
        assert_eq!(found.iter().map(|port| port.is_soft).collect::<Vec<_>>(), [false, true]);
        assert!(found.iter().all(|port| port.is_ca));
        let gid = RdmaGid { address: "::ffff:10.0.0.1".parse().unwrap(), kind: "RoCE v2".into() };
        assert_eq!(found[1].gids, [gid]);
        assert!(all(&class.path().join("none")).is_empty());
    }

    #[test]
    fn a_port_of_infiniband_has_the_interface_of_its_hardware_and_no_roce() {
        let class = tempfile::tempdir().unwrap();
        let adapter = class.path().join("mlx4_0");
        write(&adapter, &[("node_type", "1: CA")]);
        write(&adapter, &[("device/net/ib0/dev_port", "0"), ("device/net/ib1/dev_port", "1")]);
        for port in ["ports/1", "ports/2"] {
            write(
                &adapter.join(port),
                &[
                    ("link_layer", "InfiniBand"),
                    ("gids/0", "fe80:0000:0000:0000:0002:c903:0000:0001"),
                    ("gid_attrs/types/0", "IB/RoCE v1"),
                ],
            );
        }
        let found = all(class.path());
        let names: Vec<_> = found.iter().map(|port| (port.interface.as_str(), port.gids.len())).collect();
        assert_eq!(names, [("ib0", 1), ("ib1", 1)]);
        assert!(found.iter().all(|port| port.is_ca && !port.is_roce && !port.has_roce_v1()));
    }

    #[test]
    fn a_port_of_roce_without_addresses_has_no_interface() {
        let class = tempfile::tempdir().unwrap();
        let adapter = class.path().join("mlx4_0");
        write(&adapter, &[("node_type", "1: CA"), ("device/net/eth0/dev_port", "0")]);
        write(&adapter.join("ports/1"), &[("link_layer", "Ethernet"), ("gid_attrs/ndevs/0", "")]);
        assert!(all(class.path()).is_empty());
    }

    #[test]
    fn a_device_of_iwarp_differs_from_one_of_roce() {
        let class = tempfile::tempdir().unwrap();
        port(class.path(), ["siw0", "eth0", "IB/RoCE v1"]);
        write(&class.path().join("siw0"), &[("node_type", "4: RNIC"), ("node_desc", "Software iWARP stack")]);
        let found = all(class.path());
        assert!(!found[0].is_ca && !found[0].is_soft && !found[0].is_roce && !found[0].has_roce_v1());
    }

    #[test]
    fn packets_are_counted_where_the_driver_counts_them() {
        let class = tempfile::tempdir().unwrap();
        let folder = port(class.path(), ["rxe0", "eth1", "RoCE v2"]);
        let found = all(class.path());
        assert_eq!(found[0].packets_sent(), None);
        for (file, packets) in [("counters/port_xmit_packets", 7), ("hw_counters/sent_pkts", 142)] {
            write(&folder, &[(file, &packets.to_string())]);
            assert_eq!(found[0].packets_sent(), Some(packets), "{file}");
        }
    }
}
