//! Reads files of /proc and /sys, whose contents the kernel generates when they are read.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use landspeed_record::units::CpuNanos;

use crate::Error;

/// The largest number of bytes that are read from one file. Real files are much smaller. A longer file, from a fake
/// /proc or a faulty driver, is truncated.
const LIMIT: u64 = 8 << 20;

pub(crate) fn read(path: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(4096);
    fs::File::open(path)
        .and_then(|file| file.take(LIMIT).read_to_end(&mut bytes))
        .map_err(|source| Error::io("read", path, source))?;
    // The name of a process may contain any bytes except NUL.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a file's contents without surrounding white space; `None` if it is absent, unreadable or empty.
pub(crate) fn word(path: impl AsRef<Path>) -> Option<String> {
    let text = read(path.as_ref().to_str()?).ok()?;
    let word = text.trim();
    (!word.is_empty()).then(|| word.to_owned())
}

/// Checks that `path` can be opened for reading; returns the reason if it cannot.
pub(crate) fn readable(path: &str) -> Result<(), String> {
    fs::File::open(path).map(drop).map_err(|error| format!("cannot read {path}: {error}"))
}

/// Returns the names of a folder's entries that are numbers (processes, threads or interrupts), in ascending order.
pub(crate) fn numbered(folder: impl AsRef<Path>) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(folder)?.flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The fields of /proc/PID/stat and /proc/PID/task/TID/stat that are used (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskStat {
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) ran: CpuNanos,
    /// The run time of the children that the task has waited for.
    pub(crate) children_ran: CpuNanos,
    /// The processor that the task last ran on.
    pub(crate) core: u32,
}

impl TaskStat {
    pub(crate) fn read(path: &str) -> Result<Self, Error> {
        Self::parse(&read(path)?).ok_or_else(|| Error::shape(path, "too few fields"))
    }

    /// Parses a stat file. Fields are numbered from 1. Field 2, the name, may itself contain ')' and spaces, so the
    /// fields after its last ')' are parsed, from field 3 on.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(TaskStat {
            state: fields.first()?.chars().next()?,
            parent: u32::try_from(number(4)?).ok()?,
            ran: ticks(number(14)?.saturating_add(number(15)?)),
            children_ran: ticks(number(16)?.saturating_add(number(17)?)),
            core: u32::try_from(number(39)?).ok()?,
        })
    }
}

/// Converts a time in ticks of USER_HZ, the unit of /proc, to nanoseconds.
pub(crate) fn ticks(ticks: u64) -> CpuNanos {
    CpuNanos(ticks.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "19980 (a) b (c) S 19979 19969 834 0 -1 4194304 138 0 0 0 12 30 1 2 20 0 1 0 1361561 2990080 \
                        392 18446744073709551615 1 2 3 0 0 0 0 6 0 1 0 0 17 5 0 0 0 0 0 1 2 3 4 5 6 7 0\n";

    #[test]
    fn a_name_full_of_brackets_shifts_nothing_and_truncated_text_is_refused() {
        let (ran, children_ran) = (ticks(42), ticks(3));
        assert_eq!(
            TaskStat::parse(STAT),
            Some(TaskStat { state: 'S', parent: 19979, ran, children_ran, core: 5 })
        );
        for bad in ["", "1 (x)", "1 (x) S 2 3", "no bracket S 1 2"] {
            assert_eq!(TaskStat::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_absent_file_is_named() {
        let error = read("/proc/no-such-file").unwrap_err().to_string();
        assert!(error.contains("/proc/no-such-file"), "{error}");
    }
}
