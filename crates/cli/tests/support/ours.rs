//! The landspeed processes of one test, identified by their environment, and the labs that they create.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{LANDSPEED, text};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunningProcess {
    pub(crate) pid: i32,
    pub(crate) line: String,
}

pub(crate) fn processes(folder: &Path) -> Vec<RunningProcess> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| process(pid, folder)).collect()
}

fn process(pid: i32, folder: &Path) -> Option<RunningProcess> {
    // The environment of a zombie is empty.
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    if !String::from_utf8_lossy(&environment).contains(folder.to_str()?) {
        return None;
    }
    // The command line is empty if the process has ended since.
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|line| !line.is_empty())?;
    Some(RunningProcess { pid, line: String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned() })
}

/// Stops all processes that `chosen` accepts, including those that they start in between, and returns them. Stopped
/// processes can be inspected and killed as if at one moment.
pub(crate) fn freeze(folder: &Path, chosen: impl Fn(&RunningProcess) -> bool) -> Vec<RunningProcess> {
    let mut frozen = BTreeSet::new();
    loop {
        let new: Vec<RunningProcess> =
            processes(folder).into_iter().filter(|one| chosen(one) && !frozen.contains(one)).collect();
        if new.is_empty() {
            return frozen.into_iter().collect();
        }
        new.iter().for_each(|one| signal(one.pid, Signal::STOP));
        frozen.extend(new);
    }
}

/// Signals a process; one that has ended is ignored.
pub(crate) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the state of a process, such as `Z` for a zombie and `T` for one that is stopped (proc(5)).
pub(crate) fn state(pid: i32) -> Option<char> {
    status_field(pid, 0)?.chars().next()
}

/// Returns a field of `/proc/PID/stat`, counted from the state.
pub(crate) fn status_field(pid: i32, number: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc(5): the name is in brackets, then come state, parent, group and session.
    stat.rsplit(')').next()?.split_whitespace().nth(number).map(str::to_owned)
}

pub(crate) fn within(limit: Duration, holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !holds() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// The folders of a test's landspeed. On drop, processes that are still running are killed, and all labs that are noted in
/// these folders are removed, because nothing else finds them once the folders are gone.
pub(crate) struct TestHome {
    folder: tempfile::TempDir,
}

impl TestHome {
    pub(crate) fn new() -> TestHome {
        TestHome { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn landspeed(&self, args: &[&str]) -> Command {
        let mut command = Command::new(LANDSPEED);
        command.args(args).stdin(Stdio::null());
        command.env("LANDSPEED_RUN_DIR", self.path().join("run"));
        command.env("LANDSPEED_STATE_DIR", self.path().join("state"));
        command.env("XDG_DATA_HOME", self.path().join("data"));
        command
    }

    pub(crate) fn labs_of(&self, owner: u32) -> BTreeSet<String> {
        let listed = self.landspeed(&["lab", "list"]).output().expect("landspeed runs");
        let (out, err) = text(&listed);
        assert!(listed.status.success(), "{err}");
        let owner = owner.to_string();
        let of_owner = out.lines().filter(|line| line.split_whitespace().any(|word| word == owner));
        of_owner.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    }

    /// Returns what is left, one line each: of the labs `ids`, of journals, and of processes except `others`.
    pub(crate) fn left(&self, ids: &BTreeSet<String>, others: &[RunningProcess]) -> Vec<String> {
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let namespaces = names(Path::new("/run/netns")).into_iter();
        let namespaces =
            namespaces.filter(|name| ids.iter().any(|id| name.starts_with(&format!("ls-{id}-"))));
        let states = names(&self.path().join("run/labs")).into_iter();
        let states = states.filter(|name| ids.iter().any(|id| name.contains(id.as_str())));
        let journals = names(&self.path().join("state/journal")).into_iter();
        let running = processes(self.path()).into_iter().filter(|one| !others.contains(one));
        (namespaces.map(|name| format!("namespace {name}")))
            .chain(states.map(|name| format!("lab {name}")))
            .chain(journals.map(|name| format!("journal {name}")))
            .chain(running.map(|one| format!("process {one:?}")))
            .collect()
    }
}

impl Drop for TestHome {
    fn drop(&mut self) {
        freeze(self.path(), |_| true).iter().for_each(|one| signal(one.pid, Signal::KILL));
        let noted = || -> Vec<String> {
            let all = std::fs::read_dir(self.path().join("run/labs")).into_iter().flatten().flatten();
            let id = |file: &str| file.strip_suffix(".json").map(str::to_owned);
            all.filter_map(|entry| entry.file_name().to_str().and_then(id)).collect()
        };
        // Each by its ID, because `lab down` alone leaves labs that are held. A process that was killed may not have ended yet.
        let gone = || {
            for id in noted() {
                let _ = self.landspeed(&["lab", "down", &id]).output();
            }
            noted().is_empty()
        };
        within(Duration::from_secs(60), gone);
    }
}
