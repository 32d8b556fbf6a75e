//! Determines how the kernel accounts for interrupt time, which decides how processor time must be measured. The
//! documentation of the module `cpu` explains the two kinds of accounting.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use landspeed_record::{CpuAccounting, LinkFacts};

use crate::procfile;

/// Returns true if the running kernel measures interrupt time and subtracts it from the run time of tasks
/// (CONFIG_IRQ_TIME_ACCOUNTING, and not switched off). Returns `None` if the kernel's configuration could not be read
/// from /proc/config.gz, /boot or the module folder.
pub(crate) fn interrupt_time_is_apart() -> Option<bool> {
    Some(enabled(configuration()?, "CONFIG_IRQ_TIME_ACCOUNTING")? && !switched_off())
}

/// Returns the method by which processor time must be measured on a host with these `links`.
///
/// Without interrupt accounting, the run time of the threads is the whole cost only if every link is virtual. If a link
/// is not virtual, or if the kernel's accounting is unknown, the method is `Stat`, which is coarse but always valid.
pub(crate) fn accounting(interrupt_time_is_apart: Option<bool>, links: &[LinkFacts]) -> CpuAccounting {
    let virtual_only = !links.is_empty() && links.iter().all(|link| is_virtual(&link.driver));
    match interrupt_time_is_apart {
        Some(true) => CpuAccounting::TasksAndIrq,
        Some(false) if virtual_only => CpuAccounting::Tasks,
        _ => CpuAccounting::Stat,
    }
}

/// Returns true for drivers of virtual links, which have no interrupts and pass packets on in the context of the
/// sender.
fn is_virtual(driver: &str) -> bool {
    matches!(driver, "veth" | "bridge" | "ifb" | "dummy")
}

/// Returns true if an option is on. Returns `None` if the configuration cannot be read up to its line. The rest of the
/// file is not decompressed, because this runs at the start of each session.
fn enabled(mut configuration: impl BufRead, option: &str) -> Option<bool> {
    let mut line = String::new();
    while configuration.read_line(&mut line).ok()? > 0 {
        let value = |line: &str, rest: &str| line.strip_prefix(option).is_some_and(|value| value == rest);
        let said = line.trim_end();
        if value(said, "=y") {
            return Some(true);
        }
        if said.strip_prefix("# ").is_some_and(|said| value(said, " is not set")) {
            return Some(false);
        }
        line.clear();
    }
    Some(false)
}

/// Returns true if interrupt accounting is switched off. On x86 the kernel switches it off at boot for `tsc=noirqtime`,
/// and later if it finds the TSC unstable. It then removes the TSC from the list of clocks (arch/x86/kernel/tsc.c).
fn switched_off() -> bool {
    const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let asked = procfile::word("/proc/cmdline").is_some_and(|line| line.contains("tsc=noirqtime"));
    let tsc =
        procfile::word(CLOCKS).is_none_or(|clocks| clocks.split_whitespace().any(|clock| clock == "tsc"));
    asked || (cfg!(target_arch = "x86_64") && !tsc)
}

/// The longest configuration that is read, in bytes.
const MOST: u64 = 4 << 20;

fn configuration() -> Option<Box<dyn BufRead>> {
    let release = procfile::word("/proc/sys/kernel/osrelease").filter(|release| !release.contains('/'))?;
    let plain = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    packed().or_else(|| plain.iter().find_map(|path| Some(bounded(File::open(path).ok()?))))
}

/// Reads the configuration from /proc/config.gz (CONFIG_IKCONFIG_PROC). It is preferred to the other files, because it
/// is certainly that of the running kernel.
fn packed() -> Option<Box<dyn BufRead>> {
    Some(bounded(flate2::read::GzDecoder::new(File::open("/proc/config.gz").ok()?)))
}

fn bounded(file: impl Read + 'static) -> Box<dyn BufRead> {
    Box::new(BufReader::new(file.take(MOST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(drivers: &[&str]) -> Vec<LinkFacts> {
        drivers.iter().map(|driver| LinkFacts { driver: (*driver).into(), ..LinkFacts::default() }).collect()
    }

    #[test]
    fn interrupt_accounting_wins_virtual_links_come_next_and_ignorance_is_coarse() {
        let (on, off) = (Some(true), Some(false));
        assert_eq!(accounting(on, &links(&["veth"])), CpuAccounting::TasksAndIrq);
        assert_eq!(accounting(off, &links(&["veth", "bridge"])), CpuAccounting::Tasks);
        assert_eq!(accounting(off, &links(&["veth", "ixgbe"])), CpuAccounting::Stat);
        assert_eq!(accounting(off, &[]), CpuAccounting::Stat);
        assert_eq!(accounting(None, &links(&["veth"])), CpuAccounting::Stat);
    }

    #[test]
    fn an_option_is_on_only_if_its_line_is_y() {
        let text: &[u8] = b"# CONFIG_A is not set\nCONFIG_AB=y\nCONFIG_B=y\nCONFIG_C=m\nCONFIG_D=y\n";
        let enabled = |option| enabled(text, option);
        assert_eq!(["CONFIG_B", "CONFIG_D"].map(enabled), [Some(true); 2]);
        assert_eq!(["CONFIG_A", "CONFIG_C", "CONFIG_E"].map(enabled), [Some(false); 3]);
    }

    #[test]
    fn reading_ends_with_the_options_line_and_an_unreadable_file_is_unknown() {
        // The byte 0xff is in no text.
        let text: &[u8] = b"CONFIG_A=y\n# CONFIG_B is not set\n\xff\nCONFIG_C=y\n";
        let enabled = |option| enabled(text, option);
        assert_eq!(["CONFIG_A", "CONFIG_B", "CONFIG_C"].map(enabled), [Some(true), Some(false), None]);
    }

    #[test]
    fn this_kernels_configuration_is_found_where_it_has_one() {
        let there = std::path::Path::new("/proc/config.gz").exists();
        assert!(!there || interrupt_time_is_apart().is_some());
    }
}
