//! Measures the run time of this process's descendants.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;

use landspeed_record::units::CpuNanos;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::clock::TaskClock;
use crate::process_tree::{all, descends};

/// The largest number of attempts to read the run times. An attempt is repeated if a child ended during it.
const LOOKS: usize = 3;

/// Returns the total run time of all descendants of this process until now. For descendants that are running, the last
/// tick may be missing. Descendants that have ended count if their parent waits for them.
pub(super) fn ran() -> CpuNanos {
    let mut ended = waited_for();
    for _ in 0..LOOKS {
        let alive = alive();
        let before = std::mem::replace(&mut ended, waited_for());
        if ended == before {
            return ended + alive;
        }
    }
    // Children ended during every attempt. Such children run so shortly that the time of the existing ones does not
    // matter.
    ended
}

/// Reads RUSAGE_CHILDREN: the run time of the children that have ended and for which this process has waited. It
/// includes the time of descendants for which these children had waited.
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

/// Returns the run time of the existing descendants, including those that have ended but for which their parent has not
/// waited yet.
fn alive() -> CpuNanos {
    // Most processes that take part in a trial have no children. This single call detects it, without reading /proc.
    let any = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
    if matches!(any, Err(rustix::io::Errno::CHILD)) {
        return CpuNanos(0);
    }
    let all = all();
    let own = BTreeSet::from([std::process::id()]);
    let descendants = all.iter().filter(|(pid, _)| descends(&all, **pid, &own));
    descendants
        .map(|(pid, stat)| {
            TaskClock::process(pid.cast_signed()).read().unwrap_or_default() + stat.children_ran
        })
        .sum()
}
