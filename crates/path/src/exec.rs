//! A program, run over a path.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::notify::install;
use crate::shared::Shared;
use crate::supervisor::Supervisor;
use crate::{Counts, Error, Path};

/// How a program ended that ran over a path.
#[derive(Debug)]
pub struct Ended {
    /// As wait(2) tells it.
    pub status: ExitStatus,
    /// What was carried of it and of what it started, until it ended.
    pub counts: Counts,
    /// From its start to its end.
    pub took: Duration,
    /// Processor time of it, of what it has started and waited for, and of what carried its connections.
    pub cpu: Duration,
}

/// Runs `command` over a path until it ends. `keeper` runs [`keep`](crate::keep) for the path, with its standard input, output and
/// error as the three descriptors.
///
/// # Errors
/// A program that cannot be started; a kernel, or a host, without what the path needs.
pub fn exec(path: &dyn Path, mut command: Command, mut keeper: Command) -> Result<Ended, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let start = |source| Error::Start { program: program.clone(), source };
    let before = cpu();
    if path.rules().is_empty() {
        let began = Instant::now();
        let status = command.status().map_err(start)?;
        let (took, cpu) = (began.elapsed(), cpu().saturating_sub(before));
        return Ok(Ended { status, counts: Counts::default(), took, cpu });
    }
    let shared = Arc::new(Shared::new().map_err(Error::refused("make shared memory"))?);
    let carrier = path.carrier(&shared)?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|error| Error::refused("make a pair of sockets")(error.into()))?;
    let install = install(path.rules());
    let hand_over = move || send(&theirs, &install()?);
    // SAFETY: the closure makes system calls alone, with memory that was there before the fork.
    unsafe { command.pre_exec(hand_over) };
    let began = Instant::now();
    let mut child = command.spawn().map_err(start)?;
    // Our copy of the child's end went into the closure.
    drop(command);
    let listener = receive(&ours).map_err(Error::Notify)?;
    let supervisor = Supervisor::new(listener, carrier, shared);
    let mut keeps = || -> io::Result<()> {
        let [listener, shared] = supervisor.heirlooms()?;
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        // A program's terminal, and its signals, are no affair of the keeper's.
        keeper.process_group(0);
        keeper
            .stdin(Stdio::from(listener))
            .stdout(Stdio::from(shared))
            .stderr(Stdio::from(own))
            .spawn()
            .map(drop)
    };
    keeps().map_err(Error::refused("start the process that follows this one"))?;
    supervisor.start().map_err(Error::refused("start a thread"))?;
    pass_on(child.id()).map_err(Error::refused("take signals over"))?;
    let status = child.wait().map_err(Error::refused("wait for the program"))?;
    let (took, cpu) = (began.elapsed(), cpu().saturating_sub(before));
    Ok(Ended { status, counts: supervisor.carrier.counts(), took, cpu })
}

/// Processor time of this process and of the children that it has waited for (getrusage(2)).
fn cpu() -> Duration {
    let of = |who| {
        // SAFETY: zeros are a valid value, and the kernel writes no more than the structure.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

/// The program is told to end where this process is. What a terminal sends comes to both anyway.
fn pass_on(child: u32) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT])?;
    let Some(child) = Pid::from_raw(child as i32) else { return Ok(()) };
    thread::spawn(move || {
        for signal in signals.forever().filter(|signal| [SIGTERM, SIGHUP].contains(signal)) {
            let signal = if signal == SIGTERM { Signal::TERM } else { Signal::HUP };
            let _ = kill_process(child, signal);
        }
    });
    Ok(())
}

fn send(to: &OwnedFd, listener: &OwnedFd) -> io::Result<()> {
    let fds = [listener.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(to, &[io::IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(from: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(from, &mut [io::IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let found = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
