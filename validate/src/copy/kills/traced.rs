//! A copy of whose processes strace(1) traces some: it counts their system calls, or stops one of them at one call.

use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{
    Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
};
use tempfile::NamedTempFile;

use super::gate::Gate;
use super::points::CopyProcess;
use super::struck::{ENDED, LONGEST};
use crate::copy::site::{Site, wait};

const COPY: &str = "landspeed copy --no-record --json --remote-path GATE LOGIN_OPTIONS FROM/ HOST:TO";
/// What strace prints of a process at its point: it was killed at the entry of the call, or is held at its exit.
const MARKS: [&str; 2] = ["killed by SIGKILL", "(DELAYED)"];
/// The time within which a process of a copy starts, and strace attaches to it.
const STARTED: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(2);

pub(super) struct TracedCopy {
    copy: Child,
    /// What the copy prints.
    output: NamedTempFile,
    /// In the order of [`CopyProcess::ALL`].
    handles: Vec<OwnedFd>,
    tracers: Vec<Tracer>,
}

impl TracedCopy {
    /// Starts a copy, and traces these processes, each with these options of strace, from before the target's agent
    /// begins.
    pub(super) fn begin(
        site: &Site,
        gate: &Gate,
        traces: &[(CopyProcess, Vec<String>)],
    ) -> Result<TracedCopy> {
        // An agent of a copy before would be taken for one of this copy.
        site.wait_for_agents(ENDED)?;
        gate.shut()?;
        let output = NamedTempFile::new()?;
        let mut command = site.command(&COPY.replace("GATE", &gate.program().display().to_string()));
        let printed = output.reopen()?;
        let copy = command.stdout(printed.try_clone()?).stderr(printed).spawn()?;
        let mut pids = [0; 3];
        for (pid, process) in pids.iter_mut().zip(CopyProcess::ALL) {
            let first = |word: &str| Ok(site.pids(0, word)?.first().map(|pid| pid.cast_signed()));
            let pid_of = || match process {
                CopyProcess::Controller => first("copy"),
                CopyProcess::Source => first("agent"),
                CopyProcess::Target => Ok(gate.waiting()),
            };
            *pid = soon(pid_of).with_context(|| format!("find the process {process:?}"))?;
        }
        let handles = pids.into_iter().map(handle).collect::<Result<Vec<OwnedFd>>>()?;
        let attach = |(process, options): &(CopyProcess, Vec<String>)| {
            Tracer::attach(pids[*process as usize], options)
                .with_context(|| format!("trace the process {process:?} by strace"))
        };
        let tracers = traces.iter().map(attach).collect::<Result<Vec<Tracer>>>()?;
        gate.open()?;
        Ok(TracedCopy { copy, output, handles, tracers })
    }

    /// Waits until the traced process is at its point. Returns false if the copy ends without.
    pub(super) fn reaches(&mut self) -> Result<bool> {
        let [tracer] = self.tracers.as_mut_slice() else { bail!("a point is of one process") };
        let end = Instant::now() + LONGEST;
        while !tracer.is_at_point()? {
            if self.copy.try_wait()?.is_some() {
                // What strace saw last may not be written yet.
                tracer.end()?;
                return tracer.is_at_point();
            }
            ensure!(Instant::now() < end, "a traced copy takes longer than {LONGEST:?}");
            thread::sleep(LOOK);
        }
        Ok(true)
    }

    /// Kills processes of the copy, which may be dead already. Then it ends the trace: strace lets a thread that it
    /// holds die only when it would have let it go on.
    pub(super) fn kill(&mut self, processes: &[CopyProcess]) {
        for process in processes {
            let _ = pidfd_send_signal(&self.handles[*process as usize], Signal::KILL);
        }
        for tracer in &mut self.tracers {
            let _ = tracer.strace.kill();
        }
    }

    /// Waits for the end of a copy that was interrupted, or that was over before.
    pub(super) fn end(&mut self) -> Result<ExitStatus> {
        let ended = wait(&mut self.copy, ENDED)?;
        self.tracers.iter_mut().try_for_each(Tracer::end)?;
        Ok(ended)
    }

    /// Waits for the end of a copy, and returns what strace has printed of each traced process.
    pub(super) fn traces(mut self) -> Result<Vec<String>> {
        let ended = wait(&mut self.copy, LONGEST)?;
        self.ensure_succeeded(ended)?;
        self.tracers.iter_mut().try_for_each(Tracer::end)?;
        let printed = |tracer: &Tracer| fs::read_to_string(tracer.output.path());
        self.tracers.iter().map(|tracer| printed(tracer).context("read what strace prints")).collect()
    }

