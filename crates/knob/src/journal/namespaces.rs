//! Other network namespaces: found by their cookie, entered by a thread of their own.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landspeed_netlink::netns_cookie;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The namespace with this cookie, by any handle to it; `None` where nobody holds it any more.
pub(super) fn find(cookie: u64) -> Option<OwnedFd> {
    candidates()
        .into_iter()
        .filter_map(|path| open(&path).ok())
        .find(|fd| inside(fd, || netns_cookie().ok()).ok().flatten() == Some(cookie))
}

/// Every network namespace that can be reached, this thread's own among them.
pub(super) fn all() -> Vec<OwnedFd> {
    candidates().into_iter().filter_map(|path| open(&path).ok()).collect()
}

/// Named namespaces first (`ip netns`), then those of every process and of its threads' leaders. Several
/// paths lead to one namespace; its inode tells.
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

/// Runs `work` in the namespace, on a thread that ends with it; this thread stays where it is.
pub(super) fn inside<T: Send>(namespace: &OwnedFd, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let enter = || -> io::Result<T> {
        use std::os::fd::AsFd;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(work())
    };
    std::thread::scope(|scope| scope.spawn(enter).join()).unwrap_or_else(|_| Err(io::Error::other("a bug")))
}

/// As [`inside`], with a /sys that shows the namespace's devices.
pub(super) fn inside_with_sysfs<T: Send>(
    namespace: &OwnedFd,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    inside(namespace, || own_sysfs().map(|()| work()))?
}

/// Mounts sysfs anew where only this thread sees it: it shows the devices of the namespace of its mounter.
fn own_sysfs() -> io::Result<()> {
    // SAFETY: the thread leaves the file system context that it shared with the process (unshare(2): a new
    // mount namespace implies CLONE_FS); it is a thread of our own that does nothing else afterwards.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // What is mounted there stays visible below unless it is taken off first; it may refuse, which is fine.
    let _ = unmount("/sys", UnmountFlags::DETACH);
    mount("sysfs", "/sys", "sysfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?;
    Ok(())
}
