//! Finds the interrupts of a device, and the NUMA nodes of the processors that handle them.

use std::path::Path;

use landspeed_record::units::cpu_list;

use crate::capacity::SystemFiles;
use crate::capacity::cores::node_of;
use crate::procfile::word;

/// Returns the numbers of a device's message-signalled interrupts (MSI), or of its single interrupt line if it has
/// none. For a virtio device, returns the interrupts of the PCI device in the folder above.
pub(super) fn of(device: &Path) -> Vec<u32> {
    [Some(device), device.parent()]
        .into_iter()
        .flatten()
        .map(signalled)
        .find(|irqs| !irqs.is_empty())
        .or_else(|| {
            let line = word(device.join("irq"))?.parse().ok().filter(|&irq| irq > 0)?;
            Some(vec![line])
        })
        .unwrap_or_default()
}

fn signalled(device: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(device.join("msi_irqs")).into_iter().flatten().flatten();
    let mut irqs: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    irqs.sort_unstable();
    irqs
}

/// Returns the NUMA nodes of the processors that handle the interrupts `irqs`, sorted, without duplicates. The
/// processors are read from the effective affinity if the kernel reports it, otherwise from the set of allowed
/// processors.
pub(super) fn nodes(files: &SystemFiles, irqs: &[u32]) -> Vec<u32> {
    let cpus = irqs.iter().filter_map(|irq| {
        let list = |name: &str| files.word(format!("proc/irq/{irq}/{name}"));
        cpu_list(&list("effective_affinity_list").or_else(|| list("smp_affinity_list"))?)
    });
    let mut nodes: Vec<u32> = cpus.flatten().filter_map(|cpu| node_of(files, cpu)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::link::fixture::{NIC, SysfsTree};

    #[test]
    fn where_interrupts_go_counts_before_where_they_may_go() {
        let tree = SysfsTree::with_nic();
        let irqs = of(&tree.path(NIC));
        assert_eq!(irqs, [120, 121]);
        assert_eq!(nodes(&tree.files(), &irqs), [0, 1]);
        assert_eq!(nodes(&tree.files(), &[120]), [0]);
        std::fs::remove_file(tree.path("proc/irq/120/effective_affinity_list")).unwrap();
        assert_eq!(nodes(&tree.files(), &[120]), [0, 1]);
        assert!(nodes(&tree.files(), &[9]).is_empty());
    }

    #[test]
    fn a_device_without_messages_has_its_line() {
        let tree = SysfsTree::with_nic();
        tree.write("sys/devices/platform/eth/irq", "17\n");
        assert_eq!(of(&tree.path("sys/devices/platform/eth")), [17]);
        tree.write("sys/devices/platform/eth/irq", "0\n");
        assert!(of(&tree.path("sys/devices/platform/eth")).is_empty());
    }
}
