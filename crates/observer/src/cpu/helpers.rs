//! Run time of this process outside its known threads: what a trial's end uses beside its workers.
//!
//! A transport may have threads of its own, which nobody names. So the whole process is counted, those of its threads
//! that have ended included, less the threads that are known: the workers of trials, which are counted by themselves,
//! and the agent's own threads, which are no trial's (docs/decisions/0025).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use landspeed_units::CpuNanos;

use super::clock::Clock;
use crate::{Error, procfile};

static KNOWN: Mutex<Known> = Mutex::new(Known { threads: BTreeMap::new(), past: CpuNanos(0) });

struct Known {
    threads: BTreeMap<i32, Entry>,
    /// What others ran while they were known.
    past: CpuNanos,
}

struct Entry {
    clock: Clock,
    /// What it had run before it was known.
    before: CpuNanos,
    /// How many know it.
    holders: u32,
}

impl Entry {
    /// What it ran since it is known. A thread that has ended is as unknown as if it had not been.
    fn ran(&self) -> CpuNanos {
        self.clock.read().map_or(CpuNanos(0), |now| now - self.before)
    }
}

impl Known {
    fn ran(&self) -> CpuNanos {
        self.past + self.threads.values().map(Entry::ran).sum()
    }
}

/// Threads that are known while this lives.
pub(super) struct Claim(Vec<i32>);

impl Claim {
    /// Makes `threads` known; those that are not of this process stay out.
    pub(super) fn of(threads: &[i32]) -> Self {
        let mut known = known();
        let mut held = Vec::new();
        for &tid in threads {
            let clock = Clock::thread(tid);
            if let Some(entry) = known.threads.get_mut(&tid) {
                entry.holders += 1;
            } else if let Ok(before) = clock.read() {
                known.threads.insert(tid, Entry { clock, before, holders: 1 });
            } else {
                continue;
            }
            held.push(tid);
        }
        Claim(held)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut known = known();
        for tid in &self.0 {
            let Some(entry) = known.threads.get_mut(tid) else { continue };
            entry.holders -= 1;
            if entry.holders == 0 {
                let ran = entry.ran();
                known.past += ran;
                known.threads.remove(tid);
            }
        }
    }
}

thread_local! {
    static LEFT_OUT: Claim = Claim::of(&[rustix::thread::gettid().as_raw_nonzero().get()]);
}

/// Leaves the calling thread out of every trial's cost until it ends. For threads of an agent that coordinate, watch
/// and talk to the controller.
pub fn leave_out_this_thread() {
    LEFT_OUT.with(|_| ());
}

/// What threads that are not known have run up to now.
pub(super) fn ran() -> Result<CpuNanos, Error> {
    let known = known();
    for tid in threads()?.filter(|tid| !known.threads.contains_key(tid)) {
        // Asking a thread's clock brings up to date what the process's clock says of it, which would else be a tick
        // late. One that has ended meanwhile is up to date.
        let _ = Clock::thread(tid).read();
    }
    let ran = known.ran();
    Ok(Clock::own_process().read()? - ran)
}

fn threads() -> Result<impl Iterator<Item = i32>, Error> {
    const PATH: &str = "/proc/self/task";
    let tids = procfile::numbered(PATH).map_err(|source| Error::io("list", PATH, source))?;
    Ok(tids.into_iter().map(u32::cast_signed))
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}
