//! Measures the run time of this process's helper threads: the threads that one end of a trial uses besides its
//! workers.
//!
//! A transport may have threads whose ids are unknown. So the helpers' time is the time of the whole process, including
//! its ended threads, minus the time of the known threads. Known threads are the workers of trials, whose time is
//! counted separately, and the agent's own threads, which belong to no trial (docs/decisions/0025).

use std::collections::BTreeMap;

use landspeed_record::units::CpuNanos;
use parking_lot::Mutex;

use super::clock::TaskClock;
use crate::{Error, procfile};

static KNOWN: Mutex<KnownThreads> = Mutex::new(KnownThreads { threads: BTreeMap::new(), past: CpuNanos(0) });

struct KnownThreads {
    threads: BTreeMap<i32, KnownThread>,
    /// The run time of threads that are no longer known, during the time in which they were known.
    past: CpuNanos,
}

struct KnownThread {
    clock: TaskClock,
    /// The thread's run time at the moment when it became known.
    before: CpuNanos,
    /// The number of claims that contain the thread.
    holders: u32,
}

impl KnownThread {
    /// Returns the thread's run time since it became known. Returns zero if the thread has ended; its time then counts
    /// as a helper's time.
    fn ran(&self) -> CpuNanos {
        self.clock.read().map_or(CpuNanos(0), |now| now - self.before)
    }
}

impl KnownThreads {
    fn ran(&self) -> CpuNanos {
        self.past + self.threads.values().map(KnownThread::ran).sum()
    }
}

/// A claim. The threads in it are known until the claim is dropped.
pub(super) struct ThreadClaim(Vec<i32>);

impl ThreadClaim {
    /// Returns a claim for `threads`. Ids that are not threads of this process are ignored.
    pub(super) fn of(threads: &[i32]) -> Self {
        let mut known = KNOWN.lock();
        let mut held = Vec::new();
        for &tid in threads {
            let clock = TaskClock::thread(tid);
            if let Some(entry) = known.threads.get_mut(&tid) {
                entry.holders += 1;
            } else if let Ok(before) = clock.read() {
                known.threads.insert(tid, KnownThread { clock, before, holders: 1 });
            } else {
                continue;
            }
            held.push(tid);
        }
        ThreadClaim(held)
    }
}

impl Drop for ThreadClaim {
    fn drop(&mut self) {
        let mut known = KNOWN.lock();
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
    static LEFT_OUT: ThreadClaim = ThreadClaim::of(&[rustix::thread::gettid().as_raw_nonzero().get()]);
}

/// Excludes the calling thread's run time from the cost of all trials until the thread ends. The threads of an agent
/// that coordinate, watch, or communicate with the controller call it.
pub fn leave_out_this_thread() {
    LEFT_OUT.with(|_| ());
}

/// Returns the total run time, until now, of all threads of this process that are not known.
pub(super) fn ran() -> Result<CpuNanos, Error> {
    let known = KNOWN.lock();
    for tid in threads()?.filter(|tid| !known.threads.contains_key(tid)) {
        // Reading a thread's clock updates its part of the process's clock, which otherwise may lack the last tick. A
        // failure does no harm: a thread that has just ended needs no update.
        let _ = TaskClock::thread(tid).read();
    }
    let ran = known.ran();
    Ok(TaskClock::own_process().read()? - ran)
}

fn threads() -> Result<impl Iterator<Item = i32>, Error> {
    const PATH: &str = "/proc/self/task";
    let tids = procfile::numbered(PATH).map_err(|source| Error::io("list", PATH, source))?;
    Ok(tids.into_iter().map(u32::cast_signed))
}
