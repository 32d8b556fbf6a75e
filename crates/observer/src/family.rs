//! Finds the processes that a watch target names, and their descendants.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use landspeed_record::WatchTarget;

use crate::host::namespace::is_first;
use crate::process_tree::{descendants, with_descendants};
use crate::{Error, procfile};

/// Returns the processes that a target names and their descendants, without those in other network namespaces. The set
/// is empty if the target names no process.
pub(crate) fn family(target: WatchTarget) -> Result<BTreeSet<u32>, Error> {
    let roots = match target {
        WatchTarget::Pid { pid } => BTreeSet::from([leader(pid)?]),
        WatchTarget::Name { name } => named(name.as_str())?,
        WatchTarget::Programs => return Ok(descendants().into_iter().collect()),
        WatchTarget::Workload | WatchTarget::Flow { .. } | WatchTarget::Top => return Ok(BTreeSet::new()),
    };
    let mut all = with_descendants(&roots);
    let own = std::process::id();
    // A named process, such as a shell, may have started this process; this process is then not part of the target.
    all.retain(|pid| *pid != own || roots.contains(pid));
    let here = namespace("thread-self");
    // sock_diag lists only the sockets of this thread's network namespace, so no socket of a process in another one
    // would match.
    all.retain(|pid| elsewhere_than(here.as_deref(), *pid).is_none());
    match (roots.first(), all.is_empty()) {
        (Some(root), true) => Err(elsewhere(*root, here.as_deref())),
        _ => Ok(all),
    }
}

/// Returns the id of the process to which the thread `id` belongs. If `id` is the id of a process, returns it, because
/// it is also the id of the first thread.
fn leader(id: u32) -> Result<u32, Error> {
    let status = procfile::read(&format!("/proc/{id}/status")).map_err(|_| Error::Gone {
        object: format!("process {id}"),
        why: "/proc does not list it; is it of another PID namespace?".into(),
    })?;
    let leader = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    Ok(leader.unwrap_or(id))
}

/// Returns the processes with this name.
fn named(name: &str) -> Result<BTreeSet<u32>, Error> {
    let is_one = |pid: &u32| procfile::word(format!("/proc/{pid}/comm")).as_deref() == Some(name);
    let found: BTreeSet<u32> =
        procfile::numbered("/proc").unwrap_or_default().into_iter().filter(is_one).collect();
    match found.is_empty() {
        true => Err(Error::Unable(format!(
            "no process here is called '{}' (`ps -eo pid,comm` lists them)",
            name.escape_default()
        ))),
        false => Ok(found),
    }
}

/// Returns the kernel's name for the network namespace of `of`, which is a process id or "thread-self". The name has
/// the form "net:[4026531833]".
fn namespace(of: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{of}/ns/net")).ok()
}

/// Returns the name of the network namespace of process `pid`; `None` if the namespace is `here` or unknown.
fn elsewhere_than(here: Option<&Path>, pid: u32) -> Option<PathBuf> {
    namespace(&pid.to_string()).filter(|there| here.is_some_and(|here| here != there))
}

/// Returns the error for a process in another network namespace. The error has the command that watches the process
/// there.
fn elsewhere(pid: u32, here: Option<&Path>) -> Error {
    let there = elsewhere_than(here, pid).unwrap_or_default();
    let (namespace, command) = match name_of(pid) {
        Some(name) => (
            format!("network namespace {name}"),
            format!("`landspeed explain netns:{name} --pid {pid}` watches it"),
        ),
        None if is_first(&there) => {
            let from = format!("`landspeed explain --pid {pid}`, run outside this namespace, watches it");
            ("another network namespace, the machine's first".to_owned(), from)
        }
        None => (
            "another network namespace, which has no name".to_owned(),
            format!(
                "name it (`ip netns attach NAME {pid}`), then `landspeed explain netns:NAME --pid {pid}`"
            ),
        ),
    };
    Error::Elsewhere { pid, namespace, command }
}

/// The folder in which `ip netns` keeps the names of namespaces.
const NAMES: &str = "/run/netns";

/// Returns the name that `ip netns` shows for the network namespace of process `pid`; `None` if it has no name.
fn name_of(pid: u32) -> Option<String> {
    let id = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let own = id(Path::new(&format!("/proc/{pid}/ns/net")))?;
    let mut named = fs::read_dir(NAMES).ok()?.flatten();
    let entry = named.find(|entry| id(&entry.path()) == Some(own))?;
    entry.file_name().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_selects_its_process_and_a_missing_one_is_an_error() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        assert_eq!(leader(tid).unwrap(), std::process::id());
        let gone = family(WatchTarget::Pid { pid: u32::MAX >> 2 }).unwrap_err().to_string();
        assert!(gone.starts_with("process 1073741823 is gone"), "{gone}");
        let missing = family(WatchTarget::Name { name: "no such\u{7}one".into() }).unwrap_err().to_string();
        assert!(missing.contains(r"called 'no such\u{7}one'"), "{missing}");
        assert!(family(WatchTarget::Top).unwrap().is_empty());
    }
}
