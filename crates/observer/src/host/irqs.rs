//! Finds the processors that handle a PCI device's receive interrupts.

use landspeed_record::units::cpu_list;

use crate::files::SystemFiles;
use crate::procfile::numbered;

/// Words in the names of interrupts that do not signal packets.
const NO_PACKETS: [&str; 9] = ["config", "control", "async", "misc", "mbx", "mgmnt", "adminq", "lsc", "ptp"];
/// Words in the names of interrupts that signal only received packets.
const RECEIVE: [&str; 2] = ["input", "rx"];

/// Returns the processor of each packet interrupt of the PCI device in the folder `device`, in the order of the
/// interrupt numbers. This is also the order of the queues, because drivers request interrupts in this order. If a
/// driver has separate receive interrupts, only these count.
pub(super) fn receive_cpus(root: &SystemFiles, device: &str) -> Vec<u32> {
    let numbers = numbered(root.path(device).join("msi_irqs")).unwrap_or_default();
    let named: Vec<(u32, String)> =
        numbers.into_iter().filter_map(|irq| Some((irq, handler(root, irq)?))).collect();
    let only_receiving = named.iter().any(|(_, name)| receives_only(name));
    named
        .iter()
        .filter(|(_, name)| !only_receiving || receives_only(name))
        .filter_map(|(irq, _)| processor(root, *irq))
        .collect()
}

/// Returns the name of the interrupt's handler in lower case; `None` if the interrupt is not in use or does not signal
/// packets.
fn handler(root: &SystemFiles, irq: u32) -> Option<String> {
    let name = root.word(format!("sys/kernel/irq/{irq}/actions"))?.to_ascii_lowercase();
    (!NO_PACKETS.iter().any(|word| name.contains(word))).then_some(name)
}

fn receives_only(name: &str) -> bool {
    RECEIVE.iter().any(|word| name.contains(word)) && !name.contains("tx")
}

/// Returns the processor that handles an interrupt. Kernels before 4.15 report only the set of allowed processors, of
/// which the first one handles the interrupt.
fn processor(root: &SystemFiles, irq: u32) -> Option<u32> {
    let set = root
        .word(format!("proc/irq/{irq}/effective_affinity_list"))
        .or_else(|| root.word(format!("proc/irq/{irq}/smp_affinity_list")))?;
    cpu_list(&set)?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::files_below;

    /// Creates the files of a device's interrupts. Each is given as (number, handler, processors).
    fn device(irqs: &[(u32, &str, &str)]) -> tempfile::TempDir {
        let mut files = Vec::new();
        for (irq, name, cpus) in irqs {
            files.push((format!("dev/msi_irqs/{irq}"), "msix\n"));
            files.push((format!("sys/kernel/irq/{irq}/actions"), *name));
            files.push((format!("proc/irq/{irq}/effective_affinity_list"), *cpus));
        }
        files_below(&files)
    }

    #[test]
    fn receive_interrupts_in_queue_order_without_the_rest() {
        for (irqs, cpus) in [
            (
                vec![
                    (37, "virtio2-config\n", "0"),
                    (38, "virtio2-input.0\n", "1"),
                    (39, "virtio2-output.0\n", "0"),
                ],
                vec![1],
            ),
            (
                vec![(100, "eth0-TxRx-1\n", "5"), (99, "eth0-TxRx-0\n", "4-7"), (101, "eth0\n", "9")],
                vec![4, 5, 9],
            ),
            (vec![(9, "mlx5_async@pci:0000:3b\n", "1"), (10, "mlx5_comp0@pci:0000:3b\n", "2")], vec![2]),
            (vec![(9, "\n", "1"), (10, "eth0-rx-0", "garbage")], vec![]),
            (vec![], vec![]),
        ] {
            let folder = device(&irqs);
            assert_eq!(receive_cpus(&SystemFiles::below(folder.path()), "dev"), cpus, "{irqs:?}");
        }
    }
}
