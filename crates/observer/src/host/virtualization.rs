//! Detects whether the machine is a virtual machine, and its hypervisor, from the files that systemd-detect-virt(1)
//! reads. An empty result only means that there is no sign of a hypervisor, because a hypervisor can hide itself.

use crate::files::SystemFiles;

/// The beginnings of firmware texts, and the hypervisor that each text means. The first match counts: virtual machines
/// of Amazon also report KVM.
const FIRMWARE: [(&str, &str); 13] = [
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "virtualbox"),
    ("VirtualBox", "virtualbox"),
    ("Xen", "xen"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "hyperv"),
];

/// DMI fields that contain the firmware's text.
const FIELDS: [&str; 4] = ["product_name", "sys_vendor", "board_vendor", "bios_vendor"];

/// The clock sources that only virtual machines have, and the hypervisor that each one means.
const CLOCKS: [(&str, &str); 4] =
    [("kvm-clock", "kvm"), ("xen", "xen"), ("hyperv_clocksource_tsc_page", "hyperv"), ("hyperv", "hyperv")];

/// Returns the hypervisor's name, such as "kvm" or "vmware". Returns "unknown hypervisor" if the only sign is a flag of
/// the processor, and an empty text if there is no sign.
pub(super) fn detect(root: &SystemFiles) -> String {
    let found = root
        .word("sys/hypervisor/type")
        .or_else(|| firmware(root))
        .or_else(|| clock(root))
        .or_else(|| processor_flag(root).then(|| "unknown hypervisor".to_owned()));
    found.unwrap_or_default()
}

fn firmware(root: &SystemFiles) -> Option<String> {
    let words: Vec<String> =
        FIELDS.iter().filter_map(|field| root.word(format!("sys/class/dmi/id/{field}"))).collect();
    let says = |prefix: &str| words.iter().any(|word| word.starts_with(prefix));
    let known = FIRMWARE.iter().find(|(prefix, _)| says(prefix)).map(|(_, name)| (*name).to_owned());
    // The vendor alone is not enough, because Microsoft also makes physical machines.
    known.or_else(|| (says("Microsoft Corporation") && says("Virtual Machine")).then(|| "hyperv".to_owned()))
}

fn clock(root: &SystemFiles) -> Option<String> {
    let clocks = root.word("sys/devices/system/clocksource/clocksource0/available_clocksource")?;
    let has = |name: &str| clocks.split_whitespace().any(|clock| clock == name);
    CLOCKS.iter().find(|(clock, _)| has(clock)).map(|(_, name)| (*name).to_owned())
}

fn processor_flag(root: &SystemFiles) -> bool {
    let text = root.word("proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "hypervisor")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::files_below;

    #[test]
    fn each_sign_is_read_and_metal_shows_none() {
        const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        for (files, name) in [
            (vec![("sys/class/dmi/id/sys_vendor", "QEMU\n")], "qemu"),
            (vec![("sys/class/dmi/id/sys_vendor", "Amazon EC2"), (CLOCKS, "tsc kvm-clock")], "amazon"),
            (
                vec![
                    ("sys/class/dmi/id/product_name", "Surface"),
                    ("sys/class/dmi/id/sys_vendor", "Microsoft Corporation"),
                ],
                "",
            ),
            (
                vec![
                    ("sys/class/dmi/id/product_name", "Virtual Machine"),
                    ("sys/class/dmi/id/sys_vendor", "Microsoft Corporation"),
                ],
                "hyperv",
            ),
            (vec![(CLOCKS, "tsc kvm-clock \n")], "kvm"),
            (vec![("sys/hypervisor/type", "xen\n"), (CLOCKS, "tsc")], "xen"),
            (vec![("proc/cpuinfo", "flags : fpu hypervisor lm\n")], "unknown hypervisor"),
            (vec![("proc/cpuinfo", "flags : fpu lm\n"), (CLOCKS, "tsc hpet acpi_pm")], ""),
            (vec![], ""),
        ] {
            let folder = files_below(&files);
            assert_eq!(detect(&SystemFiles::below(folder.path())), name, "{files:?}");
        }
    }
}
