//! A program, run over a path.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::follow::follow;
use crate::notify::{Rule, install};
use crate::shared::Shared;
use crate::supervisor::Supervisor;
use crate::{Carrier, Counts, Error, Options, Path};

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
/// A program that cannot be started; a kernel, or a host, without what the path needs; a choice where the path has none.
pub fn exec(
    path: &dyn Path,
    options: &Options,
    mut command: Command,
    keeper: Command,
) -> Result<Ended, Error> {
    if let Some(why) = path.takes_all()
        && !options.only.is_all()
    {
        return Err(Error::TakesAll { path: path.name(), why });
    }
    let before = cpu();
    if path.rules().is_empty() {
        let program = name(&command);
        let began = Instant::now();
        let status = command.status().map_err(|source| Error::Start { program, source })?;
        let (took, cpu) = (began.elapsed(), cpu().saturating_sub(before));
        return Ok(Ended { status, counts: Counts::default(), took, cpu });
    }
    let shared = Arc::new(Shared::new().map_err(Error::refused("make shared memory"))?);
    let carrier = path.carrier(&shared, options)?;
    let supervise = |child| supervised(child, carrier, shared, &keeper);
    let (mut child, supervisor) = begun(command, path.rules(), supervise)?;
    let began = Instant::now();
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

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// Starts the program with a filter; `supervise` gets the other end of what it hands its listener over with.
fn begun(
    mut command: Command,
    rules: &[Rule],
    supervise: impl FnOnce(OwnedFd) -> Result<Arc<Supervisor>, Error> + Send,
) -> Result<(Child, Arc<Supervisor>), Error> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|error| Error::refused("make a pair of sockets")(error.into()))?;
    let program = name(&command);
    let install = install(rules);
    let number = ours.as_raw_fd();
    let first = rules.iter().find(|rule| rule.when.is_empty()).map(|rule| rule.call);
    let hand_over = move || {
        send(&theirs, &install()?)?;
        // SAFETY: the child's copy of our end, which nothing uses there. With it open, the child would not see that we have gone.
        unsafe { libc::close(number) };
        // The program begins once all is there that answers its calls.
        if recv(&theirs, &mut [0], RecvFlags::empty())?.0 != 1 {
            return Err(Errno::PIPE.into());
        }
        // A call without a descriptor, for its number: the keeper finds calls by those that were noted before.
        if let Some(call) = first {
            // SAFETY: numbers alone.
            unsafe { libc::syscall(call, -1, -1, -1, -1) };
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls alone, with memory that was there before the fork.
    unsafe { command.pre_exec(hand_over) };
    let (child, supervisor) = thread::scope(|threads| {
        let supervised = threads.spawn(|| supervise(ours));
        let child = command.spawn();
        // Our copy of the child's end is in the closure: without it, a child that did not come so far is noticed.
        drop(command);
        (child, supervised.join())
    });
    let panicked = |_| Err(Error::refused("start a thread")(io::ErrorKind::Other.into()));
    match (child, supervisor.unwrap_or_else(panicked)) {
        (Ok(child), Ok(supervisor)) => Ok((child, supervisor)),
        // It only says that it was not let begin.
        (Err(error), Err(why)) if error.kind() == io::ErrorKind::BrokenPipe => Err(why),
        (Err(source), _) => Err(Error::Start { program, source }),
        (_, Err(why)) => Err(why),
    }
}

/// What answers the program's calls, once it has handed its listener over; with the keeper that follows. Then the program may begin.
fn supervised(
    child: OwnedFd,
    carrier: Box<dyn Carrier>,
    shared: Arc<Shared>,
    keeper: &Command,
) -> Result<Arc<Supervisor>, Error> {
    let listener = receive(&child).map_err(Error::Notify)?;
    let supervisor = Supervisor::new(listener, carrier, shared);
    let [notify, notes] = supervisor.heirlooms();
    // The descriptor of this process stays: the keeper waits for it.
    let own =
        follow(keeper, [notify, notes]).map_err(Error::refused("start the process that follows this one"))?;
    std::mem::forget(own);
    supervisor.start().map_err(Error::refused("start a thread"))?;
    rustix::net::send(&child, &[0], SendFlags::NOSIGNAL)
        .map_err(|error| Error::refused("let the program begin")(error.into()))?;
    Ok(supervisor)
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
