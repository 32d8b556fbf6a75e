//! Moves a whole process, or one closure, into a network namespace.

use std::io;
use std::os::fd::AsFd;

use landspeed_kernel::namespace::{enter_network, inside, own_sysfs};

use crate::failure::FailureContext;
use crate::topology::error::Error;

/// Moves this process permanently into a named network namespace, as `ip netns exec` does. The process also gets its
/// own mount namespace, in which /sys shows the devices of the network namespace. Mounts below /sys are hidden.
///
/// Call it before this process starts any thread, because only the calling thread moves. Otherwise it returns
/// [`Error::Threads`]. Needs CAP_SYS_ADMIN.
pub fn enter(name: &str) -> Result<(), Error> {
    let threads = thread_count().during(|| "count this process's threads".into())?;
    if threads != 1 {
        return Err(Error::Threads { name: name.to_owned(), threads });
    }
    enter_network(super::open(name)?).during(|| format!("enter network namespace {name}"))?;
    Ok(own_sysfs().during(|| format!("mount /sys of network namespace {name}"))?)
}

/// Runs `work` on a new thread inside a named network namespace, and returns its result. A panic in `work` is
/// propagated to the caller. Sockets that `work` opens stay in the namespace. /sys still shows the caller's devices.
pub fn with_namespace<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let namespace = super::open(name)?;
    Ok(inside(namespace.as_fd(), work).during(|| format!("enter network namespace {name}"))?)
}

fn thread_count() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}
