//! The process that owns a lab, and the check that it still runs.

use std::io;

use landspeed_kernel::daemon::ProcessIdentity;
use landspeed_kernel::namespace::boot_id;
use serde::{Deserialize, Serialize};

use crate::topology::namespace::identity;

/// The identity of a process, which is unique even if its ID is reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LabOwner {
    /// Process ID.
    pub(super) pid: u32,
    /// Start time in clock ticks since boot (/proc/PID/stat, field 22).
    pub(super) start_ticks: u64,
    /// ID of the boot in which the process ran.
    pub(super) boot_id: String,
    /// Inode number of the PID namespace of `pid`; `None` in files of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pid_namespace: Option<u64>,
}

impl LabOwner {
    /// Returns the identity of this process.
    pub(super) fn me() -> io::Result<Self> {
        let ended = || io::Error::new(io::ErrorKind::NotFound, "the process has ended");
        let ProcessIdentity { pid, start_ticks } =
            ProcessIdentity::find(std::process::id()).ok_or_else(ended)?;
        Ok(LabOwner { pid, start_ticks, boot_id: boot_id()?, pid_namespace: Some(pid_namespace()?) })
    }

    /// Returns true if the process still runs. A process in another PID namespace cannot be checked, and counts as
    /// running until the machine reboots.
    pub(super) fn is_alive(&self) -> bool {
        let is_foreign = self.pid_namespace.is_some_and(|own| pid_namespace().is_ok_and(|here| here != own));
        let LabOwner { pid, start_ticks, .. } = *self;
        boot_id().is_ok_and(|id| id == self.boot_id)
            && (is_foreign || ProcessIdentity { pid, start_ticks }.is_alive())
    }
}

fn pid_namespace() -> io::Result<u64> {
    identity("/proc/self/ns/pid".as_ref()).map(|(_, inode)| inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_used_again_is_another_process() {
        let me = LabOwner::me().unwrap();
        assert!(me.is_alive());
        assert!(!LabOwner { start_ticks: me.start_ticks + 1, ..me.clone() }.is_alive());
        assert!(!LabOwner { boot_id: "another".into(), ..me.clone() }.is_alive());
        assert!(!LabOwner { pid: u32::MAX, ..me }.is_alive());
    }

    #[test]
    fn a_process_id_of_another_namespace_proves_nothing() {
        let me = LabOwner::me().unwrap();
        let elsewhere = LabOwner { pid: u32::MAX, pid_namespace: Some(1), ..me };
        assert!(elsewhere.is_alive(), "this namespace cannot show that it is dead");
        assert!(!LabOwner { boot_id: "another".into(), ..elsewhere.clone() }.is_alive());
        assert!(!LabOwner { pid_namespace: None, ..elsewhere }.is_alive(), "an older build counted here");
    }
}
