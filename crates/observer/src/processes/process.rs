//! The state of one watched process over a window.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_record::ProcessWatch;
use landspeed_record::units::CpuNanos;

use super::thread::{ThreadActivity, ThreadId, ThreadTimes, threads_of};
use crate::cpu::clock::TaskClock;
use crate::{Error, procfile};

/// The largest number of threads of one process whose activity is sampled. If there are more, the threads that had run
/// longest when the window opened are sampled.
const MOST_THREADS: usize = 64;

#[derive(Debug, Default)]
struct ThreadHistory {
    before: ThreadTimes,
    switches_before: u64,
    /// The number of samples by activity. An activity is the name of the kernel function in which the thread slept,
    /// "running", "asleep" or "stopped".
    waiting_in: BTreeMap<String, u32>,
    uninterruptible: u32,
}

/// A process that is watched in an open window.
#[derive(Debug)]
pub(super) struct WatchedProcess {
    pid: u32,
    name: String,
    threads: BTreeMap<ThreadId, ThreadHistory>,
    /// The threads that each sample reads.
    sampled: Vec<ThreadId>,
    /// The run time of the whole process when the window opened; `None` for the workload, because only some threads of
    /// its process count.
    before: Option<CpuNanos>,
    /// True if the kernel hid the function in which a sampled thread slept.
    hidden: bool,
}

impl WatchedProcess {
    /// Returns a watch of these threads of landspeed's own process; `None` if `threads` is empty.
    pub(super) fn own(threads: &[i32]) -> Option<Self> {
        let pid = std::process::id();
        let threads: Vec<ThreadId> =
            threads.iter().map(|tid| ThreadId { pid, tid: tid.cast_unsigned() }).collect();
        (!threads.is_empty()).then(|| WatchedProcess::new(pid, None, &threads))
    }

    pub(super) fn other(pid: u32) -> Result<Self, Error> {
        let threads = threads_of(pid)?;
        if threads.is_empty() {
            let why = "none of its threads is there but the one that watches".into();
            return Err(Error::Gone { object: format!("process {pid}"), why });
        }
        let cpu = TaskClock::process(pid.cast_signed()).read()?;
        Ok(WatchedProcess::new(pid, Some(cpu), &threads))
    }

    /// Returns a watch of a process that was started within the window; `None` if it has already ended.
    pub(super) fn newborn(pid: u32) -> Option<Self> {
        let mut process = WatchedProcess::new(pid, Some(CpuNanos(0)), &[]);
        process.newcomers();
        (!process.threads.is_empty()).then_some(process)
    }

    fn new(pid: u32, before: Option<CpuNanos>, threads: &[ThreadId]) -> Self {
        let name = procfile::word(format!("/proc/{pid}/comm")).unwrap_or_default();
        let mut process = WatchedProcess {
            pid,
            name,
            threads: BTreeMap::new(),
            sampled: Vec::new(),
            before,
            hidden: false,
        };
        let mut by_use = Vec::new();
        for thread in threads {
            // A thread that has just ended is left out.
            if let Ok(ran) = ran(*thread) {
                process.threads.insert(*thread, ThreadHistory { before: ran, ..ThreadHistory::default() });
                by_use.push((std::cmp::Reverse(ran.cpu), *thread));
            }
        }
        by_use.sort_unstable();
        for (_, thread) in by_use.into_iter().take(MOST_THREADS) {
            process.follow(thread);
        }
        process
    }

    /// Adds a thread to the threads that each sample reads.
    fn follow(&mut self, thread: ThreadId) {
        let switches = thread.status().map_or(0, |status| status.voluntary_switches);
        self.threads.entry(thread).or_default().switches_before = switches;
        self.sampled.push(thread);
    }

    pub(super) fn look(&mut self) {
        for thread in &self.sampled {
            // A thread that ended has no state.
            let Ok((activity, interruptible)) = thread.now() else { continue };
            self.hidden |= activity == ThreadActivity::Asleep;
            let place = match activity {
                ThreadActivity::Running => "running".to_owned(),
                ThreadActivity::In(function) => function,
                ThreadActivity::Asleep => "asleep".to_owned(),
                ThreadActivity::Stopped => "stopped".to_owned(),
            };
            let history = self.threads.entry(*thread).or_default();
            *history.waiting_in.entry(place).or_default() += 1;
            history.uninterruptible += u32::from(!interruptible);
        }
        self.newcomers();
    }

    /// Adds the threads that were started since the last sample. For the workload it adds none, because its threads are
    /// given.
    fn newcomers(&mut self) {
        if self.before.is_none() || self.sampled.len() >= MOST_THREADS {
            return;
        }
        for thread in threads_of(self.pid).unwrap_or_default() {
            if !self.threads.contains_key(&thread) && self.sampled.len() < MOST_THREADS {
                self.threads.insert(thread, ThreadHistory::default());
                self.sampled.push(thread);
            }
        }
    }

