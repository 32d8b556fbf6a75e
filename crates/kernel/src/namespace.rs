//! Threads in other namespaces, and the identity of the boot.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Returns the ID of this boot (/proc/sys/kernel/random/boot_id).
pub fn boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Runs `work` on a new thread and returns its result. `work` may move that thread into other namespaces, because the
/// thread ends with it. A panic in `work` continues in the caller.
pub fn on_fresh_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let outcome = std::thread::scope(|scope| scope.spawn(work).join());
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `work` on a new thread inside a network namespace and returns its result. A panic in `work` continues in the
/// caller. Sockets that `work` opens stay in the namespace. /sys still shows the caller's devices.
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

/// Moves this thread into a new network namespace, which ends when no thread, socket or name uses it any more.
pub fn unshare_network() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

/// Mounts a /sys with the devices of this thread's network namespace. Only this thread, and what it starts, sees the
/// mount. Mounts below the old /sys are hidden.
pub fn own_sysfs() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    // Mounts made here must not show outside; later mounts outside may show here. In a chroot, / is not a mount, but
    // /sys is.
    let inward = |at| mount_change(at, MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC);
    inward("/").or_else(|_| inward("/sys"))?;
    // Removes the old /sys with everything below it. This may fail, which does no harm.
    let _ = unmount("/sys", UnmountFlags::DETACH);
    Ok(mount("sysfs", "/sys", "sysfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES), "bug: descriptors must stay shared");
    // SAFETY: this is unsound only with CLONE_FILES, which would split the threads' descriptor tables; see above.
    Ok(unsafe { unshare_unsafe(flags) }?)
}
