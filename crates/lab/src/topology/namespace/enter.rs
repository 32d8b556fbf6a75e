//! Moves a whole process, or one closure, into a network namespace.

use std::io;
use std::os::fd::AsFd;

use landspeed_kernel::namespace::{enter_network, inside, own_sysfs};

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
    enter_network(super::open(name)?).during(|| format!("enter network namespace {name}"))?;
    Ok(own_sysfs().during(|| format!("mount /sys of network namespace {name}"))?)
}

/// Runs `work` on a new thread inside a named network namespace, and returns its result; a panic in it continues here.
/// Sockets opened there stay in the namespace. /sys still shows the caller's devices.
pub fn with_namespace<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let namespace = super::open(name)?;
    Ok(inside(namespace.as_fd(), work).during(|| format!("enter network namespace {name}"))?)
}

fn thread_count() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}
