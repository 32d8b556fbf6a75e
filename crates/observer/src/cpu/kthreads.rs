//! The kernel threads that process packets: ksoftirqd/N, and napi/LINK-N of links with threaded NAPI.

use std::collections::BTreeMap;

use super::clock::TaskClock;
use crate::process_tree::all;
use crate::procfile;

/// The process id of kthreadd, the parent of every kernel thread.
const KTHREADD: u32 = 2;

/// The note that is added if no kernel threads are visible in this PID namespace.
pub(super) const NONE: &str = "cpu: run time of ksoftirqd: no kernel thread is visible from this PID namespace; \
     run the agent outside of the container";

/// The way in which a kernel thread processes packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketThreadKind {
    /// ksoftirqd/N, which runs deferred softirqs.
    Softirq,
    /// napi/LINK-N, which polls a device whose setting `threaded` is on.
    Napi,
}

/// The kernel threads by process id, each with its kind; `None` if it does not process packets. The name of each thread
/// is read only once, because a machine with 128 cores has over a thousand kernel threads.
#[derive(Debug, Default)]
pub(super) struct PacketThreads {
    known: BTreeMap<u32, Option<PacketThreadKind>>,
}

impl PacketThreads {
    /// Returns the kernel threads that exist now.
    pub(super) fn find() -> Self {
        let mut packet_threads = PacketThreads::default();
        packet_threads.refresh();
        packet_threads
    }

    /// Adds the kernel threads that were started since the last call, and removes those that have ended. For example,
    /// the kernel starts napi threads when a link's setting `threaded` is turned on.
    pub(super) fn refresh(&mut self) {
        let now = kernel_threads();
        self.known.retain(|pid, _| now.binary_search(pid).is_ok());
        for pid in now {
            self.known.entry(pid).or_insert_with(|| {
                procfile::word(format!("/proc/{pid}/comm")).and_then(|name| packet_thread_kind(&name))
            });
        }
    }

    /// Returns the CPU clocks of the kernel threads of the kind `what`.
    pub(super) fn clocks(&self, what: PacketThreadKind) -> impl Iterator<Item = TaskClock> {
        self.known
            .iter()
            .filter(move |(_, does)| **does == Some(what))
            .map(|(pid, _)| TaskClock::process(pid.cast_signed()))
    }
}

fn packet_thread_kind(name: &str) -> Option<PacketThreadKind> {
    match name.split_once('/')?.0 {
        "ksoftirqd" => Some(PacketThreadKind::Softirq),
        "napi" => Some(PacketThreadKind::Napi),
        _ => None,
    }
}

/// Returns the process ids of kthreadd's children, ascending.
fn kernel_threads() -> Vec<u32> {
    // With CONFIG_PROC_CHILDREN one file lists the children. Without it, the parent of every process must be read.
    let children = procfile::read(&format!("/proc/{KTHREADD}/task/{KTHREADD}/children"));
    let mut pids: Vec<u32> = match children {
        Ok(text) if kthreadd_is_itself() => {
            text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
        }
        Ok(_) => Vec::new(),
        Err(_) => having_parent(KTHREADD),
    };
    pids.sort_unstable();
    pids
}

fn having_parent(parent: u32) -> Vec<u32> {
    all().into_iter().filter(|(_, stat)| stat.parent == parent).map(|(pid, _)| pid).collect()
}

/// Returns true if process 2 is kthreadd; in a container it may be any program.
fn kthreadd_is_itself() -> bool {
    procfile::word("/proc/2/comm").as_deref() == Some("kthreadd")
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
        let packet_threads = PacketThreads::find();
        assert!(packet_threads.clocks(PacketThreadKind::Softirq).count() >= cores, "{packet_threads:?}");
        for clock in packet_threads.clocks(PacketThreadKind::Softirq) {
            clock.read().unwrap();
        }
    }

    #[test]
    fn both_ways_of_finding_them_agree() {
        if !kthreadd_is_itself() {
            eprintln!("SKIP: kernel threads are not visible from this PID namespace");
            return;
        }
        let by_parent = having_parent(KTHREADD);
        let softirqs = |pids: &[u32]| -> Vec<String> {
            let mut names: Vec<_> =
                pids.iter().filter_map(|p| procfile::word(format!("/proc/{p}/comm"))).collect();
            names.retain(|name| packet_thread_kind(name).is_some());
            names.sort();
            names
        };
        assert_eq!(softirqs(&kernel_threads()), softirqs(&by_parent));
    }

    #[test]
    fn only_packet_carriers_count() {
        assert_eq!(packet_thread_kind("ksoftirqd/0"), Some(PacketThreadKind::Softirq));
        assert_eq!(packet_thread_kind("napi/eth0-8193"), Some(PacketThreadKind::Napi));
        assert!(
            packet_thread_kind("kworker/0:1").is_none()
                && packet_thread_kind("ksoftirqd").is_none()
                && packet_thread_kind("").is_none()
        );
    }
}
