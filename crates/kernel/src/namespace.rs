//! Runs work on threads in other namespaces, and reads the ID of the current boot.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Returns the random ID of the current boot (/proc/sys/kernel/random/boot_id).
pub fn boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Runs `work` on a new thread and returns its result. `work` may move the thread into other namespaces, because the
/// thread ends when `work` returns. A panic in `work` is raised again in the calling thread.
pub fn on_fresh_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let outcome = std::thread::scope(|scope| scope.spawn(work).join());
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `work` on a new thread in the network namespace `namespace` and returns its result. A panic in `work` is raised
/// again in the calling thread. Sockets that `work` opens stay in `namespace`. On the new thread, /sys still shows the
/// devices of the caller's namespace.
pub fn inside<T: Send>(namespace: BorrowedFd<'_>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_fresh_thread(|| {
        enter_network(namespace)?;
        Ok(work())
    })
}

/// Moves this thread into a network namespace.
pub fn enter_network(namespace: impl AsFd) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Moves this thread into a new network namespace. The kernel removes the namespace when no thread, socket or name
/// refers to it any more.
pub fn unshare_network() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

/// Mounts a new /sys that shows the devices of this thread's network namespace. Only this thread, and the threads and
/// processes that it starts, see the new /sys. Mounts below the old /sys are no longer visible to them.
pub fn own_sysfs() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    // The new /sys must not propagate to other mount namespaces; later mounts there may propagate to this one. In a
    // chroot, / is not a mount point, but /sys is one.
    let inward = |at| mount_change(at, MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC);
    inward("/").or_else(|_| inward("/sys"))?;
    // Unmounts the old /sys and all mounts below it. A failure is harmless, because the new mount covers the old one.
    let _ = unmount("/sys", UnmountFlags::DETACH);
    Ok(mount("sysfs", "/sys", "sysfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES), "bug: descriptors must stay shared");
    // SAFETY: unshare(2) is unsound only with CLONE_FILES, which would split the threads' descriptor tables. The
    // assertion above excludes this flag.
    Ok(unsafe { unshare_unsafe(flags) }?)
}
