//! The targets of an observation: the flows or processes to watch.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "target", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WatchTarget {
    /// The workload that landspeed itself runs, identified by its threads and sockets.
    #[default]
    Workload,
    /// The programs that landspeed itself runs: its descendant processes.
    Programs,
    /// Flows with this address at either end. Port 0 means any port.
    Flow { at: SocketAddr },
    /// Flows of this process and of its descendants.
    Pid { pid: u32 },
    /// Flows of all processes with this name, and of their descendants.
    Name { name: ProcessName },
    /// The flows of this host that move the most data.
    Top,
}

/// Largest length of a process's name in the kernel, in bytes: TASK_COMM_LEN (include/linux/sched.h), minus the
/// terminating zero.
const LONGEST: usize = 15;

/// The name of a process as the kernel keeps it: its first 15 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct ProcessName([u8; LONGEST]);

impl ProcessName {
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(LONGEST);
        str::from_utf8(&self.0[..length]).unwrap_or_default()
    }
}

impl From<&str> for ProcessName {
    fn from(text: &str) -> Self {
        let mut name = [0; LONGEST];
        let most = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        name[..most].copy_from_slice(&text.as_bytes()[..most]);
        ProcessName(name)
    }
}

impl From<String> for ProcessName {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<ProcessName> for String {
    fn from(name: ProcessName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Debug for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_as_the_kernel_cuts_it() {
        for (text, kept) in [
            ("nginx", "nginx"),
            ("", ""),
            ("systemd-timesyncd", "systemd-timesyn"),
            ("fünfzehn-byte-ö", "fünfzehn-byte-"),
        ] {
            let name = ProcessName::from(text);
            assert_eq!(name.as_str(), kept);
            let line = serde_json::to_string(&WatchTarget::Name { name }).unwrap();
            assert_eq!(serde_json::from_str::<WatchTarget>(&line).unwrap(), WatchTarget::Name { name });
        }
    }
}
