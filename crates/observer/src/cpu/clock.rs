//! The CPU clocks of threads and processes.

use std::io;

use landspeed_record::units::{CpuNanos, Nanos};

use crate::Error;

/// The CPU clock of a thread or a process, as an id for clock_gettime(2).
///
/// Such a clock id consists of the complement of the thread's or process's id, shifted left by three bits, and a tag in
/// the low bits (`MAKE_THREAD_CPUCLOCK` and `MAKE_PROCESS_CPUCLOCK` in include/linux/posix-timers_types.h).
/// pthread_getcpuclockid(3) and clock_getcpuclockid(3) return the same ids, which are part of the ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskClock {
    id: libc::clockid_t,
    tid: i32,
}

/// The tag CPUCLOCK_SCHED: the run time that the scheduler measures, not ticks.
const SCHED: i32 = 2;
/// The tag CPUCLOCK_PERTHREAD_MASK: the clock of a thread, not of a process.
const PER_THREAD: i32 = 4;

impl TaskClock {
    /// Returns the clock of one thread of this process. A reading is exact even while the thread runs on another core,
    /// unlike /proc/TID/schedstat.
    pub(crate) fn thread(tid: i32) -> Self {
        TaskClock { id: (!tid << 3) | PER_THREAD | SCHED, tid }
    }

    /// Returns the clock of another process, or of a kernel thread. While the process runs, a reading may lack the last
    /// tick.
    pub(crate) fn process(pid: i32) -> Self {
        TaskClock { id: (!pid << 3) | SCHED, tid: pid }
    }

    /// Returns the clock of this process: the sum over all its threads, including those that have ended. A reading may
    /// lack the last tick of threads that run on other cores, unless their own clocks were read just before.
    pub(super) fn own_process() -> Self {
        TaskClock { id: libc::CLOCK_PROCESS_CPUTIME_ID, tid: std::process::id().cast_signed() }
    }

    /// Returns the run time until now.
    pub(crate) fn read(self) -> Result<CpuNanos, Error> {
        gettime(self.id)
            .map(CpuNanos)
            .map_err(|source| Error::io("read the CPU clock of", format!("thread {}", self.tid), source))
    }
}

/// Returns the time of CLOCK_MONOTONIC, the clock of all readings of a window.
pub(crate) fn now() -> Nanos {
    Nanos(gettime(libc::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists on every Linux"))
}

fn gettime(id: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to fill; an id that names no clock is refused with EINVAL.
    if unsafe { libc::clock_gettime(id, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gettid() -> i32 {
        rustix::thread::gettid().as_raw_nonzero().get()
    }

    #[test]
    fn the_clock_by_thread_id_is_the_threads_own_clock() {
        let own = || gettime(libc::CLOCK_THREAD_CPUTIME_ID).unwrap();
        let before = own();
        let by_id = TaskClock::thread(gettid()).read().unwrap();
        let after = own();
        assert!((before..=after).contains(&by_id.0), "{before} {by_id:?} {after}");
    }

    #[test]
    fn a_thread_that_ended_or_is_of_another_process_is_refused_by_name() {
        let ended = std::thread::spawn(|| TaskClock::thread(gettid())).join().unwrap();
        assert!(ended.read().is_err(), "refused, not zero");
        let error = TaskClock::thread(1).read().unwrap_err().to_string();
        assert!(error.contains("thread 1"), "{error}");
    }
}
