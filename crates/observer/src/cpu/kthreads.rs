//! The kernel threads that carry packets: ksoftirqd/N, and napi/LINK-N of links with threaded NAPI.

use std::collections::BTreeMap;

use super::clock::Clock;
use crate::procfile;

/// kthreadd, the parent of every kernel thread.
const KTHREADD: i32 = 2;

/// What is said where none can be seen.
pub(super) const NONE: &str = "cpu: run time of ksoftirqd: no kernel thread is visible from this PID namespace; \
     run the agent outside of the container";

/// Kernel threads that were looked at, and whether they carry packets. Names are read once for each
/// thread: a machine with 128 cores has over a thousand kernel threads.
#[derive(Debug, Default)]
pub(super) struct Carriers {
    known: BTreeMap<i32, bool>,
}

impl Carriers {
    /// Looks at all kernel threads.
    pub(super) fn find() -> Self {
        let mut carriers = Carriers::default();
        carriers.refresh();
        carriers
    }

    /// Looks at those that came since: `threaded` makes napi threads when it is turned on.
    pub(super) fn refresh(&mut self) {
        let now = kernel_threads();
        self.known.retain(|pid, _| now.binary_search(pid).is_ok());
        for pid in now {
            self.known.entry(pid).or_insert_with(|| {
                procfile::word(format!("/proc/{pid}/comm")).is_some_and(|name| carries_packets(&name))
            });
        }
    }

    /// The clocks of those that carry packets.
    pub(super) fn clocks(&self) -> impl Iterator<Item = Clock> {
        self.known.iter().filter(|(_, carries)| **carries).map(|(pid, _)| Clock::process(*pid))
    }
}

fn carries_packets(name: &str) -> bool {
    name.starts_with("ksoftirqd/") || name.starts_with("napi/")
}

/// Process ids of kthreadd's children, ascending.
fn kernel_threads() -> Vec<i32> {
    // One read where the kernel has CONFIG_PROC_CHILDREN; else every process's parent is asked for.
    let children = procfile::read(&format!("/proc/{KTHREADD}/task/{KTHREADD}/children"));
    let mut pids: Vec<i32> = match children {
        Ok(text) if kthreadd_is_itself() => {
            text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
        }
        Ok(_) => Vec::new(),
        Err(_) => processes().filter(|pid| parent(*pid) == Some(KTHREADD)).collect(),
    };
    pids.sort_unstable();
    pids
}

/// In a container, process 2 is just some program.
fn kthreadd_is_itself() -> bool {
    procfile::word("/proc/2/comm").as_deref() == Some("kthreadd")
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent of a process: the second field after the name, which may itself hold ')' and spaces.
fn parent(pid: i32) -> Option<i32> {
    let stat = procfile::read(&format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_ksoftirqd_for_each_core() {
        if !kthreadd_is_itself() {
            eprintln!("SKIP: kernel threads are not visible from this PID namespace");
            return;
        }
        let cores = super::super::stat::read().unwrap().len();
        let carriers = Carriers::find();
        assert!(carriers.clocks().count() >= cores, "{carriers:?}");
        for clock in carriers.clocks() {
            clock.read().unwrap();
        }
    }

    #[test]
    fn both_ways_of_finding_them_agree() {
        if !kthreadd_is_itself() {
            eprintln!("SKIP: kernel threads are not visible from this PID namespace");
            return;
        }
        let by_parent: Vec<i32> = processes().filter(|pid| parent(*pid) == Some(KTHREADD)).collect();
        let softirqs = |pids: &[i32]| -> Vec<String> {
            let mut names: Vec<_> =
                pids.iter().filter_map(|p| procfile::word(format!("/proc/{p}/comm"))).collect();
            names.retain(|name| carries_packets(name));
            names.sort();
            names
        };
        assert_eq!(softirqs(&kernel_threads()), softirqs(&by_parent));
    }

    #[test]
    fn only_packet_carriers_count() {
        assert!(carries_packets("ksoftirqd/0") && carries_packets("napi/eth0-8193"));
        assert!(!carries_packets("kworker/0:1") && !carries_packets("ksoftirqdx"));
    }
}
