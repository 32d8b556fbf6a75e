//! Run time of the processes that this one has started, and of those that they have.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use landspeed_units::CpuNanos;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::clock::Clock;
use crate::procfile::{self, Stat};

/// Looks until no child has ended meanwhile, so often at most.
const LOOKS: usize = 3;

/// What they have run up to now: those that live up to a tick late, those that ended once they were waited for.
pub(super) fn ran() -> CpuNanos {
    let mut ended = waited_for();
    for _ in 0..LOOKS {
        let alive = alive();
        let before = std::mem::replace(&mut ended, waited_for());
        if ended == before {
            return ended + alive;
        }
    }
    // Children come and go all the time: none lives long enough to matter.
    ended
}

/// RUSAGE_CHILDREN: children that have ended and were waited for, with all that they had waited for themselves.
fn waited_for() -> CpuNanos {
    // SAFETY: an rusage is valid as zeros.
    let mut usage: libc::rusage = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `usage` is a valid rusage for the kernel to fill.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } != 0 {
        return CpuNanos(0);
    }
    let nanos = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0) * 1000
    };
    CpuNanos(nanos(usage.ru_utime) + nanos(usage.ru_stime))
}

/// Those that are there, ended ones that wait for their parent included.
fn alive() -> CpuNanos {
    // Most ends have none: then one call says so.
    let any = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
    if matches!(any, Err(rustix::io::Errno::CHILD)) {
        return CpuNanos(0);
    }
    let all = all();
    let own = std::process::id();
    let descendants = all.iter().filter(|(pid, _)| descends(&all, **pid, own));
    descendants
        .map(|(pid, stat)| Clock::process(pid.cast_signed()).read().unwrap_or_default() + stat.children_ran)
        .sum()
}

/// The processes that this one has started and that are there, and those that they have.
pub(crate) fn descendants() -> Vec<u32> {
    let (all, own) = (all(), std::process::id());
    all.keys().copied().filter(|pid| descends(&all, *pid, own)).collect()
}

/// Whether `own` started `pid`, or one that did, and so on.
fn descends(all: &BTreeMap<u32, Stat>, mut pid: u32, own: u32) -> bool {
    // Ids are used again: what is read one by one may be a circle.
    for _ in 0..all.len() {
        match all.get(&pid) {
            Some(stat) if stat.parent == own => return true,
            Some(stat) => pid = stat.parent,
            None => return false,
        }
    }
    false
}

pub(super) fn all() -> BTreeMap<u32, Stat> {
    let pids = procfile::numbered("/proc").unwrap_or_default().into_iter();
    pids.filter_map(|pid| Some((pid, Stat::read(&format!("/proc/{pid}/stat")).ok()?))).collect()
}
