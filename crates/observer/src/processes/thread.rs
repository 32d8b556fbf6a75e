//! The state of one thread, from /proc/PID/task/TID.

use landspeed_record::units::{CpuNanos, Nanos, cpu_list};

use crate::Error;
use crate::procfile::{self, TaskStat};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadId {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// The times for which a thread has run and waited since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ThreadTimes {
    /// The time on a processor. While the thread runs, the last tick or less may be missing.
    pub(crate) cpu: CpuNanos,
    /// The time for which the thread was ready to run and waited for a processor.
    pub(super) waited: Nanos,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ThreadActivity {
    /// On a processor or ready to run.
    Running,
    /// Asleep in this function of the kernel.
    In(String),
    /// Asleep in a function whose name the kernel hides from this process.
    Asleep,
    /// Stopped by a signal or a debugger, or ended.
    Stopped,
}

/// Returns the threads of a process in ascending order. Leaves out the calling thread, because it takes the samples and
/// would often be the busiest thread.
pub(super) fn threads_of(pid: u32) -> Result<Vec<ThreadId>, Error> {
    let path = format!("/proc/{pid}/task");
    let tids = procfile::numbered(&path).map_err(|error| Error::io("list", path, error))?;
    let watching = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let others = tids.into_iter().filter(|tid| *tid != watching || pid != std::process::id());
    Ok(others.map(|tid| ThreadId { pid, tid }).collect())
}

impl ThreadId {
    fn read(self, file: &str) -> Result<String, Error> {
        procfile::read(&format!("/proc/{}/task/{}/{file}", self.pid, self.tid))
    }

    /// Returns the thread's times from its file schedstat. On a kernel without CONFIG_SCHED_INFO, returns the run time
    /// from its file stat, in ticks, and a waiting time of zero.
    pub(crate) fn ran(self) -> Result<ThreadTimes, Error> {
        if let Some(ran) = self.read("schedstat").ok().and_then(|text| schedstat(&text)) {
            return Ok(ran);
        }
        Ok(ThreadTimes { cpu: self.stat()?.ran, waited: Nanos(0) })
    }

    pub(super) fn stat(self) -> Result<TaskStat, Error> {
        TaskStat::read(&format!("/proc/{}/task/{}/stat", self.pid, self.tid))
    }

    pub(super) fn status(self) -> Result<ThreadStatus, Error> {
        Ok(status(&self.read("status")?))
    }

    /// Returns the thread's current activity. The second value is false if the thread is in uninterruptible sleep.
    pub(super) fn now(self) -> Result<(ThreadActivity, bool), Error> {
        let stat = self.stat()?;
        let activity = match stat.state {
            'R' => ThreadActivity::Running,
            'T' | 't' | 'Z' | 'X' => ThreadActivity::Stopped,
            _ => self
                .read("wchan")
                .ok()
                .and_then(|text| function(&text))
                .map_or(ThreadActivity::Asleep, ThreadActivity::In),
        };
        Ok((activity, stat.state != 'D'))
    }
}

/// Parses the text of schedstat: the time on a processor and the time waiting for one, both in ns, and the number of
/// time slices. Returns `None` if the number of time slices is zero, because the kernel then counts none of these.
fn schedstat(text: &str) -> Option<ThreadTimes> {
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse::<u64>().ok());
    let (cpu, waited, turns) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (turns > 0).then_some(ThreadTimes { cpu: CpuNanos(cpu), waited: Nanos(waited) })
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ThreadStatus {
    pub(super) name: String,
    pub(super) allowed_cores: Vec<u32>,
    pub(super) voluntary_switches: u64,
}

fn status(text: &str) -> ThreadStatus {
    let mut status = ThreadStatus::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match key {
            "Name" => value.clone_into(&mut status.name),
            "Cpus_allowed_list" => status.allowed_cores = cpu_list(value).unwrap_or_default(),
            "voluntary_ctxt_switches" => status.voluntary_switches = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    status
}

/// Returns the name of the kernel function in the text of /proc/TID/wchan. Returns `None` for "0", which the kernel
/// shows to readers without permission, and for a thread that was just woken.
fn function(text: &str) -> Option<String> {
    let name = text.trim();
    (!name.is_empty() && name != "0").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_watches_is_left_out() {
        let watch = || (rustix::thread::gettid(), threads_of(std::process::id()).unwrap());
        let (own, threads) = std::thread::spawn(watch).join().unwrap();
        let own = own.as_raw_nonzero().get().cast_unsigned();
        assert!(!threads.is_empty() && threads.iter().all(|thread| thread.tid != own), "{threads:?}");
        assert!(threads_of(u32::MAX >> 2).is_err());
    }

    #[test]
    fn truncated_text_is_refused() {
        for bad in ["", "1 2", "a b c", "0 0 0\n"] {
            assert_eq!(schedstat(bad), None, "{bad:?}");
        }
        assert_eq!(schedstat("5 6 7\n"), Some(ThreadTimes { cpu: CpuNanos(5), waited: Nanos(6) }));
    }

    #[test]
    fn status_is_read_line_by_line() {
        let text = "Name:\tweb: server\nCpus_allowed_list:\t0-1,3\n\
                    voluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t4\n";
        let status = status(text);
        assert_eq!((status.name.as_str(), status.voluntary_switches), ("web: server", 9));
        assert_eq!(status.allowed_cores, [0, 1, 3]);
    }

    #[test]
    fn a_hidden_place_is_none() {
        assert_eq!(function("0"), None);
        assert_eq!(function(""), None);
        assert_eq!(function("hrtimer_nanosleep").as_deref(), Some("hrtimer_nanosleep"));
    }

    #[test]
    fn an_own_thread_is_read() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let own = ThreadId { pid: std::process::id(), tid };
        assert_eq!(own.now().unwrap().0, ThreadActivity::Running, "it is reading this");
        assert!(!own.status().unwrap().allowed_cores.is_empty());
        own.ran().unwrap();
        assert!(ThreadId { pid: own.pid, tid: u32::MAX }.ran().is_err());
    }
}
