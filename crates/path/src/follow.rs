//! The process that follows this one, started again each time that it ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::{PidfdFlags, getpid, pidfd_open, setsid};

use crate::socket::wait;

/// How soon it is started again.
const AGAIN: Duration = Duration::from_millis(10);
/// One that lives shorter than this may be one that cannot run; how many of them in a row are enough.
const LIVES: Duration = Duration::from_secs(1);
const MOST_SOON: u32 = 20;

/// Has `keeper` follow this process from now on. Its standard input, output and error are the listener, the notes, and a pidfd
/// of this process.
///
/// # Errors
/// It cannot be started.
pub(crate) fn follow(mut keeper: Command, heirlooms: [OwnedFd; 2]) -> io::Result<()> {
    // A session that ends, or a terminal, is no affair of the keeper's.
    let alone = || Ok(setsid().map(drop)?);
    // SAFETY: one system call.
    unsafe { keeper.pre_exec(alone) };
    let mut child = start(&mut keeper, &heirlooms)?;
    let starts_again = move || {
        let mut last = Instant::now();
        let mut soon = 0;
        loop {
            let _ = child.wait();
            soon = if last.elapsed() < LIVES { soon + 1 } else { 0 };
            if soon > MOST_SOON || is_over(&heirlooms[0]) {
                return;
            }
            thread::sleep(AGAIN);
            last = Instant::now();
            // Without a process or a descriptor to spare, the next one is tried later.
            match start(&mut keeper, &heirlooms) {
                Ok(next) => child = next,
                Err(_) => thread::sleep(LIVES),
            }
        }
    };
    thread::Builder::new().name("path-follow".to_owned()).spawn(starts_again).map(drop)
}

/// Whether no process has the filter any more: then nothing is to be started.
pub(crate) fn is_over(listener: impl AsFd) -> bool {
    let [gone] = wait([(listener.as_fd(), PollFlags::empty())], Some(Duration::ZERO));
    gone.contains(PollFlags::HUP)
}

fn start(keeper: &mut Command, [listener, notes]: &[OwnedFd; 2]) -> io::Result<Child> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let (listener, notes) = (listener.try_clone()?, notes.try_clone()?);
    keeper.stdin(Stdio::from(listener)).stdout(Stdio::from(notes)).stderr(Stdio::from(own)).spawn()
}
