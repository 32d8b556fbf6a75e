//! Which process a lab belongs to, and whether it still runs.

use std::io;

use serde::{Deserialize, Serialize};

/// A process, beyond the reuse of its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// Process id.
    pub(super) pid: u32,
    /// When it started: clock ticks since boot (/proc/PID/stat, field 22).
    pub(super) start_ticks: u64,
    /// The boot that both belong to.
    pub(super) boot_id: String,
}

impl Owner {
    /// This process.
    pub(super) fn me() -> io::Result<Self> {
        let pid = std::process::id();
        let start_ticks = start_ticks(pid)?;
        Ok(Owner { pid, start_ticks, boot_id: boot_id()? })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&self) -> bool {
        boot_id().is_ok_and(|id| id == self.boot_id)
            && start_ticks(self.pid).is_ok_and(|t| t == self.start_ticks)
    }
}

fn boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Field 22 of /proc/PID/stat. A zombie has ended as far as its lab is concerned.
fn start_ticks(pid: u32) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_start(&stat).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the process has ended"))
}

fn parse_start(stat: &str) -> Option<u64> {
    // The second field, the command, may itself hold spaces and brackets.
    let after_command = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_command.split_ascii_whitespace();
    let state = fields.next()?;
    const FROM_STATE_TO_START: usize = 18;
    if matches!(state, "Z" | "X") { None } else { fields.nth(FROM_STATE_TO_START)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_used_again_is_another_process() {
        let me = Owner::me().unwrap();
        assert!(me.is_alive());
        assert!(!Owner { start_ticks: me.start_ticks + 1, ..me.clone() }.is_alive());
        assert!(!Owner { boot_id: "another".into(), ..me.clone() }.is_alive());
        assert!(!Owner { pid: u32::MAX, ..me }.is_alive());
    }

    #[test]
    fn commands_with_brackets_do_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(parse_start(stat), Some(4242));
        assert_eq!(parse_start(&stat.replace(") S ", ") Z ")), None);
        assert_eq!(parse_start(""), None);
    }
}
