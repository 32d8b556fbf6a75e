//! Finds and ends processes in a lab's namespaces.

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::topology::namespace::{identity, path_of};

/// Time limit for a process to end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);
const PROGRAM: &str = "landspeed";

/// The processes that were found in a lab when it was taken down.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EndedProcesses {
    /// IDs of the processes that were ended.
    pub(super) ended: Vec<u32>,
    /// IDs of the other processes, which were left running. Their namespace exists, without a name, until they end.
    pub(super) left: Vec<u32>,
}

/// Ends the landspeed processes in these namespaces by SIGTERM, then SIGKILL. This process itself and other programs
/// are left alone.
pub(super) fn end_within(namespaces: &[String]) -> EndedProcesses {
    end_those_within(namespaces, is_landspeed)
}

/// Ends all processes in these namespaces by SIGTERM, then SIGKILL. Only this process itself is left alone.
pub(super) fn end_all_within(namespaces: &[String]) -> EndedProcesses {
    end_those_within(namespaces, |_| true)
}

/// Ends the process `pid` if `is_meant` returns true. `is_meant` is called after the process's pidfd is open, so that
/// no other process ends if the ID is reused.
pub(super) fn end_process(pid: u32, is_meant: impl Fn() -> bool) {
    if let Some(handle) = handle_of(pid).filter(|_| is_meant()) {
        end(&[(pid, handle)]);
    }
}

fn end_those_within(namespaces: &[String], is_ours: impl Fn(u32) -> bool) -> EndedProcesses {
    let paths = namespaces.iter().filter_map(|name| path_of(name).ok());
    let within: HashSet<(u64, u64)> = paths.filter_map(|path| identity(&path).ok()).collect();
    let mut found = EndedProcesses::default();
    let mut agents = Vec::new();
    for pid in pids().into_iter().filter(|pid| *pid != std::process::id()) {
        // The pidfd is opened first, so that the checked process is the signalled one even if its ID is reused.
        let Some(handle) = handle_of(pid) else { continue };
        if !lives_in(pid, &within) {
            continue;
        }
        if is_ours(pid) {
            agents.push((pid, handle));
        } else {
            found.left.push(pid);
        }
    }
    found.ended = agents.iter().map(|(pid, _)| *pid).collect();
    end(&agents);
    found
}

fn end(agents: &[(u32, OwnedFd)]) {
    for (signal, patience) in [(Signal::TERM, PATIENCE), (Signal::KILL, PATIENCE)] {
        let running: Vec<&OwnedFd> =
            agents.iter().map(|(_, handle)| handle).filter(|h| !ends_within(h, Duration::ZERO)).collect();
        for handle in &running {
            // The signal fails only if the process has ended, or this user may not signal it.
            let _ = pidfd_send_signal(handle, signal);
        }
        let deadline = Instant::now() + patience;
        for handle in &running {
            ends_within(handle, deadline.saturating_duration_since(Instant::now()));
        }
    }
}

/// Returns true if the process ends within `time`. Its pidfd is then readable.
fn ends_within(handle: &OwnedFd, time: Duration) -> bool {
    let time = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: i64::from(time.subsec_nanos()) };
    poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&time)).is_ok_and(|ready| ready > 0)
}

fn handle_of(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}

fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn lives_in(pid: u32, namespaces: &HashSet<(u64, u64)>) -> bool {
    identity(Path::new(&format!("/proc/{pid}/ns/net"))).is_ok_and(|id| namespaces.contains(&id))
}

/// Returns true if the process runs this program, or one called landspeed (an older build, since replaced).
fn is_landspeed(pid: u32) -> bool {
    let exe = format!("/proc/{pid}/exe");
    let same = identity(Path::new("/proc/self/exe")).ok() == identity(Path::new(&exe)).ok();
    let named = fs::read_link(&exe).is_ok_and(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_suffix(" (deleted)").unwrap_or(name) == PROGRAM
    });
    same || named
}
