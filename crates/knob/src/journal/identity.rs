//! Whose settings a journal speaks of: which boot, which network namespace, which process, which device.

use std::fs;
use std::io;

use landspeed_netlink::{Link, Rtnl, netns_cookie};
use serde::{Deserialize, Serialize};

use super::JournalError;

/// The boot and the network namespace that this thread is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Here {
    pub(super) boot_id: String,
    pub(super) netns_cookie: u64,
}

impl Here {
    pub(super) fn find_out() -> Result<Here, JournalError> {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map_err(|source| JournalError::Unknown { what: "the boot id", source })?;
        let netns_cookie = netns_cookie().map_err(|e| JournalError::Unknown {
            what: "the network namespace",
            source: io::Error::other(e),
        })?;
        Ok(Here { boot_id: boot_id.trim().to_owned(), netns_cookie })
    }
}

/// A process, told from a later one with the same id by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Field 22 of /proc/PID/stat, in clock ticks since boot (proc(5)).
    pub(super) start_ticks: u64,
}

impl Process {
    /// The living process with this id; one that is dead but not yet reaped is none.
    pub(super) fn find(pid: u32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The command name, in parentheses, may itself hold spaces and parentheses.
        let after_name = stat.rsplit_once(") ")?.1;
        let mut fields = after_name.split(' ');
        if matches!(fields.next(), Some("Z" | "X")) {
            return None;
        }
        let start_ticks = fields.nth(22 - 4)?.parse().ok()?;
        Some(Process { pid, start_ticks })
    }
}

/// Whether host-wide settings can be turned from this network namespace. The kernel registers
/// net.core.netdev_budget for the machine's first namespace only (net/core/sysctl_net_core.c), so its
/// presence tells, also inside a container whose /proc hides process 1.
pub(super) fn in_initial_netns() -> bool {
    fs::exists("/proc/sys/net/core/netdev_budget").unwrap_or(false)
}

/// A device, told from a later one with the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    /// Its name when the journal was written.
    pub(super) name: String,
    /// Never used twice within a namespace and boot, unless somebody asks for it.
    pub(super) ifindex: u32,
    /// The address burnt into the hardware; virtual devices have none.
    pub(super) permanent_mac: Option<String>,
}

/// Where a journaled device is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Under this name.
    At(String),
    /// Nowhere in this namespace: its settings went with it.
    Gone,
}

impl Device {
    pub(super) fn of(link: &Link) -> Device {
        Device {
            name: link.name.clone(),
            ifindex: link.index,
            permanent_mac: link.permanent_mac.as_ref().map(ToString::to_string),
        }
    }

    /// Looks for the device, under another name too.
    pub(super) fn find(&self) -> Result<Found, landspeed_netlink::Error> {
        let links = Rtnl::open()?.links()?;
        let same = links
            .iter()
            .map(Device::of)
            .find(|now| now.ifindex == self.ifindex && (now.permanent_mac == self.permanent_mac));
        Ok(same.map_or(Found::Gone, |now| Found::At(now.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_once() {
        let me = Process::find(std::process::id()).unwrap();
        assert_eq!(Process::find(me.pid), Some(me));
        assert!(me.start_ticks > 0);
        assert_eq!(Process::find(u32::MAX), None);
    }
}
