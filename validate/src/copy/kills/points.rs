//! Where a process of a copy is killed: at which of its system calls. What a whole copy calls says which points there
//! are.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, ensure};
use landspeed_stats::Random;
use serde::{Deserialize, Serialize};

/// The calls that change a target, by strace's names. Most points are at these.
const CHANGES: [&str; 29] = [
    "chmod",
    "chown",
    "copy_file_range",
    "fallocate",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fdatasync",
    "flock",
    "fremovexattr",
    "fsetxattr",
    "fsync",
    "ftruncate",
    "linkat",
    "lremovexattr",
    "lsetxattr",
    "mkdirat",
    "mknodat",
    "openat2",
    "pwrite64",
    "renameat",
    "renameat2",
    "setxattr",
    "symlinkat",
    "sync_file_range",
    "syncfs",
    "unlinkat",
    "utimensat",
];
/// The share of the points that are at calls of [`CHANGES`], where a process makes such calls.
const SHARE_OF_CHANGES: f64 = 0.75;
/// The largest number of a call that strace takes.
const LARGEST: u64 = 65_535;
/// The time for which strace holds a process after its call, in which it is killed.
const HELD: &str = "600s";

/// A process of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CopyProcess {
    Controller,
    Source,
    Target,
}

impl CopyProcess {
    pub(super) const ALL: [CopyProcess; 3] =
        [CopyProcess::Controller, CopyProcess::Source, CopyProcess::Target];
}

/// On which side of a call a process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CallSide {
    /// The kernel does not begin the call.
    Entry,
    /// The kernel has made the call, and the program does not see its result.
    Exit,
}

/// A call at which a process is killed: that of the thread that is the first to make it for the `number`-th time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) process: CopyProcess,
    pub(super) call: String,
    pub(super) number: u64,
    pub(super) side: CallSide,
}

impl Point {
    /// Returns the options by which strace(1) kills the process at the entry of the call, or holds the thread at its
    /// exit. It counts the calls of each thread apart.
    pub(super) fn options(&self) -> Vec<String> {
        let (call, number) = (&self.call, self.number);
        let injected = match self.side {
            CallSide::Entry => "signal=KILL".to_owned(),
            CallSide::Exit => format!("delay_exit={HELD}"),
        };
        let inject = format!("inject={call}:{injected}:when={number}");
        vec!["-e".to_owned(), format!("trace={call}"), "-e".to_owned(), inject]
    }

    /// Returns a point at the same call, with half its number.
    pub(super) fn earlier(self) -> Point {
        Point { number: (self.number / 2).max(1), ..self }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { process, call, number, side } = self;
        write!(f, "{process:?}, {side:?} of {call} {number}")
    }
}

/// How often each thread of each process has made each call.
#[derive(Debug, Default)]
pub(super) struct CallCounts(BTreeMap<(CopyProcess, String), BTreeMap<String, u64>>);

impl CallCounts {
    /// Adds what strace(1) has printed of a process.
    pub(super) fn add(&mut self, process: CopyProcess, trace: &str) {
        // The target's agent was the gate's shell before.
        let own = trace.rsplit_once(" execve(").map_or(trace, |(_, own)| own);
        for (thread, call) in own.lines().filter_map(call) {
            let threads = self.0.entry((process, call.to_owned())).or_default();
            *threads.entry(thread.to_owned()).or_default() += 1;
        }
    }

    /// Draws a point of a process. Some thread comes to it in each copy whose threads make as many calls together.
    pub(super) fn draw(&self, process: CopyProcess, random: &mut Random) -> Result<Point> {
        let all: Vec<_> = self.0.iter().filter(|((own, _), _)| *own == process).collect();
        ensure!(!all.is_empty(), "strace saw no call of the process {process:?}");
        let is_change = |call: &str| CHANGES.contains(&call);
        let (changes, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|((_, call), _)| is_change(call));
        let is_of_changes = random.happens(SHARE_OF_CHANGES);
        let some = if others.is_empty() || (is_of_changes && !changes.is_empty()) { changes } else { others };
        let ((_, call), threads) = some[(random.draw() % some.len() as u64) as usize];
        let each = threads.values().sum::<u64>().div_ceil(threads.len() as u64);
        let number = 1 + random.draw() % each.min(LARGEST);
        let side = if random.happens(0.5) { CallSide::Entry } else { CallSide::Exit };
        Ok(Point { process, call: call.clone(), number, side })
    }
}

/// Returns the thread and the name of the call that a line of strace(1) begins; `None` for other lines, and for calls
/// that are newer than strace, which it takes by no name.
fn call(line: &str) -> Option<(&str, &str)> {
    let (thread, rest) = line.split_once(' ')?;
    let (name, _) = rest.trim_start().split_once('(')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_known = !name.is_empty() && name.bytes().all(is_name) && !name.starts_with("syscall_");
    is_known.then_some((thread, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "7     faccessat(AT_FDCWD, \"open\", F_OK) = 0
7     execve(\"/bin/landspeed\", [\"\"...], 0x1 /* 9 vars */) = 0
7     openat2(3, \"one\", {flags=O_RDONLY}, 24 <unfinished ...>
12345 linkat(4, \"\", 5, \"one\", AT_EMPTY_PATH) = 0
7     <... openat2 resumed>) = 6
12345 linkat(4, \"\", 5, \"two\", AT_EMPTY_PATH) = 0
7     linkat(4, \"\", 5, \"three\", AT_EMPTY_PATH) = 0
7     recvfrom(8, \"\"..., 16384, 0, NULL, NULL) = 12
7     syscall_0x1d1(0x8, 0x7fe3, 0, 0x7fe2, 0x10, 0) = 0
12345 +++ killed by SIGKILL +++
";

    #[test]
    fn points_are_at_calls_that_some_thread_makes_in_each_copy() {
        let mut counts = CallCounts::default();
        counts.add(CopyProcess::Target, TRACE);
        let points: Vec<Point> = (0..200)
            .map(|number| counts.draw(CopyProcess::Target, &mut Random::stream(1, number)).unwrap())
            .collect();
        let count = |call: &str| points.iter().filter(|point| point.call == call).count();
        // Three calls of two threads: one of them makes at least two.
        let linked = points.iter().filter(|point| point.call == "linkat").map(|point| point.number);
        assert_eq!((linked.clone().min(), linked.max()), (Some(1), Some(2)));
        assert!(count("openat2") > 40 && count("linkat") > 40 && count("recvfrom") > 20, "{points:?}");
        assert_eq!(count("openat2") + count("linkat") + count("recvfrom"), 200, "the gate's calls count");
        assert!(counts.draw(CopyProcess::Source, &mut Random::new(1)).is_err());
    }

    #[test]
    fn a_point_says_what_strace_does() {
        let point = Point {
            process: CopyProcess::Target,
            call: "linkat".to_owned(),
            number: 17,
            side: CallSide::Entry,
        };
        assert_eq!(point.options(), ["-e", "trace=linkat", "-e", "inject=linkat:signal=KILL:when=17"]);
        assert_eq!(point.to_string(), "Target, Entry of linkat 17");
        let after = Point { side: CallSide::Exit, ..point.earlier() };
        assert_eq!(after.options()[3], "inject=linkat:delay_exit=600s:when=8");
        assert_eq!(after.earlier().earlier().earlier().earlier().number, 1);
    }
}
