//! Moves a whole process, or one closure, into a network namespace.

use std::io;
use std::os::fd::AsFd;

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::failure::FailureContext;
use crate::topology::error::Error;

/// Moves this process into a named network namespace for good, as `ip netns exec` does. It also gets its own mount
/// namespace, with a /sys that shows the namespace's devices. Mounts below /sys are hidden.
///
/// Call it before any thread is started, because only the calling thread moves; otherwise it returns
/// [`Error::Threads`]. Needs CAP_SYS_ADMIN.
pub fn enter(name: &str) -> Result<(), Error> {
    let threads = thread_count().during(|| "count this process's threads".into())?;
    if threads != 1 {
        return Err(Error::Threads { name: name.to_owned(), threads });
    }
    move_network(name)?;
    Ok(own_sys().during(|| format!("mount /sys of network namespace {name}"))?)
}

/// Runs `work` on a new thread inside a named network namespace, and returns its result; a panic in it continues here.
/// Sockets opened there stay in the namespace. /sys still shows the caller's devices.
pub fn with_namespace<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    on_fresh_thread(|| {
        move_network(name)?;
        Ok(work())
    })
}

/// Runs `work` on a new thread, so that it may leave its namespace.
pub(super) fn on_fresh_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let outcome = std::thread::scope(|scope| scope.spawn(work).join());
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Moves this thread into a new network namespace.
pub(super) fn unshare_network() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

fn move_network(name: &str) -> Result<(), Error> {
    let file = super::open(name)?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .during(|| format!("enter network namespace {name}"))?)
}

fn thread_count() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

fn own_sys() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    // Mounts made here must not show outside; later mounts outside may show here. In a chroot, / is not a mount, but
    // /sys is.
    let inward = |at| mount_change(at, MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC);
    inward("/").or_else(|_| inward("/sys"))?;
    unmount("/sys", UnmountFlags::DETACH)?;
    Ok(mount("sysfs", "/sys", "sysfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES), "bug: descriptors must stay shared");
    // SAFETY: this is unsound only with CLONE_FILES, which would split the threads' descriptor tables; see above.
    Ok(unsafe { unshare_unsafe(flags) }?)
}
