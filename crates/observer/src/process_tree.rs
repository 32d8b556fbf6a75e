//! The processes that exist, and which of them started which.

use std::collections::{BTreeMap, BTreeSet};

use crate::procfile::{self, TaskStat};

/// Returns the existing processes by their ids.
pub(crate) fn all() -> BTreeMap<u32, TaskStat> {
    let pids = procfile::numbered("/proc").unwrap_or_default().into_iter();
    pids.filter_map(|pid| Some((pid, TaskStat::read(&format!("/proc/{pid}/stat")).ok()?))).collect()
}

/// Returns the existing processes that this one has started, directly or indirectly.
pub(crate) fn descendants() -> Vec<u32> {
    let (all, own) = (all(), BTreeSet::from([std::process::id()]));
    all.keys().copied().filter(|pid| descends(&all, *pid, &own)).collect()
}

/// Returns the processes of `roots` that exist, and the existing processes that they have started, directly or
/// indirectly.
pub(crate) fn with_descendants(roots: &BTreeSet<u32>) -> BTreeSet<u32> {
    let all = all();
    let related = |pid: &u32| roots.contains(pid) || descends(&all, *pid, roots);
    all.keys().copied().filter(related).collect()
}

/// Returns true if `pid` is a descendant of one of `roots`, by the parents in `all`.
pub(crate) fn descends(all: &BTreeMap<u32, TaskStat>, mut pid: u32, roots: &BTreeSet<u32>) -> bool {
    // Process ids are reused, and the parents are read one after the other, so their chain may form a loop. The limit
    // ends the search.
    for _ in 0..all.len() {
        match all.get(&pid) {
            Some(stat) if roots.contains(&stat.parent) => return true,
            Some(stat) => pid = stat.parent,
            None => return false,
        }
    }
    false
}