    /// Returns the observations of the process. If the process ended within the window, adds a note and returns `None`.
    pub(super) fn tell(mut self, notes: &mut BTreeSet<String>) -> Option<ProcessWatch> {
        self.newcomers();
        let pid = self.pid;
        let Some((busiest, used)) = self.busiest() else {
            notes.insert(format!("process {pid} ({}): it ended within the window", self.name));
            return None;
        };
        self.note(notes);
        let all: CpuNanos = self.used().map(|(_, used)| used.cpu).sum();
        let whole =
            self.before.and_then(|before| Some(TaskClock::process(pid.cast_signed()).read().ok()? - before));
        let status = busiest.status().unwrap_or_default();
        let history = self.threads.remove(&busiest).unwrap_or_default();
        // The name is read again, because a process has the name of its parent until it calls execve(2).
        let name = procfile::word(format!("/proc/{pid}/comm")).unwrap_or(self.name);
        Some(ProcessWatch {
            pid,
            name,
            cpu_ns: whole.unwrap_or(all),
            busiest_thread_ns: used.cpu,
            waited_for_cpu_ns: used.waited,
            core: busiest.stat().map_or(0, |stat| stat.core),
            allowed_cores: status.allowed_cores,
            voluntary_switches: status.voluntary_switches.saturating_sub(history.switches_before),
            waiting_in: history.waiting_in,
            uninterruptible_samples: history.uninterruptible,
        })
    }

    /// Returns the threads that still exist, and the times for which each thread ran and waited within the window.
    fn used(&self) -> impl Iterator<Item = (ThreadId, ThreadTimes)> {
        self.threads.iter().filter_map(|(thread, history)| {
            let now = ran(*thread).ok()?;
            let used =
                ThreadTimes { cpu: now.cpu - history.before.cpu, waited: now.waited - history.before.waited };
            Some((*thread, used))
        })
    }

    /// Returns the thread that ran longest within the window, and its times. If several threads ran equally long,
    /// returns the one with the lowest id.
    fn busiest(&self) -> Option<(ThreadId, ThreadTimes)> {
        self.used().max_by_key(|(thread, used)| (used.cpu, std::cmp::Reverse(*thread)))
    }

    fn note(&self, notes: &mut BTreeSet<String>) {
        let pid = self.pid;
        if self.threads.len() > self.sampled.len() {
            let (all, some) = (self.threads.len(), self.sampled.len());
            notes.insert(format!("where threads of process {pid} sleep: {some} of its {all} are looked at"));
        }
        let names = |history: &ThreadHistory| {
            history.waiting_in.keys().any(|k| !["running", "asleep", "stopped"].contains(&&**k))
        };
        if self.hidden && !self.threads.values().any(names) {
            notes.insert(format!(
                "where process {pid} sleeps: the kernel hides /proc/TID/wchan; root sees it"
            ));
        }
    }
}

/// Returns the total run and waiting times of a thread. For a thread of landspeed's own process, the run time is from
/// its CPU clock, which is exact even while the thread runs.
fn ran(thread: ThreadId) -> Result<ThreadTimes, Error> {
    let mut ran = thread.ran()?;
    if thread.pid == std::process::id()
        && let Ok(cpu) = TaskClock::thread(thread.tid.cast_signed()).read()
    {
        ran.cpu = cpu;
    }
    Ok(ran)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn own_tid() -> i32 {
        rustix::thread::gettid().as_raw_nonzero().get()
    }

    #[test]
    fn a_thread_that_sleeps_is_found_where_it_sleeps_and_one_that_runs_running() {
        let (wake, asleep) = mpsc::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            sender.send(own_tid()).unwrap();
            let _ = asleep.recv();
        });
        let tid = receiver.recv().unwrap();
        let mut process = WatchedProcess::own(&[own_tid(), tid]).unwrap();
        let seen = |process: &WatchedProcess, tid: i32| {
            let of = |(thread, _): &(&ThreadId, &ThreadHistory)| thread.tid == tid.cast_unsigned();
            process.threads.iter().find(of).unwrap().1.waiting_in.clone()
        };
        let mut looks = 0;
        // A busy machine may take a while to put a thread to sleep.
        while seen(&process, tid).keys().all(|place| place == "running") {
            assert!(looks < 10_000, "{:?}", seen(&process, tid));
            process.look();
            looks += 1;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(seen(&process, own_tid()).get("running"), Some(&looks), "it runs whenever it looks");
        wake.send(()).unwrap();
        sleeper.join().unwrap();
        let mut notes = BTreeSet::new();
        let seen = process.tell(&mut notes).unwrap();
        assert_eq!(seen.pid, std::process::id());
        assert!(seen.busiest_thread_ns > CpuNanos(0) && seen.cpu_ns >= seen.busiest_thread_ns, "{seen:?}");
        assert!(seen.allowed_cores.contains(&seen.core), "{seen:?}");
        assert!(seen.voluntary_switches >= 1 && !seen.name.is_empty(), "{seen:?}");
    }

    #[test]
    fn a_process_that_ends_is_reported() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let mut process = WatchedProcess::other(child.id()).unwrap();
        process.look();
        child.kill().unwrap();
        child.wait().unwrap();
        process.look();
        let mut notes = BTreeSet::new();
        assert!(process.tell(&mut notes).is_none());
        assert!(notes.first().unwrap().contains("ended within the window"), "{notes:?}");
        assert!(WatchedProcess::other(child.id()).is_err());
    }

    #[test]
    fn a_workload_without_threads_is_no_process() {
        assert!(WatchedProcess::own(&[]).is_none());
    }
}
