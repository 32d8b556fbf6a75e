//! Run time of the processes that this one has started, and of those that they have.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use landspeed_units::CpuNanos;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::clock::Clock;
use crate::procfile;

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
    let own = std::process::id().cast_signed();
    let descendants = all.iter().filter(|(pid, _)| descends(&all, **pid, own));
    descendants.map(|(pid, stat)| Clock::process(*pid).read().unwrap_or_default() + stat.waited_for).sum()
}

/// Whether `own` started `pid`, or one that did, and so on.
fn descends(all: &BTreeMap<i32, Stat>, mut pid: i32, own: i32) -> bool {
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

/// All processes that are there.
pub(super) fn all() -> BTreeMap<i32, Stat> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, Stat::parse(&procfile::word(format!("/proc/{pid}/stat"))?)?))).collect()
}

/// What is used of /proc/PID/stat (proc_pid_stat(5)).
pub(super) struct Stat {
    pub(super) parent: i32,
    /// Run time of the children that it has waited for, in whole ticks.
    waited_for: CpuNanos,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        // The name may itself hold ')' and spaces.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let waited_for = CpuNanos(ticks(13)?.saturating_add(ticks(14)?).saturating_mul(tick));
        Some(Stat { parent: fields.get(1)?.parse().ok()?, waited_for })
    }
}
