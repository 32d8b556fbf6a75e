//! Compares the rights of a process with this process's own. landspeed makes a connection for a process only if both
//! have the same rights.
//!
//! For a call that landspeed makes, the kernel checks landspeed's rights, not the program's. So the calls of a process
//! that has changed its own rights are left to the kernel. It may have changed them by setuid(2) and similar calls,
//! capset(2), unshare(2), setns(2), clone(2) with new namespaces, or a label of a security module. All of these can be
//! read from /proc at any time. Landlock leaves no trace there. So landspeed intercepts landlock_restrict_self(2), and
//! marks the process with a special value of a resource limit that Linux does not enforce (RLIMIT_RSS). All children
//! inherit the mark as they inherit the restriction, and both stay when the process executes another program.

use std::fs;
use std::os::unix::fs::MetadataExt;

use libc::{RLIMIT_RSS, rlim_t, rlimit};

use crate::notify::{NotifiedCall, SyscallRule};

/// The rule that intercepts landlock_restrict_self(2), by which a process restricts itself without a trace in /proc.
pub(crate) const SEEN: SyscallRule = SyscallRule { call: libc::SYS_landlock_restrict_self, when: &[] };

/// The value of RLIMIT_RSS that marks a restricted process, in bytes: large, but not RLIM_INFINITY.
const MARK: rlim_t = rlim_t::MAX >> 2;

/// The beginnings of the lines of /proc/PID/status that are compared.
const LINES: [&str; 4] = ["Uid:", "Gid:", "Groups:", "CapEff:"];

const NAMESPACES: [&str; 8] = ["user", "net", "mnt", "pid", "ipc", "uts", "cgroup", "time"];

/// The rights of a thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    credentials: Vec<String>,
    namespaces: [Option<u64>; NAMESPACES.len()],
    /// The label of the host's security module; `None` if there is none.
    label: Option<Vec<u8>>,
    mark: Option<rlim_t>,
}

impl Rights {
    /// Reads the rights of this process.
    pub(crate) fn own() -> Self {
        Rights::in_folder("thread-self", 0)
    }

    /// Reads the rights of the thread with this ID. Rights that cannot be read are left empty.
    pub(crate) fn of(thread: i32) -> Self {
        Rights::in_folder(&thread.to_string(), thread)
    }

    fn in_folder(name: &str, thread: i32) -> Self {
        let status = fs::read_to_string(format!("/proc/{name}/status")).unwrap_or_default();
        let counts = |line: &&str| LINES.iter().any(|begin| line.starts_with(begin));
        let credentials = status.lines().filter(counts).map(str::to_owned).collect();
        let namespace = |of: &str| Some(fs::metadata(format!("/proc/{name}/ns/{of}")).ok()?.ino());
        let label = fs::read(format!("/proc/{name}/attr/current")).ok();
        Rights { credentials, namespaces: NAMESPACES.map(namespace), label, mark: limit(thread, None) }
    }
}

/// Marks the process of a call as one that has restricted itself.
pub(crate) fn mark(call: &NotifiedCall<'_>) {
    limit(call.process(), Some(rlimit { rlim_cur: MARK, rlim_max: MARK }));
}

/// Sets RLIMIT_RSS of a process to `new`, if given (prlimit(2)). Returns the hard limit before the call. If `process`
/// is 0, it is this process.
fn limit(process: i32, new: Option<rlimit>) -> Option<rlim_t> {
    let mut old = rlimit { rlim_cur: 0, rlim_max: 0 };
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel reads `new` if given, and writes `old`.
    let code = unsafe { libc::prlimit(process, RLIMIT_RSS, new, &raw mut old) };
    (code == 0).then_some(old.rlim_max)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn another_process_has_the_same_rights_until_it_changes_one_and_so_do_its_children() {
        let rights_of = |words: &[&str]| {
            let mut child = Command::new(words[0]);
            let mut child =
                child.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            // The child echoes the byte only once it runs its last program, cat.
            std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"x").unwrap();
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
            let found = Rights::of(child.id() as i32);
            drop(child.stdin.take());
            child.wait().unwrap();
            found
        };
        assert_eq!(rights_of(&["cat"]), Rights::own());
        assert_ne!(rights_of(&["sh", "-c", "ulimit -m 1000000; cat"]), Rights::own());
        if rustix::process::geteuid().is_root() {
            assert_ne!(rights_of(&["setpriv", "--reuid", "41004", "cat"]), Rights::own());
            assert_ne!(rights_of(&["unshare", "--uts", "cat"]), Rights::own());
        }
    }
}
