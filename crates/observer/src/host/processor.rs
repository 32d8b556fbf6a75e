//! Reads facts about the processors and the NUMA nodes.

use landspeed_record::HostFacts;
use landspeed_record::units::cpu_list;

use crate::files::SystemFiles;

pub(super) fn fill(root: &SystemFiles, facts: &mut HostFacts) {
    facts.cpu_model = model(root).unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    facts.cpu_clock_hz = clock(root);
    facts.cpus = online(root, "sys/devices/system/cpu/online").unwrap_or_else(threads);
    // A kernel without CONFIG_NUMA has no folder for nodes. The machine then counts as one node.
    facts.numa_nodes = online(root, "sys/devices/system/node/online").unwrap_or(1);
    facts.governor = root.word("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").unwrap_or_default();
}

/// Returns the first value of the field `key` in the text of /proc/cpuinfo.
fn named(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key && !value.trim().is_empty()).then(|| value.trim().to_owned())
    })
}

/// Returns the clock of the first processor in Hz. /proc/cpuinfo has "cpu MHz : 2445.406" on x86, "clock :
/// 3425.000000MHz" on POWER, and nothing on ARM.
fn clock(root: &SystemFiles) -> Option<f64> {
    let text = root.word("proc/cpuinfo")?;
    let megahertz = named(&text, "cpu MHz").or_else(|| named(&text, "clock"))?;
    let megahertz: f64 = megahertz.trim_end_matches("MHz").parse().ok()?;
    (megahertz > 0.0).then_some(megahertz * 1e6)
}

/// Returns the name of the processor's model. On ARM, where /proc/cpuinfo has no name, returns its numbers.
fn model(root: &SystemFiles) -> Option<String> {
    let text = root.word("proc/cpuinfo")?;
    let named = |key: &str| named(&text, key);
    named("model name").or_else(|| named("cpu")).or_else(|| arm(&named))
}

/// Returns the numbers "CPU implementer" and "CPU part" of an ARM processor, which lscpu(1) translates to names.
fn arm(named: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    Some(format!("ARM implementer {} part {}", named("CPU implementer")?, named("CPU part")?))
}

fn online(root: &SystemFiles, path: &str) -> Option<u32> {
    let members = cpu_list(&root.word(path)?)?;
    u32::try_from(members.len()).ok().filter(|count| *count > 0)
}

fn threads() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::files_below;

    #[test]
    fn clocks_of_three_architectures() {
        for (text, hz) in [
            ("processor\t: 0\ncpu MHz\t\t: 2445.5\n", Some(2.4455e9)),
            ("processor : 0\nclock : 3425.000000MHz\n", Some(3.425e9)),
            ("processor: 0\nCPU part\t: 0xd0c\n", None),
            ("cpu MHz : fast\n", None),
        ] {
            let folder = files_below(&[("proc/cpuinfo", text)]);
            assert_eq!(clock(&SystemFiles::below(folder.path())), hz, "{text:?}");
        }
    }

    #[test]
    fn models_of_three_architectures() {
        for (text, name) in [
            ("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n", Some("AMD EPYC")),
            ("processor : 0\ncpu : POWER9, altivec supported\n", Some("POWER9, altivec supported")),
            (
                "processor: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
                Some("ARM implementer 0x41 part 0xd0c"),
            ),
            ("processor: 0\nmodel name\t:\n", None),
        ] {
            let folder = files_below(&[("proc/cpuinfo", text)]);
            assert_eq!(model(&SystemFiles::below(folder.path())).as_deref(), name, "{text:?}");
        }
    }
}
