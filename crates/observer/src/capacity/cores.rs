//! Finds the processors that this process may use and their caches, and runs threads that are pinned to a processor.

use landspeed_kernel::namespace::on_fresh_thread;
use landspeed_record::units::cpu_list;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::capacity::{Error, SystemFiles};

const CPU: &str = "sys/devices/system/cpu";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedCores {
    /// The processors that this process may use, but only one for each physical core, in ascending order.
    pub all: Vec<u32>,
    /// The processor that single-core measurements run on.
    pub one: u32,
}

impl AllowedCores {
    /// Returns the cores that this process may use. `one` is the first core on NUMA node `node`, or the first of all
    /// cores if the node has none or is `None`.
    ///
    /// # Errors
    /// Returns an error if the process's affinity cannot be read, or if it may use no core.
    pub(crate) fn allowed(files: &SystemFiles, node: Option<u32>) -> Result<Self, Error> {
        let set = sched_getaffinity(None)
            .map_err(|error| Error::io("read the affinity of", "this process", error))?;
        let allowed: Vec<u32> =
            (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect();
        AllowedCores::of(files, &allowed, node)
            .ok_or_else(|| Error::Unable("this process may use no core".into()))
    }

    fn of(files: &SystemFiles, allowed: &[u32], node: Option<u32>) -> Option<Self> {
        let all: Vec<u32> = allowed.iter().copied().filter(|&cpu| leads(files, cpu, allowed)).collect();
        let near = all.iter().copied().find(|&cpu| node.is_some() && node_of(files, cpu) == node);
        Some(AllowedCores { one: near.or(all.first().copied())?, all })
    }

    /// Returns a core other than `one`, if there is one.
    pub(crate) fn other(&self) -> Option<u32> {
        self.all.iter().copied().find(|&core| core != self.one)
    }
}

/// Returns true if `cpu` is the lowest allowed hardware thread of its physical core.
fn leads(files: &SystemFiles, cpu: u32, allowed: &[u32]) -> bool {
    let siblings = files.word(format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"));
    let siblings = siblings.and_then(|list| cpu_list(&list)).unwrap_or_default();
    siblings.iter().filter(|other| allowed.contains(other)).all(|&other| cpu <= other)
}

/// Returns the NUMA node of a processor; `None` if it is unknown. The processor's folder in sysfs has a link named
/// after the node, such as "node0".
pub(crate) fn node_of(files: &SystemFiles, cpu: u32) -> Option<u32> {
    let names = files.names(format!("{CPU}/cpu{cpu}"));
    names.iter().find_map(|name| name.strip_prefix("node")?.parse().ok())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuCache {
    pub(crate) level: u32,
    pub(crate) bytes: u64,
    shared: Vec<u32>,
}

/// Returns the data and unified caches of one processor, in ascending order of level.
pub(crate) fn caches(files: &SystemFiles, cpu: u32) -> Vec<CpuCache> {
    let folder = format!("{CPU}/cpu{cpu}/cache");
    let mut caches: Vec<CpuCache> = files
        .names(&folder)
        .iter()
        .filter(|name| name.starts_with("index"))
        .filter_map(|index| cache(files, &format!("{folder}/{index}"), cpu))
        .collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

fn cache(files: &SystemFiles, folder: &str, cpu: u32) -> Option<CpuCache> {
    if files.word(format!("{folder}/type"))? == "Instruction" {
        return None;
    }
    let shared = files.word(format!("{folder}/shared_cpu_list")).and_then(|list| cpu_list(&list));
    Some(CpuCache {
        level: files.number(format!("{folder}/level"))?,
        bytes: files.number::<String>(format!("{folder}/size")).and_then(|size| size_of_cache(&size))?,
        shared: shared.unwrap_or_else(|| vec![cpu]),
    })
}

/// Parses a cache size as sysfs prints it: "32768K".
fn size_of_cache(text: &str) -> Option<u64> {
    let scale = |suffix, unit: u64| {
        text.strip_suffix(suffix).and_then(|n| n.parse::<u64>().ok()).and_then(|n| n.checked_mul(unit))
    };
    scale('K', 1 << 10).or_else(|| scale('M', 1 << 20)).or_else(|| text.parse().ok())
}

/// Returns the total bytes of the last-level caches that `cores` use; `None` if the host does not report them. A cache
/// that several cores share counts once.
pub(crate) fn last_level_bytes(files: &SystemFiles, cores: &[u32]) -> Option<u64> {
    let mut seen: Vec<CpuCache> = Vec::new();
    for &core in cores {
        let last = caches(files, core).pop()?;
        if !seen.contains(&last) {
            seen.push(last);
        }
    }
    (!seen.is_empty()).then(|| seen.iter().map(|cache| cache.bytes).sum())
}

/// Pins the calling thread to one core.
pub(crate) fn pin(core: u32) -> Result<(), Error> {
    let refused = |error: std::io::Error| Error::io("pin a thread to", format!("core {core}"), error);
    if core as usize >= CpuSet::MAX_CPU {
        return Err(refused(std::io::ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    set.set(core as usize);
    sched_setaffinity(None, &set).map_err(|error| refused(error.into()))
}

/// Runs `work` on a new thread that is pinned to `core`, and returns its result. A panic in `work` is raised again in
/// the calling thread.
pub(crate) fn on_core<T: Send>(
    core: u32,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    on_fresh_thread(|| pin(core).and_then(|()| work()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::files::tests::write;

    /// Writes the sysfs files of four processors: two cores of two threads each, (0, 2) on node 0 and (1, 3) on node 1.
    /// Each core has its own L3 cache.
    fn two_sockets(root: &Path) {
        for cpu in 0..4 {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            let pair = if cpu % 2 == 0 { "0,2\n" } else { "1,3\n" };
            write(root, &format!("{folder}/topology/thread_siblings_list"), pair);
            write(root, &format!("{folder}/node{}/cpulist", cpu % 2), pair);
            let levels = [
                ("1", "Data", "48K"),
                ("1", "Instruction", "32K"),
                ("2", "Unified", "2048K"),
                ("3", "Unified", "36M"),
            ];
            for (index, (level, kind, size)) in levels.iter().enumerate() {
                let cache = format!("{folder}/cache/index{index}");
                write(root, &format!("{cache}/level"), level);
                write(root, &format!("{cache}/type"), kind);
                write(root, &format!("{cache}/size"), size);
                write(root, &format!("{cache}/shared_cpu_list"), pair);
            }
        }
    }

    #[test]
    fn one_thread_a_core_and_the_one_near_the_link() {
        let tree = tempfile::tempdir().unwrap();
        two_sockets(tree.path());
        let files = SystemFiles::below(tree.path());
        let all = [0, 1, 2, 3];
        assert_eq!(AllowedCores::of(&files, &all, None), Some(AllowedCores { all: vec![0, 1], one: 0 }));
        assert_eq!(AllowedCores::of(&files, &all, Some(1)), Some(AllowedCores { all: vec![0, 1], one: 1 }));
        // If the lower sibling may not be used, the other one represents the core.
        assert_eq!(
            AllowedCores::of(&files, &[2, 3], Some(7)),
            Some(AllowedCores { all: vec![2, 3], one: 2 })
        );
        assert_eq!(AllowedCores::of(&files, &[], None), None);
    }

    #[test]
    fn each_last_level_cache_counts_once() {
        let tree = tempfile::tempdir().unwrap();
        two_sockets(tree.path());
        let files = SystemFiles::below(tree.path());
        let mib = 1 << 20;
        assert_eq!(last_level_bytes(&files, &[0]), Some(36 * mib));
        assert_eq!(last_level_bytes(&files, &[0, 2]), Some(36 * mib));
        assert_eq!(last_level_bytes(&files, &[0, 1]), Some(72 * mib));
        assert_eq!(last_level_bytes(&files, &[9]), None);
        let sizes: Vec<u64> = caches(&files, 0).iter().map(|cache| cache.bytes).collect();
        assert_eq!(sizes, [48 << 10, 2 << 20, 36 << 20]);
    }

    #[test]
    fn this_process_may_use_the_core_that_is_chosen() {
        let cores = AllowedCores::allowed(&SystemFiles::default(), None).unwrap();
        assert!(cores.all.contains(&cores.one));
        on_core(cores.one, || Ok(())).unwrap();
        assert!(on_core(u32::MAX, || Ok(())).unwrap_err().to_string().contains("core"));
    }
}
