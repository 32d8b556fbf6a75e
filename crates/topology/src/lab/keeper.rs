//! The keeper: a process that takes labs down when their owner has died, however it died.
//!
//! One for each process that makes labs, started before its first. It holds a pidfd of its owner and nothing
//! else, so a signal to the owner's process group, session or terminal does not reach it, and it ends by
//! itself soon after its owner. Where it died too, [`super::down`] with [`super::Which::Stale`] does its work.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, OnceLock, PoisonError};

use landspeed_daemon as daemon;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::error::{During, Error};

/// The command line that plays the keeper.
static COMMAND: OnceLock<Vec<OsString>> = OnceLock::new();
/// Whether this process has one.
static STARTED: Mutex<bool> = Mutex::new(false);

/// From here on labs of this process have a keeper: `command` is a program that calls [`outlive_owner`] and
/// then takes down what is stale. A process that does not call this leaves its labs behind when it is killed.
/// Only the first call counts.
pub fn keep_with(command: Vec<OsString>) {
    let _ = COMMAND.set(command);
}

/// In the keeper: settles in and returns once its owner has ended. `false`, at once, where no owner started
/// this process.
pub fn outlive_owner() -> bool {
    let Some(owner) = daemon::inherited(is_pidfd) else { return false };
    // A keeper that is easier to kill than it should be has nobody to tell.
    let _ = daemon::daemonize("keeper");
    while poll(&mut [PollFd::new(&owner, PollFlags::IN)], None) == Err(rustix::io::Errno::INTR) {}
    true
}

/// Starts the keeper, unless it was started or none is wanted.
pub(super) fn start() -> Result<(), Error> {
    let Some(command) = COMMAND.get() else { return Ok(()) };
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*started {
        let spawn = |me: OwnedFd| daemon::spawn(command, me);
        let me = pidfd_open(getpid(), PidfdFlags::empty()).map_err(std::io::Error::from);
        me.and_then(spawn).during(|| "start the keeper, which takes labs down when this dies".into())?;
        *started = true;
    }
    Ok(())
}

/// Only of a pidfd the kernel tells whose it is (fs/pidfs.c).
fn is_pidfd(fd: BorrowedFd<'_>) -> bool {
    let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
    told.is_ok_and(|told| told.lines().any(|line| line.starts_with("Pid:")))
}
