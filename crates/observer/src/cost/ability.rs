//! Checks that this process may sample the processors, and explains why not if the kernel refuses.

use std::io;

use rustix::thread::{CapabilitySet, capabilities};

use super::{event::SampleEvent, kallsyms};
use crate::procfile;

/// The properties of this process and of the kernel that can explain why the kernel refuses sampling.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SamplingRights {
    /// The sysctl kernel.perf_event_paranoid; `None` if it cannot be read.
    paranoid: Option<i32>,
    /// True if the process has CAP_PERFMON or CAP_SYS_ADMIN.
    capable: bool,
    /// True if a seccomp filter is in force.
    filtered: bool,
}

impl SamplingRights {
    fn own() -> Self {
        let held = capabilities(None).map(|sets| sets.effective).unwrap_or(CapabilitySet::empty());
        let status = procfile::read("/proc/thread-self/status").unwrap_or_default();
        SamplingRights {
            paranoid: procfile::word("/proc/sys/kernel/perf_event_paranoid").and_then(|w| w.parse().ok()),
            capable: held.intersects(CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN),
            filtered: status.lines().any(|line| line.split_once(":\t") == Some(("Seccomp", "2"))),
        }
    }
}

/// Checks that this process may sample processors and may read the addresses of kernel symbols. Returns the reason and
/// the remedy if it may not.
pub(super) fn can_sample() -> Result<(), String> {
    let here = u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0);
    SampleEvent::CpuClock.open(here).map_err(|error| refused(&error, &SamplingRights::own()))?;
    kallsyms::shown()
}

fn refused(error: &io::Error, rights: &SamplingRights) -> String {
    let why = match error.raw_os_error() {
        Some(libc::ENOSYS) => NONE.into(),
        Some(libc::EACCES | libc::EPERM) if !rights.capable && rights.paranoid.is_none_or(|p| p > 0) => {
            let paranoid = rights.paranoid.map_or("unknown".into(), |value| value.to_string());
            format!(
                "kernel.perf_event_paranoid is {paranoid} and this process has neither CAP_PERFMON nor CAP_SYS_ADMIN; \
                 run it as root, give it CAP_PERFMON and CAP_SYSLOG, or set kernel.perf_event_paranoid to 0"
            )
        }
        Some(libc::EACCES | libc::EPERM) if rights.filtered => FILTERED.into(),
        Some(libc::EACCES | libc::EPERM) => GUARDED.into(),
        _ => "see perf_event_open(2)".into(),
    };
    format!("perf_event_open(2) is refused ({error}): {why}")
}

const NONE: &str = "this kernel is built without CONFIG_PERF_EVENTS, or a seccomp filter says so; run it outside of the \
     container";
const FILTERED: &str = "a seccomp filter is in force, as container runtimes set one; run it outside of the container or \
     allow perf_event_open in the container's seccomp profile";
const GUARDED: &str = "this process has the privilege, so a security module refuses: kernel lockdown at 'confidentiality' \
     (/sys/kernel/security/lockdown) or a policy on perf_event";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(errno: i32, paranoid: Option<i32>, capable: bool, filtered: bool) -> String {
        refused(&io::Error::from_raw_os_error(errno), &SamplingRights { paranoid, capable, filtered })
    }

    #[test]
    fn each_refusal_names_its_cause() {
        let unprivileged = text(libc::EACCES, Some(2), false, false);
        assert!(unprivileged.contains("perf_event_paranoid is 2") && unprivileged.contains("CAP_PERFMON"));
        assert!(text(libc::EACCES, None, false, false).contains("paranoid is unknown"));
        assert!(text(libc::ENOSYS, Some(2), true, false).contains("CONFIG_PERF_EVENTS"));
        assert!(text(libc::EPERM, Some(2), true, true).contains("seccomp filter is in force"));
        assert!(text(libc::EPERM, Some(-1), false, true).contains("seccomp filter is in force"));
        assert!(text(libc::EPERM, Some(2), true, false).contains("lockdown"));
        assert!(text(libc::EMFILE, Some(2), true, false).contains("perf_event_open(2)"));
    }
}
