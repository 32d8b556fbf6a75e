//! The locks of a journal and of a network namespace.
//!
//! One run at a time tunes a network namespace, whatever its state folder, mount namespace or PID namespace. The lock
//! is a flock(2) on the namespace itself: on the nsfs inode behind /proc/thread-self/ns/net, which is the same for
//! every process of the namespace. The kernel releases the lock when the last process that holds it ends. A knob of the
//! whole host is changed only from the machine's first network namespace ([`super::identity::in_initial_netns`]), so
//! that namespace's lock is also the host's (docs/decisions/0019).
//!
//! Any user in the namespace can also take this lock. It then only keeps a run from starting, and the error names the
//! process that holds it and the user, so that root can end the process.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use landspeed_kernel::daemon::{ProcessIdentity, is_daemon};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

use super::JournalError;

/// The guardian's role as a daemon. It is part of the thread name by which other runs recognise a guardian.
pub(super) const ROLE: &str = "guardian";
/// The time for which a new run waits for the guardian of a dead agent to restore.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);
/// The time for which a killed process, or a child that is about to execute another program, may still hold a lock.
const GOING: Duration = Duration::from_millis(500);

/// Path of the network namespace of the thread that opens it.
const NAMESPACE: &str = "/proc/thread-self/ns/net";

/// The lock of a network namespace. It belongs to the open file, so every process with a duplicate holds it too.
#[derive(Debug)]
pub(super) struct NamespaceLock(OwnedFd);

impl NamespaceLock {
    /// Takes the lock of this thread's network namespace.
    pub(super) fn take() -> Result<NamespaceLock, JournalError> {
        let path = Path::new(NAMESPACE);
        let fd = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| JournalError::io("open", path, e))?;
        lock(&fd, path)?;
        Ok(NamespaceLock(fd))
    }

    /// Takes over a lock that is already held.
    pub(super) fn adopt(fd: OwnedFd) -> NamespaceLock {
        NamespaceLock(fd)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Locks an open file. Waits for a guardian that restores after its agent's death.
///
/// # Errors
/// Returns [`JournalError::InProgress`] if another run holds the lock, [`JournalError::Stuck`] if a guardian that
/// holds it is stopped or takes too long, and [`JournalError::Unseen`] if no process that holds it is visible.
pub(super) fn lock(fd: &OwnedFd, path: &Path) -> Result<(), JournalError> {
    let begun = Instant::now();
    loop {
        match flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => match wait(fd, path, begun.elapsed() > PATIENCE) {
                // A process that was just killed holds the lock until the kernel has removed it. By then it may no
                // longer have the name of a guardian's thread.
                Err(JournalError::InProgress { .. }) if begun.elapsed() < GOING => std::thread::sleep(PAUSE),
                waited => waited?,
            },
            Err(e) => return Err(JournalError::io("lock", path, e)),
        }
    }
}

/// Waits for [`PAUSE`] if only guardians hold the lock, because their agents are dead or have not begun. Returns an
/// error that describes the holder if it is another process or a stopped guardian, or if `late` is true.
fn wait(fd: &OwnedFd, path: &Path, late: bool) -> Result<(), JournalError> {
    let holders = holders(fd).map_err(|e| JournalError::io("stat", path, e))?;
    if let Some(holder) = holders.iter().find(|h| !is_daemon(h.pid, ROLE)) {
        let (pid, uid) = (holder.pid, holder.uid);
        return Err(JournalError::InProgress { pid, uid });
    }
    match holders.first().map(|guardian| guardian.pid) {
        Some(pid) if ProcessIdentity::find(pid).is_some_and(|p| p.is_stopped()) => {
            Err(JournalError::Stuck { pid, how: "is stopped" })
        }
        Some(pid) if late => Err(JournalError::Stuck { pid, how: "has not put everything back" }),
        None if late => Err(JournalError::Unseen { path: path.to_owned() }),
        _ => {
            std::thread::sleep(PAUSE);
            Ok(())
        }
    }
}

/// A process that holds a lock.
struct LockHolder {
    pid: u32,
    uid: u32,
}

/// Returns the processes with a locked descriptor of this file. Reads the descriptors of all processes, because
/// /proc/locks names only the process that took the lock, which may have shared it and died.
fn holders(fd: &OwnedFd) -> rustix::io::Result<Vec<LockHolder>> {
    let stat = rustix::fs::fstat(fd)?;
    let file = (stat.st_dev, stat.st_ino);
    let list = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let locked = |process: &Path| {
        list(&process.join("fdinfo")).any(|info| {
            let lines = fs::read_to_string(info.path()).unwrap_or_default();
            let same = || fs::metadata(process.join("fd").join(info.file_name()));
            lines.lines().any(|line| line.starts_with("lock:") && line.contains("FLOCK"))
                && same().is_ok_and(|found| (found.dev(), found.ino()) == file)
        })
    };
    let holder = |process: fs::DirEntry| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let path = process.path();
        let uid = fs::metadata(&path).ok()?.uid();
        locked(&path).then_some(LockHolder { pid, uid })
    };
    Ok(list(Path::new("/proc")).filter_map(holder).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_shared_outlives_its_taker_and_its_holder_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || OwnedFd::from(fs::File::open(file.path()).unwrap());
        let first = open();
        lock(&first, file.path()).unwrap();
        let shared = first.try_clone().unwrap();
        drop(first);
        let second = open();
        let found = holders(&second).unwrap();
        assert_eq!(found.iter().map(|h| h.pid).collect::<Vec<_>>(), [std::process::id()]);
        let refused = lock(&second, file.path());
        assert!(matches!(refused, Err(JournalError::InProgress { pid, .. }) if pid == std::process::id()));
        drop(shared);
        lock(&second, file.path()).unwrap();
    }
}
