//! The keeper: a process that takes labs down after their owner has died for any reason.
//!
//! Each process that creates labs starts one keeper before its first lab. The keeper is a daemon that holds only a
//! pidfd of its owner. A signal to the owner's process group, session or terminal does not reach the keeper. It ends by
//! itself soon after its owner. If the keeper was killed too, [`super::down`] with [`super::LabSelection::Stale`] does
//! its work.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use landspeed_kernel::daemon;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::failure::FailureContext;
use crate::topology::error::Error;

/// The command line that runs the keeper.
static COMMAND: OnceLock<Vec<OsString>> = OnceLock::new();
/// True if this process has started its keeper.
static STARTED: Mutex<bool> = Mutex::new(false);

/// Sets the command that starts the keeper of this process's labs: a program that calls [`outlive_owner`] and then
/// takes down stale labs. If a process does not call this function and is killed, its labs stay. Only the first call
/// has an effect.
pub fn keep_with(command: Vec<OsString>) {
    let _ = COMMAND.set(command);
}

/// Detaches this process, the keeper, and returns true once its owner has ended. Returns false immediately if no owner
/// started this process.
pub fn outlive_owner() -> bool {
    let Some(owner) = daemon::inherited(is_pidfd) else { return false };
    // If this fails, the keeper still works, but more signals can reach it. The failure cannot be reported.
    let _ = daemon::daemonize("keeper");
    while poll(&mut [PollFd::new(&owner, PollFlags::IN)], None) == Err(rustix::io::Errno::INTR) {}
    true
}

/// Starts the keeper, unless it has been started or [`keep_with`] has set no command.
pub(super) fn start() -> Result<(), Error> {
    let Some(command) = COMMAND.get() else { return Ok(()) };
    let mut started = STARTED.lock();
    if !*started {
        let spawn = |me: OwnedFd| daemon::spawn(command, me);
        let me = pidfd_open(getpid(), PidfdFlags::empty()).map_err(std::io::Error::from);
        me.and_then(spawn).during(|| "start the keeper, which takes labs down when this dies".into())?;
        *started = true;
    }
    Ok(())
}

/// Returns true if the descriptor is a pidfd. Only pidfds have a line "Pid:" in /proc/PID/fdinfo (fs/pidfs.c).
fn is_pidfd(fd: BorrowedFd<'_>) -> bool {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
    text.is_ok_and(|text| text.lines().any(|line| line.starts_with("Pid:")))
}
