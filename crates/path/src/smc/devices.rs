//! The RDMA devices of this host, as /sys/class/infiniband describes them.

use std::fs;
use std::path::{Path, PathBuf};

use landspeed_kernel::netlink::Rtnl;

use crate::count::RdmaDevice;

const CLASS: &str = "/sys/class/infiniband";
/// The files of a port that count the packets that it sent: that of rxe, and that of most adapters.
const SENT: [&str; 2] = ["hw_counters/sent_pkts", "counters/port_xmit_packets"];

/// A port of an RDMA device over Ethernet (RoCE).
pub(super) struct RdmaPort {
    pub(super) device: String,
    interface: String,
    /// True if the port has an address (GID) of RoCE v1, which SMC-R of version 1 takes.
    pub(super) has_roce_v1: bool,
    folder: PathBuf,
    /// Packets that the port had sent when it was read.
    sent: Option<u64>,
}

/// Returns the ports whose network interface is in this network namespace.
pub(super) fn ports() -> Vec<RdmaPort> {
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

/// Returns the text of a file without white space around it; `None` if it is empty or cannot be read, as files of
/// unused addresses.
fn text(file: PathBuf) -> Option<String> {
    let text = fs::read_to_string(file).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn sent(folder: &Path) -> Option<u64> {
    SENT.iter().find_map(|file| text(folder.join(file))?.parse().ok())
}

impl RdmaPort {
    /// Reads a port from its folder, such as rxe0/ports/1. Returns `None` if the port has no network interface.
    fn read(folder: PathBuf) -> Option<Self> {
        let device = folder.parent()?.parent()?.file_name()?.to_string_lossy().into_owned();
        let of_addresses = |what: &str| entries(&folder.join("gid_attrs").join(what)).into_iter();
        let interface = of_addresses("ndevs").find_map(text)?;
        let has_roce_v1 = of_addresses("types").filter_map(text).any(|kind| kind == "IB/RoCE v1");
        let sent = sent(&folder);
        Some(RdmaPort { device, interface, has_roce_v1, folder, sent })
    }

    /// Returns the device with the packets that it has sent since it was read.
    pub(super) fn meanwhile(&self) -> RdmaDevice {
        let now = sent(&self.folder).zip(self.sent);
        RdmaDevice {
            device: self.device.clone(),
            interface: self.interface.clone(),
            packets_sent: now.map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a port with an address, as the kernel describes it, and an address that is not used.
    fn port(class: &Path, [device, interface, kind]: [&str; 3]) -> PathBuf {
        let folder = class.join(device).join("ports/1");
        for (file, text) in [("gid_attrs/ndevs", interface), ("gid_attrs/types", kind)] {
            fs::create_dir_all(folder.join(file)).unwrap();
            fs::write(folder.join(file).join("0"), "\n").unwrap();
            fs::write(folder.join(file).join("1"), format!("{text}\n")).unwrap();
        }
        folder
    }

    #[test]
    fn devices_are_read_with_their_interfaces_and_what_they_sent() {
        let class = tempfile::tempdir().unwrap();
        let adapter = port(class.path(), ["mlx5_0", "eth0", "IB/RoCE v1"]);
        let soft = port(class.path(), ["rxe0", "eth1", "RoCE v2"]);
        fs::create_dir_all(class.path().join("mlx5_1/ports/1/gid_attrs/ndevs")).unwrap();
        fs::create_dir_all(soft.join("hw_counters")).unwrap();
        fs::write(soft.join("hw_counters/sent_pkts"), "100\n").unwrap();
        let found = all(class.path());
        fs::write(soft.join("hw_counters/sent_pkts"), "142\n").unwrap();
        assert_eq!(found.iter().map(|port| port.has_roce_v1).collect::<Vec<_>>(), [true, false]);
        let told = |device: &str, interface: &str, packets_sent| RdmaDevice {
            device: device.into(),
            interface: interface.into(),
            packets_sent,
        };
        let seen: Vec<RdmaDevice> = found.iter().map(RdmaPort::meanwhile).collect();
        assert_eq!(seen, [told("mlx5_0", "eth0", None), told("rxe0", "eth1", Some(42))]);
        assert_eq!(sent(&adapter), None);
        assert!(all(&class.path().join("none")).is_empty());
    }
}
