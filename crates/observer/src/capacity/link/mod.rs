//! Reads the limits of the link towards the peer: its speed, its PCI Express link, its NUMA node and the nodes of its
//! interrupts. All values are from sysfs (Documentation/ABI/testing/sysfs-class-net and sysfs-bus-pci); none is
//! measured.

mod interrupts;
mod pcie;

use std::path::{Path, PathBuf};

use landspeed_record::PcieLink;
use landspeed_record::units::BitRate;

use crate::capacity::SystemFiles;
use crate::procfile::word;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LinkLimits {
    /// The nominal speed of the link; `None` if it is unknown.
    pub rate_bps: Option<BitRate>,
    pub pcie: Option<PcieLink>,
    pub node: Option<u32>,
    /// The NUMA nodes of the processors that handle the link's interrupts.
    pub irq_nodes: Vec<u32>,
    /// Notes on properties that could not be read, with the reasons.
    pub notes: Vec<String>,
}

pub(crate) fn limits(link: &str, files: &SystemFiles) -> LinkLimits {
    let mut found = LinkLimits::default();
    let folder = Path::new("sys/class/net").join(link);
    // The name of a link must be a single component of a path.
    if link.is_empty() || link.contains('/') || link.starts_with('.') || !files.path(&folder).exists() {
        found.notes.push(format!(
            "link '{}' is not in /sys/class/net: its speed and bus are unknown",
            link.escape_debug()
        ));
        return found;
    }
    let Some(device) = device(files, &folder) else {
        found.notes.push(format!(
            "{link} is a virtual link: it has no speed of its own (what its driver states means nothing), no \
             bus and no interrupts"
        ));
        return found;
    };
    match files.number::<i64>(folder.join("speed")) {
        Some(mbps) if mbps > 0 => found.rate_bps = Some(BitRate(mbps as f64 * 1e6)),
        _ => {
            found.notes.push(format!("{link} does not tell its speed (it is down, or its driver knows none)"))
        }
    }
    found.node = node(&device);
    read_bus(link, &device, files, &mut found);
    found
}

fn read_bus(link: &str, device: &Path, files: &SystemFiles, found: &mut LinkLimits) {
    match pcie::read(device) {
        Some(reading) => {
            found.notes.extend(reading.note.map(|note| format!("{link}: {note}")));
            found.pcie = Some(reading.link);
        }
        None => found
            .notes
            .push(format!("{link} is not on PCI Express, or this host hides it: its bus is unknown")),
    }
    let irqs = interrupts::of(device);
    found.irq_nodes = interrupts::nodes(files, &irqs);
    if found.irq_nodes.is_empty() {
        found.notes.push(format!("the processors that take the interrupts of {link} are unknown"));
    }
}

/// Returns the NUMA node of a device. If the device has none, as a virtio device, returns the node of the device above
/// it. Returns `None` if there is no node, which sysfs shows as -1.
fn node(device: &Path) -> Option<u32> {
    let own = |folder: &Path| word(folder.join("numa_node"))?.parse().ok();
    own(device).or_else(|| own(device.parent()?))
}

fn device(files: &SystemFiles, folder: &Path) -> Option<PathBuf> {
    files.path(folder.join("device")).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::link::fixture::{NIC, SysfsTree};

    #[test]
    fn a_25_gigabit_port_in_a_slot_of_half_the_lanes() {
        let tree = SysfsTree::with_nic();
        let found = limits("ens1", &tree.files());
        assert_eq!(found.rate_bps, Some(BitRate(25e9)));
        assert_eq!(found.node, Some(1));
        assert_eq!(found.irq_nodes, [0, 1]);
        let pcie = found.pcie.unwrap();
        assert_eq!((pcie.width, pcie.most_width), (4, 8));
        assert_eq!(found.notes, Vec::<String>::new());
    }

    #[test]
    fn a_device_without_a_node_has_that_of_the_one_it_sits_on() {
        let tree = SysfsTree::with_nic();
        tree.write(&format!("{NIC}/virtio3/vendor"), "0x1af4\n");
        assert_eq!(node(&tree.path(&format!("{NIC}/virtio3"))), Some(1));
        tree.write(&format!("{NIC}/numa_node"), "-1\n");
        assert_eq!(node(&tree.path(NIC)), None);
    }

    #[test]
    fn a_virtual_link_and_an_absent_one_are_reported_as_such() {
        let tree = SysfsTree::with_nic();
        tree.write("sys/class/net/veth0/speed", "10000\n");
        let found = limits("veth0", &tree.files());
        assert_eq!((found.rate_bps, found.pcie), (None, None));
        assert!(found.notes[0].contains("virtual link"));
        for absent in ["eth9", "", "../net/ens1", "."] {
            let found = limits(absent, &tree.files());
            assert!(found.rate_bps.is_none() && found.notes[0].contains("not in /sys/class/net"), "{absent}");
        }
    }

    #[test]
    fn the_links_of_this_host_have_figures_or_notes() {
        let files = SystemFiles::default();
        for link in files.names("sys/class/net") {
            let found = limits(&link, &files);
            assert!(found.rate_bps.is_some() || !found.notes.is_empty(), "{link}");
        }
    }
}

/// The sysfs files of a host with a NIC.
#[cfg(test)]
mod fixture {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    pub(super) struct SysfsTree(tempfile::TempDir);

    /// The folder of the PCIe port. [`NIC`] is the folder of the device below it.
    const PORT: &str = "sys/devices/pci0000:3a/0000:3a:00.0";
    pub(super) const NIC: &str = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";

    impl SysfsTree {
        pub(super) fn files(&self) -> SystemFiles {
            SystemFiles::below(self.0.path())
        }

        pub(super) fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        pub(super) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// Writes the files of two nodes with two processors each, and of a 25 Gb/s NIC with eight lanes in a slot
        /// wired for four.
        pub(super) fn with_nic() -> Self {
            let tree = SysfsTree(tempfile::tempdir().unwrap());
            let files = [
                ("current_link_speed", "8.0 GT/s PCIe\n"),
                ("max_link_speed", "8.0 GT/s PCIe\n"),
                ("current_link_width", "4\n"),
                ("max_link_width", "8\n"),
            ];
            for (name, text) in files {
                tree.write(&format!("{NIC}/{name}"), text);
                let port = if name == "max_link_width" { "4\n" } else { text };
                tree.write(&format!("{PORT}/{name}"), port);
            }
            tree.write(&format!("{NIC}/numa_node"), "1\n");
            tree.write(&format!("{NIC}/net/ens1/speed"), "25000\n");
            tree.write(&format!("{NIC}/config"), super::pcie::config_of_a_nic());
            for (irq, cpu) in [(120, "0"), (121, "3")] {
                tree.write(&format!("{NIC}/msi_irqs/{irq}"), "msix\n");
                tree.write(&format!("proc/irq/{irq}/smp_affinity_list"), "0-3\n");
                tree.write(&format!("proc/irq/{irq}/effective_affinity_list"), format!("{cpu}\n"));
            }
            for cpu in 0..4 {
                tree.write(&format!("sys/devices/system/cpu/cpu{cpu}/node{}/cpulist", cpu / 2), "");
            }
            fs::create_dir_all(tree.path("sys/class/net")).unwrap();
            let net = "../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/net/ens1";
            symlink(net, tree.path("sys/class/net/ens1")).unwrap();
            symlink("../../../0000:3b:00.0", tree.path(&format!("{NIC}/net/ens1/device"))).unwrap();
            tree
        }
    }
}