    /// Returns an error with what the copy has printed if it has failed.
    pub(super) fn ensure_succeeded(&self, ended: ExitStatus) -> Result<()> {
        if ended.success() {
            return Ok(());
        }
        let printed = fs::read(self.output.path()).context("read what a copy prints")?;
        bail!("a traced copy: {ended}: {}", String::from_utf8_lossy(&printed).trim())
    }
}

/// A strace(1) of one process, with all its threads.
struct Tracer {
    strace: Child,
    output: NamedTempFile,
    /// The end of what was read of the output.
    tail: Vec<u8>,
}

impl Tracer {
    fn attach(pid: i32, options: &[String]) -> Result<Tracer> {
        let output = NamedTempFile::new()?;
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-s", "0", "-e", "signal=SIGKILL", "-o"]).arg(output.path());
        strace.args(options).args(["-p", &pid.to_string()]);
        end_with_this_thread(&mut strace);
        let strace = strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut tracer = Tracer { strace, output, tail: Vec::new() };
        let id = tracer.strace.id();
        let is_over = || fs::metadata(format!("/proc/{id}/exe")).is_err();
        let attached = soon(|| Ok((is_over() || is_traced(pid, id)).then_some(())));
        attached.context("strace does not attach: look at kernel.yama.ptrace_scope")?;
        // It has ended already where the process was killed at once at its point.
        ensure!(
            tracer.strace.try_wait()?.is_none() || tracer.is_at_point()?,
            "strace may not attach: look at kernel.yama.ptrace_scope"
        );
        Ok(tracer)
    }

    /// Reads what strace has printed since the last look. Returns true if the process is at its point.
    fn is_at_point(&mut self) -> Result<bool> {
        self.output.read_to_end(&mut self.tail)?;
        let has = |mark: &str| self.tail.windows(mark.len()).any(|part| part == mark.as_bytes());
        let is_at_point = MARKS.into_iter().any(has);
        // A mark that is printed in part is found by the next look.
        let read = self.tail.len().saturating_sub(64);
        self.tail.drain(..read);
        Ok(is_at_point)
    }

    /// Waits until all that it traces has ended.
    fn end(&mut self) -> Result<()> {
        wait(&mut self.strace, ENDED)?;
        Ok(())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// Lets a command end with the thread that starts it, also if this process is killed: strace would hold a thread at its
/// point for minutes. What it traces then goes on.
fn end_with_this_thread(command: &mut Command) {
    let ask = || set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from);
    // SAFETY: the hook makes a single system call.
    unsafe { command.pre_exec(ask) };
}

/// Returns a handle of a process, by which no later one with the same number is killed.
fn handle(pid: i32) -> Result<OwnedFd> {
    let pid = Pid::from_raw(pid).context("no process has this number")?;
    pidfd_open(pid, PidfdFlags::empty()).context("a process of a copy has ended at once")
}

/// Returns true if all threads of a process are traced by this process.
fn is_traced(pid: i32, tracer: u32) -> bool {
    let traced = format!("TracerPid:\t{tracer}\n");
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let statuses: Vec<_> = threads.map(|thread| fs::read_to_string(thread.path().join("status"))).collect();
    let is_traced =
        |status: &std::io::Result<String>| status.as_ref().is_ok_and(|text| text.contains(&traced));
    !statuses.is_empty() && statuses.iter().all(is_traced)
}

/// Returns what `look` finds, as soon as it finds something.
fn soon<T>(look: impl Fn() -> Result<Option<T>>) -> Result<T> {
    let end = Instant::now() + STARTED;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        ensure!(Instant::now() < end, "nothing in {STARTED:?}");
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::site::shell;

    #[test]
    fn strace_ends_with_the_thread_that_started_it() {
        let traces = shell("strace -o /dev/null true 2> /dev/null").is_ok();
        if !traces || !rustix::process::geteuid().is_root() {
            return eprintln!("SKIP: strace may trace no process here");
        }
        let mut traced = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = traced.id().cast_signed();
        let tracer = thread::spawn(move || Tracer::attach(pid, &[])).join().unwrap();
        let program = tracer.as_ref().map(|tracer| format!("/proc/{}/exe", tracer.strace.id()));
        let is_over = program.map(|program| soon(|| Ok(fs::metadata(&program).is_err().then_some(()))));
        traced.kill().unwrap();
        traced.wait().unwrap();
        assert!(is_over.expect("it attaches").is_ok());
    }
}
