//! Runs a program over a path.
//!
//! Three processes take part. The *front* is the process that the shell starts and waits for. It receives the signals,
//! and forks the *supervisor*. The supervisor starts the program and answers its system calls. It runs until no process
//! has the program's filter, so that connections of background processes are still carried. A *keeper* takes over if
//! the supervisor is killed. Supervisor and keeper each have a session of their own. They keep the front's signals
//! blocked: a service manager that signals all processes of a service must not end them before the program.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path as FilePath;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, WaitOptions, getrlimit, pidfd_open, setrlimit, setsid, wait, waitpid,
};
use serde::{Deserialize, Serialize};

use crate::begin::{begun, name};
use crate::follow::follow;
use crate::front::FrontSignals;
use crate::notify::SyscallRule;
use crate::rights;
use crate::shared::SupervisorNotes;
use crate::supervisor::Supervisor;
use crate::{ConnectionCounts, Error, Options, Path, socket};

/// Interval at which the supervisor reaps background processes after the program itself has ended.
const REAPS: Duration = Duration::from_secs(1);

const ANSWERED: &str = "another program answers its system calls already: run the whole under one `landspeed exec`, or outside of the \
                        container whose runtime does so";
const KILLED: &str =
    "the supervisor was killed: later connections stayed on TCP, and what it had counted is lost";
const SILENT: &str =
    "the supervisor is stopped and does not say how the program ended: `kill -CONT` lets it go on";
const NO_PROC: &str = "landspeed reads /proc, which is not there: run `mount -t proc proc /proc`";

/// The result of a program that ran over a path.
#[derive(Debug, Default)]
pub struct ExecOutcome {
    /// Exit status, as wait(2) returns it.
    pub status: ExitStatus,
    /// Connections of the program and of the processes that it started, counted until the program ended.
    pub counts: ConnectionCounts,
    /// Time from the program's start to its end.
    pub took: Duration,
    /// Processor time of the program, of processes that it started and waited for, and of the supervisor.
    pub cpu: Duration,
    /// True if processes that the program started still run, in the background, over the path.
    pub goes_on: bool,
    /// The reason why the program did not run over the path, or why its supervisor was lost; otherwise `None`.
    pub unable: Option<String>,
}

/// A message from the supervisor to the front process, which the shell started and waits for.
#[derive(Serialize, Deserialize)]
enum FrontMessage {
    /// The process with this ID is about to execute the program. It sends this message itself: a stopped supervisor
    /// could not, and the front would have no process to pass signals on to.
    Begun(i32),
    Ended {
        status: i32,
        counts: ConnectionCounts,
        took: Duration,
        cpu: Duration,
        goes_on: bool,
    },
    NotStarted {
        program: String,
        errno: i32,
    },
    /// Another program already answers the program's system calls.
    Answered,
    /// The supervisor was killed; the front waited for the program itself.
    Lost {
        status: i32,
        took: Duration,
    },
    /// The program has ended, the supervisor has not reported its status, and this signal has arrived.
    Silent {
        signal: i32,
        took: Duration,
    },
    Failed(String),
}

/// Runs `command` over a path until it ends. The command `keeper` must call [`keep`](crate::keep) for the same path,
/// with its standard input, output and error as the three descriptors. Call `exec` before this process starts any
/// thread.
///
/// # Errors
/// Returns an error if the program cannot be started, if the kernel or the host lacks what the path needs, or if
/// `options` select some connections and the path must carry all.
pub fn exec(
    path: &dyn Path,
    options: &Options,
    command: Command,
    keeper: Command,
) -> Result<ExecOutcome, Error> {
    if let Some(why) = path.takes_all()
        && !options.only.is_all()
    {
        return Err(Error::TakesAll { path: path.name(), why });
    }
    let front = FrontSignals::new().map_err(Error::refused("take signals over"))?;
    if path.rules().is_empty() {
        return plain(&front, command);
    }
    if !FilePath::new("/proc/self/fd").exists() {
        return without(path, options, &front, command, NO_PROC);
    }
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|error| Error::refused("make a pair of sockets")(error.into()))?;
    adopt();
    // SAFETY: this process has one thread, so the child may call any function.
    match unsafe { libc::fork() } {
        -1 => Err(Error::refused("start the supervisor")(io::Error::last_os_error())),
        0 => {
            drop(ours);
            supervisor(path, options, &front, command, keeper, &theirs)
        }
        child => {
            drop(theirs);
            match attend(&front, &ours, child)? {
                FrontMessage::Answered => without(path, options, &front, command, ANSWERED),
                message => message.into_outcome(),
            }
        }
    }
}

