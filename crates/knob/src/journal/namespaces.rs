//! Other network namespaces: finding them by cookie, and running work in them on a separate thread.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landspeed_kernel::netlink::netns_cookie;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Returns the namespace with this cookie, through any handle to it, or `None` if no name or process holds it any
/// more.
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

/// Runs `work` in the namespace on a temporary thread. This thread stays in its own.
pub(super) fn inside<T: Send>(namespace: &OwnedFd, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let enter = || -> io::Result<T> {
        use std::os::fd::AsFd;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(work())
    };
    std::thread::scope(|scope| scope.spawn(enter).join()).unwrap_or_else(|_| Err(io::Error::other("a bug")))
}

/// Runs `work` in the namespace with a /sys that shows the namespace's devices.
pub(super) fn inside_with_sysfs<T: Send>(
    namespace: &OwnedFd,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    inside(namespace, || own_sysfs().map(|()| work()))?
}

/// Mounts a new sysfs that only this thread sees. It shows the devices of the mounting thread's network namespace.
fn own_sysfs() -> io::Result<()> {
    // SAFETY: the thread leaves the file system context that it shared with the process (unshare(2): a new mount
    // namespace implies CLONE_FS). It is a temporary thread that does nothing else afterwards.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Removes the old /sys with everything below it. This may fail, which does no harm.
    let _ = unmount("/sys", UnmountFlags::DETACH);
    mount("sysfs", "/sys", "sysfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?;
    Ok(())
}
