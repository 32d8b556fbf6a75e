//! Other network namespaces: finding them by cookie, and running work in them on a separate thread.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use landspeed_kernel::namespace;
use landspeed_kernel::netlink::netns_cookie;
use rustix::fs::{CWD, Mode, OFlags, openat};

/// Returns the namespace with this cookie, or `None` if no name in /run/netns and no visible process leads to it.
pub(super) fn find(cookie: u64) -> Option<OwnedFd> {
    candidates()
        .into_iter()
        .filter_map(|path| open(&path).ok())
        .find(|fd| inside(fd, || netns_cookie().ok()).ok().flatten() == Some(cookie))
}

/// Returns every network namespace that can be reached, including this thread's.
pub(super) fn all() -> Vec<OwnedFd> {
    candidates().into_iter().filter_map(|path| open(&path).ok()).collect()
}

/// Returns one path to each namespace: named ones first (`ip netns`), then those of every process. Paths with the
/// same inode lead to the same namespace.
fn candidates() -> Vec<PathBuf> {
    let list = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let named = list("/run/netns");
    let held = list("/proc")
        .filter(|p| p.file_name().is_some_and(|n| n.as_encoded_bytes().iter().all(u8::is_ascii_digit)))
        .map(|p| p.join("ns/net"));
    let mut seen = std::collections::BTreeSet::new();
    named.chain(held).filter(|path| identity(path).is_some_and(|id| seen.insert(id))).collect()
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Runs `work` in the namespace on a temporary thread. The calling thread stays in its own namespace.
pub(super) fn inside<T: Send>(namespace: &OwnedFd, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    namespace::inside(namespace.as_fd(), work)
}

/// Runs `work` in the namespace with a /sys that shows the namespace's devices.
pub(super) fn inside_with_sysfs<T: Send>(
    namespace: &OwnedFd,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    inside(namespace, || namespace::own_sysfs().map(|()| work()))?
}
