//! What a process may do, compared with what this one may: landspeed makes a connection in a process's place only where both may do the same.
//!
//! The kernel asks this process's rights, and not the program's, for a call that is made here. So a process that has changed its own is
//! left to the kernel: by setuid(2) and its like, capset(2), unshare(2), setns(2), clone(2) with new namespaces, or a label of a security module.
//! All of these can be read, whoever did it and when. Landlock cannot: it leaves no trace in /proc. So landspeed sees
//! landlock_restrict_self(2), and marks the process with another limit of a resource that Linux does not limit (RLIMIT_RSS). Like the
//! restriction, the mark goes to all children and stays where the process runs another program.

use std::fs;
use std::os::unix::fs::MetadataExt;

use libc::{RLIMIT_RSS, rlim_t, rlimit};

use crate::notify::{Call, Rule};

/// What a process restricts itself with, and leaves no trace.
pub(crate) const SEEN: Rule = Rule { call: libc::SYS_landlock_restrict_self, when: &[] };

/// The limit of a process that has restricted itself: large, and less than none.
const MARK: rlim_t = rlim_t::MAX >> 2;

/// Lines of /proc/PID/status that count.
const LINES: [&str; 4] = ["Uid:", "Gid:", "Groups:", "CapEff:"];

const NAMESPACES: [&str; 8] = ["user", "net", "mnt", "pid", "ipc", "uts", "cgroup", "time"];

/// What a thread may do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    credentials: Vec<String>,
    namespaces: [Option<u64>; NAMESPACES.len()],
    /// As the security modules of the host call it, where there is one.
    label: Option<Vec<u8>>,
    mark: Option<rlim_t>,
}

impl Rights {
    /// Those of this process.
    pub(crate) fn own() -> Self {
        Rights::in_folder("thread-self", 0)
    }

    /// Those of a thread; what cannot be read is none.
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

/// Marks the process of a call as one that restricts itself.
pub(crate) fn mark(call: &Call<'_>) {
    limit(call.process(), Some(rlimit { rlim_cur: MARK, rlim_max: MARK }));
}

/// The hard limit that a process had (prlimit(2)), 0 for this one; it gets a new one where there is one.
fn limit(process: i32, new: Option<rlimit>) -> Option<rlim_t> {
    let mut old = rlimit { rlim_cur: 0, rlim_max: 0 };
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel reads the one where there is one, and writes the other.
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
            // It reads once it is what it is to be.
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
