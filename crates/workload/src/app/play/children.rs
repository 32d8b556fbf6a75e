//! Starts the programs of an init, and reaps them and the processes that they leave behind.

use std::io::Error;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::app::RoleOrder;
use crate::app::fill::DIR;
use crate::app::play::capture::OutputCapture;
use crate::app::play::user::RoleUser;

/// The PATH of programs.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A running program.
pub(super) struct ChildProgram {
    pub(super) pid: i32,
    pub(super) began: Instant,
    /// A pidfd, readable once the program has ended.
    pub(super) ended: OwnedFd,
    pub(super) output: OutputCapture<ChildStdout>,
    pub(super) errors: OutputCapture<ChildStderr>,
}

/// Starts a program as the role's user, in the role's directory. If `whole` is true, its complete output is kept,
/// otherwise only the end.
pub(super) fn start(
    words: &[String],
    order: &RoleOrder,
    user: &RoleUser,
    whole: bool,
) -> Result<ChildProgram, String> {
    let mut command = prepared(words, order, user);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot run {}: {error}", words[0]))?;
    let began = Instant::now();
    let (output, errors) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let unblocked = unblock(&output).and_then(|()| unblock(&errors));
    let pid = child.id().cast_signed();
    let known = Pid::from_raw(pid).ok_or_else(|| "a process without an id".to_owned())?;
    let ended = unblocked.and_then(|()| pidfd_open(known, PidfdFlags::empty()));
    let ended = ended.map_err(|error| format!("cannot watch {}: {error}", words[0]))?;
    let output = if whole { OutputCapture::whole(output) } else { OutputCapture::end(output) };
    Ok(ChildProgram { pid, began, ended, output, errors: OutputCapture::end(errors) })
}

/// Starts the command of a readiness probe, whose output is discarded, and returns its process ID. The caller must reap
/// the process.
pub(super) fn probe(words: &[String], order: &RoleOrder, user: &RoleUser) -> Result<i32, String> {
    let mut command = prepared(words, order, user);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Ok(child.map_err(|error| format!("cannot run {}: {error}", words[0]))?.id().cast_signed())
}

fn prepared(words: &[String], order: &RoleOrder, user: &RoleUser) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(DIR).stdin(Stdio::null()).env_clear();
    command
        .envs([("PATH", PATH), ("HOME", DIR), ("TMPDIR", DIR), ("LANG", "C.UTF-8")])
        .env("USER", &user.name);
    command.envs(order.env.iter().map(|(name, value)| (name, value)));
    let (user, cores) = (user.clone(), order.cores.clone());
    // SAFETY: between fork and exec only system calls are made; their memory was allocated before.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            pin(&cores)?;
            limit(&user);
            user.become_it()
        });
    }
    command
}

fn pin(cores: &[u32]) -> Result<(), Error> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = rustix::thread::CpuSet::new();
    cores
        .iter()
        .filter(|core| (**core as usize) < rustix::thread::CpuSet::MAX_CPU)
        .for_each(|core| set.set(*core as usize));
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Disables core files. Also limits the number of processes, unless the role runs as the agent's own user.
fn limit(user: &RoleUser) {
    const PROCESSES: u64 = 4096;
    let set = |what, most: u64| {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: `limit` is a valid rlimit. A call that fails leaves the limit as it is.
        unsafe { libc::setrlimit(what, &raw const limit) };
    };
    set(libc::RLIMIT_CORE, 0);
    if user.other.is_some() {
        set(libc::RLIMIT_NPROC, PROCESSES);
    }
}

fn unblock(pipe: &impl AsFd) -> rustix::io::Result<()> {
    fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)
}

/// Reaps every child that has ended, and returns (process ID, wait status). Orphans of the namespace are children of
/// its init.
pub(super) fn reap() -> Vec<(i32, i32)> {
    let mut reaped = Vec::new();
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for the kernel to write.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if pid <= 0 {
            return reaped;
        }
        reaped.push((pid, status));
    }
}

/// Returns a description of a program's failure from its wait status; empty if the program exited with 0.
pub(super) fn wrong(status: i32) -> String {
    if libc::WIFSIGNALED(status) {
        return format!("it was killed by signal {}", libc::WTERMSIG(status));
    }
    match libc::WEXITSTATUS(status) {
        0 => String::new(),
        code => format!("it ended with exit status {code}"),
    }
}