/// Runs a program over the kernel's TCP, without a supervisor.
fn plain(front: &FrontSignals, mut command: Command) -> Result<ExecOutcome, Error> {
    let (program, before, began) = (name(&command), cpu(), Instant::now());
    // SAFETY: the closure makes one system call.
    unsafe { command.pre_exec(front.released()) };
    let mut child = command.spawn().map_err(|source| Error::Start { program, source })?;
    let failed = Error::refused("wait for the program");
    let pidfd = Pid::from_raw(child.id() as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(pidfd) = &pidfd {
        front.pass_on(pidfd.as_fd(), pidfd.as_fd());
    }
    let status = child.wait().map_err(failed)?;
    Ok(ExecOutcome {
        status,
        took: began.elapsed(),
        cpu: cpu().saturating_sub(before),
        ..ExecOutcome::default()
    })
}

/// Runs a program without the path, because the path cannot be used. Returns an error if `options` require the path.
fn without(
    path: &dyn Path,
    options: &Options,
    front: &FrontSignals,
    command: Command,
    why: &'static str,
) -> Result<ExecOutcome, Error> {
    if options.require {
        return Err(Error::Unable { path: path.name(), why });
    }
    Ok(ExecOutcome {
        unable: Some(format!("{} was not put below this program: {why}", path.name())),
        ..plain(front, command)?
    })
}

/// Waits for the program's end, and passes signals on to the program until then. Returns the supervisor's last message.
fn attend(front: &FrontSignals, supervisor: &OwnedFd, process: i32) -> Result<FrontMessage, Error> {
    let message = match next(supervisor) {
        Some(FrontMessage::Begun(program)) => match Pid::from_raw(program) {
            Some(program) => ended(front, supervisor, program),
            None => None,
        },
        message => message,
    };
    let failed = || FrontMessage::Failed("the supervisor ended before the program began".to_owned());
    let message = message.unwrap_or_else(failed);
    if !matches!(message, FrontMessage::Ended { goes_on: true, .. } | FrontMessage::Silent { .. }) {
        // Waits until the supervisor has ended, so that its resources are freed.
        reap(front, process);
    }
    Ok(message)
}

/// Waits for the end of a child process that ends by itself, or for a signal: a child that is stopped does not end.
fn reap(front: &FrontSignals, child: i32) {
    let child = Pid::from_raw(child);
    if let Some(pidfd) = child.and_then(|child| pidfd_open(child, PidfdFlags::empty()).ok()) {
        front.wait_for(pidfd.as_fd());
    }
    let _ = waitpid(child, WaitOptions::NOHANG);
}

/// Waits until the program ends. If its supervisor was killed, the program has become a child of this process, and this
/// function reaps it. If the supervisor is stopped, ends by the last signal.
fn ended(front: &FrontSignals, supervisor: &OwnedFd, program: Pid) -> Option<FrontMessage> {
    let pidfd = pidfd_open(program, PidfdFlags::empty());
    let began = Instant::now();
    let signal = pidfd.iter().find_map(|pidfd| front.pass_on(pidfd.as_fd(), supervisor.as_fd()));
    if let Some(signal) = signal {
        return Some(FrontMessage::Silent { signal, took: began.elapsed() });
    }
    next(supervisor).or_else(|| {
        if let Ok(pidfd) = &pidfd {
            front.pass_on(pidfd.as_fd(), pidfd.as_fd());
        }
        let (_, status) = waitpid(Some(program), WaitOptions::empty()).ok()??;
        Some(FrontMessage::Lost { status: status.as_raw(), took: began.elapsed() })
    })
}

fn next(supervisor: &OwnedFd) -> Option<FrontMessage> {
    let mut bytes = vec![0; 1 << 16];
    let (length, _) = recv(supervisor, &mut bytes[..], RecvFlags::empty()).ok()?;
    serde_json::from_slice(&bytes[..length]).ok()
}

impl FrontMessage {
    fn into_outcome(self) -> Result<ExecOutcome, Error> {
        match self {
            FrontMessage::Ended { status, counts, took, cpu, goes_on } => Ok(ExecOutcome {
                status: ExitStatus::from_raw(status),
                counts,
                took,
                cpu,
                goes_on,
                unable: None,
            }),
            FrontMessage::Lost { status, took } => {
                let (status, unable) = (ExitStatus::from_raw(status), Some(KILLED.to_owned()));
                Ok(ExecOutcome { status, took, cpu: cpu(), unable, ..ExecOutcome::default() })
            }
            FrontMessage::Silent { signal, took } => {
                let (status, unable) = (ExitStatus::from_raw(signal), Some(SILENT.to_owned()));
                Ok(ExecOutcome { status, took, cpu: cpu(), unable, ..ExecOutcome::default() })
            }
            FrontMessage::NotStarted { program, errno } => {
                Err(Error::Start { program, source: io::Error::from_raw_os_error(errno) })
            }
            FrontMessage::Failed(why) => Err(Error::Supervisor(why)),
            FrontMessage::Begun(_) | FrontMessage::Answered => {
                Err(Error::Supervisor("the supervisor said too much".to_owned()))
            }
        }
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::Start { program, source } => {
                let errno = source.raw_os_error().unwrap_or(libc::EIO);
                FrontMessage::NotStarted { program: program.clone(), errno }
            }
            Error::Notify(source) if source.raw_os_error() == Some(libc::EBUSY) => FrontMessage::Answered,
            other => FrontMessage::Failed(other.to_string()),
        }
    }

    fn tell(&self, front: &OwnedFd) {
        // If the front was killed, sending fails, and the message is not needed.
        let _ = send(front, &serde_json::to_vec(self).unwrap_or_default(), SendFlags::NOSIGNAL);
    }
}

