//! What the processes of a copy take, by what the kernel counts of each (proc_pid_status(5)).
//!
//! VmHWM is a process's own peak, also between two looks, with the pages of its program. A control group would count the
//! files of tmpfs and the page cache too, which are what is copied.

use std::fs;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::copy::site::{Site, printed_by};

/// The memory of the processes of each end that run at a time, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemoryTaken {
    pub(super) controller: u64,
    pub(super) source: u64,
    pub(super) target: u64,
}

impl MemoryTaken {
    pub(super) fn each(&self) -> [u64; 3] {
        [self.controller, self.source, self.target]
    }

    fn with(self, other: MemoryTaken, of: fn(u64, u64) -> u64) -> MemoryTaken {
        MemoryTaken {
            controller: of(self.controller, other.controller),
            source: of(self.source, other.source),
            target: of(self.target, other.target),
        }
    }

    /// Returns the larger figure of each.
    pub(super) fn max(self, other: MemoryTaken) -> MemoryTaken {
        self.with(other, u64::max)
    }

    /// Returns by how much each is more than another one.
    pub(super) fn beyond(self, other: MemoryTaken) -> MemoryTaken {
        self.with(other, u64::saturating_sub)
    }
}

/// What the processes of a copy have taken until a moment.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct MemoryLook {
    pub(super) now: MemoryTaken,
    /// Of those that still run.
    pub(super) peak: MemoryTaken,
}

/// Looks at all processes of landspeed on both hosts. Each end is the sum of its own.
pub(super) fn look(site: &Site) -> Result<MemoryLook> {
    let mut look = MemoryLook::default();
    for end in 0..2 {
        for process in printed_by(&format!("ip netns pids {}", site.namespace(end)))?.split_whitespace() {
            let Some(process) = CopyProcess::of(process) else { continue };
            for (of, bytes) in [(&mut look.now, process.now), (&mut look.peak, process.peak)] {
                match (end, process.is_agent) {
                    (0, false) => of.controller += bytes,
                    (0, true) => of.source += bytes,
                    _ => of.target += bytes,
                }
            }
        }
    }
    Ok(look)
}

/// A process of landspeed.
struct CopyProcess {
    is_agent: bool,
    now: u64,
    peak: u64,
}

impl CopyProcess {
    /// Returns `None` if a process is no landspeed, or is gone.
    fn of(process: &str) -> Option<CopyProcess> {
        let about = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).ok();
        let program = fs::read_link(format!("/proc/{process}/exe")).ok()?;
        if program.file_name()? != "landspeed" {
            return None;
        }
        let is_agent = about("cmdline")?.split('\0').any(|word| word == "agent");
        let status = about("status")?;
        Some(CopyProcess { is_agent, now: bytes(&status, "VmRSS:")?, peak: bytes(&status, "VmHWM:")? })
    }
}

/// Returns a figure of a process's status.
fn bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_landspeed_is_watched() {
        assert!(CopyProcess::of(&std::process::id().to_string()).is_none());
        assert!(CopyProcess::of("0").is_none());
    }

    #[test]
    fn a_status_has_both_figures_of_this_process() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let [now, peak] = ["VmRSS:", "VmHWM:"].map(|name| bytes(&status, name).expect("a figure"));
        assert!(now > 0 && now <= peak, "{now} {peak}");
        assert_eq!(bytes("Name:\tx\nVmHWM:\t    2048 kB\n", "VmHWM:"), Some(2 << 20));
        assert_eq!(bytes("Name:\tx\n", "VmHWM:"), None);
    }

    #[test]
    fn each_end_has_its_own_growth() {
        let taken = |controller, source, target| MemoryTaken { controller, source, target };
        let (one, other) = (taken(1, 20, 3), taken(10, 2, 3));
        assert_eq!(one.max(other), taken(10, 20, 3));
        assert_eq!(one.beyond(other), taken(0, 18, 0));
    }
}
