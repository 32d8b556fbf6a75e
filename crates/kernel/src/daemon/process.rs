//! Identifies a process, and checks whether it is still running.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process, distinguished by its start time from a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// The time at which the process started, in clock ticks since boot: field 22 of /proc/PID/stat (proc(5)).
    pub start_ticks: u64,
}

impl ProcessIdentity {
    /// Returns the identity of the running process with this id, or `None` if there is none. A process that has ended
    /// but was not reaped yet (a zombie) does not count as running.
    pub fn find(pid: u32) -> Option<ProcessIdentity> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(ProcessIdentity { pid, start_ticks: start_ticks(&stat)? })
    }

    pub fn is_alive(&self) -> bool {
        ProcessIdentity::find(self.pid) == Some(*self)
    }
    /// Returns true if the process is stopped by a signal or a debugger.
    pub fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        self.is_alive() && stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['T', 't']))
    }
}

fn start_ticks(stat: &str) -> Option<u64> {
    // The second field, the command, may itself contain spaces and brackets.
    let (_, after_command) = stat.rsplit_once(") ")?;
    let mut fields = after_command.split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return None;
    }
    fields.nth(22 - 4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_used_again_is_another_process() {
        let me = ProcessIdentity::find(std::process::id()).unwrap();
        assert!(me.is_alive() && me.start_ticks > 0);
        assert!(!ProcessIdentity { start_ticks: me.start_ticks + 1, ..me }.is_alive());
        assert_eq!(ProcessIdentity::find(u32::MAX), None);
    }

    #[test]
    fn commands_with_brackets_do_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(start_ticks(stat), Some(4242));
        assert_eq!(start_ticks(&stat.replace(") S ", ") Z ")), None);
        assert_eq!(start_ticks(""), None);
    }
}