/// Runs the supervisor's process: starts the program, answers its calls, reports to the front, and exits.
fn supervisor(
    path: &dyn Path,
    options: &Options,
    signals: &FrontSignals,
    command: Command,
    keeper: Command,
    front: &OwnedFd,
) -> ! {
    match supervised(path, options, signals, command, keeper, front) {
        Ok((supervisor, message)) => {
            message.tell(front);
            goes_on(&supervisor);
        }
        Err(error) => FrontMessage::of(&error).tell(front),
    }
    std::process::exit(0)
}

fn supervised(
    path: &dyn Path,
    options: &Options,
    signals: &FrontSignals,
    mut command: Command,
    keeper: Command,
    front: &OwnedFd,
) -> Result<(Arc<Supervisor>, FrontMessage), Error> {
    let before = cpu();
    let limit = raise_descriptors();
    let released = signals.released();
    let number = front.as_raw_fd();
    let as_before = move || {
        setrlimit(Resource::Nofile, limit)?;
        released()?;
        // SAFETY: the descriptor stays open until this process executes the program.
        tell_begun(unsafe { BorrowedFd::borrow_raw(number) });
        Ok(())
    };
    // SAFETY: the closure only makes system calls.
    unsafe { command.pre_exec(as_before) };
    let shared = Arc::new(SupervisorNotes::new().map_err(Error::refused("make shared memory"))?);
    let carrier = path.carrier(&shared, options)?;
    command.envs(path.environment());
    let supervise = |listener| {
        let supervisor = Supervisor::new(listener, carrier, shared, options.only.clone());
        let follows = supervisor.heirlooms().and_then(|heirlooms| follow(&keeper, heirlooms));
        follows.map_err(Error::refused("start the process that follows this one"))?;
        supervisor.start().map_err(Error::refused("start a thread"))?;
        Ok(supervisor)
    };
    let rules: Vec<SyscallRule> = path.rules().iter().copied().chain([rights::SEEN]).collect();
    let (child, supervisor) = begun(command, &rules, supervise)?;
    let began = Instant::now();
    let program = child.id() as i32;
    // This process leaves the session and the terminal in which the program stays.
    let _ = setsid();
    adopt();
    let status = reaped(program).map_err(Error::refused("wait for the program"))?;
    let (took, cpu) = (began.elapsed(), cpu().saturating_sub(before));
    let counts = supervisor.carrier.counts();
    let goes_on = !supervisor.listener.is_over();
    Ok((supervisor, FrontMessage::Ended { status, counts, took, cpu, goes_on }))
}

/// Sends [`FrontMessage::Begun`] from the program's process. It is called after a fork, so it allocates nothing.
fn tell_begun(front: BorrowedFd<'_>) {
    let mut bytes = [0; 32];
    let mut rest = &mut bytes[..];
    // SAFETY: the call returns a number.
    let pid = unsafe { libc::getpid() };
    if write!(rest, r#"{{"Begun":{pid}}}"#).is_ok() {
        let left = rest.len();
        let length = bytes.len() - left;
        // If the front was killed, sending fails, and the message is not needed.
        let _ = send(front, &bytes[..length], SendFlags::NOSIGNAL);
    }
}

/// Raises this process's soft limit of descriptors to the hard limit (RLIMIT_NOFILE), because each waiting call takes
/// some descriptors. Returns the old limit, which the caller restores for the program.
fn raise_descriptors() -> Rlimit {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    limit
}

/// Makes this process the parent of orphaned descendants. Yama's ptrace_scope then still lets this process inspect
/// them, because they stay its descendants. It can also wait for their end.
fn adopt() {
    // SAFETY: the arguments are numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Waits until the program ends, and reaps all processes that end before it.
fn reaped(program: i32) -> io::Result<i32> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == program => {
                return Ok(status.as_raw());
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Keeps this process running, and reaps background processes, until no process has the filter.
fn goes_on(supervisor: &Supervisor) {
    // Replaces standard input, output and error. Otherwise a shell that reads the program's output through a pipe would
    // wait for this process too.
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null)
            .and_then(|()| rustix::stdio::dup2_stdout(&null))
            .and_then(|()| rustix::stdio::dup2_stderr(&null));
    }
    while !supervisor.listener.is_over() {
        socket::wait([(supervisor.listener.as_fd(), PollFlags::empty())], Some(REAPS));
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
    }
}

/// Returns the processor time of this process and of the children that it has waited for (getrusage(2)).
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
