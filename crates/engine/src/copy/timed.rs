//! Timed commands: the duration of a command, and the processor time of commands that have ended.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use landspeed_record::units::CpuNanos;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::Error;

/// The unit in which the kernel counts the processor time of a process (USER_HZ), the same on every Linux.
pub const CPU_TICK: CpuNanos = CpuNanos(10_000_000);

/// The interval of checks whether a command has ended. It is the largest error of a measured duration.
const LOOK: Duration = Duration::from_millis(5);
/// The time for a command to end after SIGTERM.
const IN_ORDER: Duration = Duration::from_secs(5);
/// The largest number of bytes that are read of a command's output.
const MOST: u64 = 256 << 20;
/// The number of bytes that are read from the end of a command's standard error.
const LAST_WORDS: u64 = 4096;

/// A command that has ended.
#[derive(Debug)]
pub struct TimedCommand {
    pub took: Duration,
    pub status: ExitStatus,
    /// What the command printed on standard output.
    pub printed: Vec<u8>,
    /// The last line of the command's standard error.
    pub last_line: String,
}

impl TimedCommand {
    /// Returns the command if it succeeded.
    ///
    /// # Errors
    /// Returns an error with the command's last line unless its exit status is 0 or `also`.
    pub fn succeeded(self, also: Option<i32>) -> Result<TimedCommand, Error> {
        let code = self.status.code();
        match code == Some(0) || (also.is_some() && code == also) {
            true => Ok(self),
            false => Err(Error::Other(format!("{}: {}", self.status, self.last_line))),
        }
    }
}

/// Runs a command to its end. Ends a command that takes longer than `limit` or still runs when `stop` is set, together
/// with its process group if it leads one.
///
/// # Errors
/// Returns an error if the command cannot be started, or did not end by itself.
pub fn timed(command: &mut Command, limit: Duration, stop: &AtomicBool) -> Result<TimedCommand, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| Error::Other(format!("{program}: {error}"));
    let mut out = tempfile::tempfile().map_err(failed)?;
    let mut words = tempfile::tempfile().map_err(failed)?;
    command.stdout(out.try_clone().map_err(failed)?).stderr(words.try_clone().map_err(failed)?);
    let begun = Instant::now();
    let mut child = command.spawn().map_err(failed)?;
    let status = ended(&mut child, limit, stop).map_err(|why| Error::Other(format!("{program}: {why}")))?;
    let took = begun.elapsed();
    let mut printed = Vec::new();
    out.rewind().and_then(|()| out.take(MOST).read_to_end(&mut printed)).map_err(failed)?;
    let last_line = last_line(&mut words).map_err(failed)?;
    Ok(TimedCommand { took, status, printed, last_line })
}

fn ended(child: &mut Child, limit: Duration, stop: &AtomicBool) -> Result<ExitStatus, String> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        let is_stopped = stop.load(Ordering::Relaxed);
        if is_stopped || begun.elapsed() > limit {
            end(child);
            return Err(if is_stopped {
                "stopped".to_owned()
            } else {
                format!("takes longer than {limit:?}")
            });
        }
        sleep(LOOK);
    }
}

/// Ends a command by SIGTERM, and by SIGKILL after [`IN_ORDER`], together with its process group.
fn end(child: &mut Child) {
    let group = Pid::from_raw(child.id().cast_signed());
    let signal_group = |signal| group.map(|group| kill_process_group(group, signal));
    let _ = signal_group(Signal::TERM);
    let until = Instant::now() + IN_ORDER;
    while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
        sleep(LOOK);
    }
    let _ = signal_group(Signal::KILL);
    // The command may lead no process group.
    let _ = child.kill();
    let _ = child.wait();
}

fn last_line(words: &mut File) -> io::Result<String> {
    let length = words.seek(SeekFrom::End(0))?;
    words.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)))?;
    let mut last = Vec::new();
    words.read_to_end(&mut last)?;
    let last = String::from_utf8_lossy(&last);
    Ok(last.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned())
}

/// Returns the processor time of this process's children that have ended and were waited for, including their own
/// children.
///
/// # Errors
/// Returns an error if /proc cannot be read.
pub fn cpu_of_children() -> Result<CpuNanos, Error> {
    let failed = |why: String| Error::Other(format!("/proc/self/stat: {why}"));
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|error| failed(error.to_string()))?;
    let ticks = ticks_of_children(&stat).ok_or_else(|| failed("it has another form".to_owned()))?;
    Ok(CpuNanos(ticks * CPU_TICK.0))
}

/// Parses cutime and cstime from a line of proc_pid_stat(5), fields 16 and 17. Field 3 follows the name.
fn ticks_of_children(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(13).map(|field| field.parse::<u64>().ok());
    Some(fields.next()?? + fields.next()??)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn script(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0);
        command
    }

    #[test]
    fn a_command_has_its_output_and_its_last_line() {
        let run = |text: &str| timed(&mut script(text), Duration::from_secs(60), &NEVER).unwrap();
        let done = run("echo out; echo first >&2; echo last >&2; echo >&2; exit 6");
        assert_eq!((done.printed.as_slice(), done.last_line.as_str()), (&b"out\n"[..], "last"));
        assert_eq!(done.succeeded(None).unwrap_err().to_string(), "exit status: 6: last");
        assert!(run("exit 6").succeeded(Some(6)).is_ok() && run("exit 0").succeeded(Some(6)).is_ok());
        assert!(run("kill -9 $$").succeeded(None).is_err());
        let error = timed(&mut Command::new("/no/such/program"), Duration::from_secs(60), &NEVER);
        assert!(error.unwrap_err().to_string().starts_with("/no/such/program: No such file"));
    }

    #[test]
    fn a_command_that_takes_too_long_or_is_stopped_ends_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let text = format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let error = timed(&mut script(&text), Duration::from_secs(2), &NEVER).unwrap_err();
        assert!(error.to_string().contains("takes longer than 2s"), "{error}");
        let pid = std::fs::read_to_string(&file).unwrap();
        // A child that has ended may not have been waited for yet.
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let begun = Instant::now();
        while !(stat().is_empty() || stat().contains(") Z ")) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", stat());
            sleep(LOOK);
        }
        let error = timed(&mut script("sleep 1000"), Duration::from_secs(600), &AtomicBool::new(true));
        assert!(error.unwrap_err().to_string().contains("stopped"));
    }

    #[test]
    fn the_time_of_children_counts() {
        let before = cpu_of_children().unwrap();
        let busy = "n=0; while [ $n -lt 200000 ]; do n=$((n + 1)); done";
        assert!(Command::new("sh").args(["-c", busy]).status().unwrap().success());
        assert!(cpu_of_children().unwrap() > before);
        let line = format!("1 (a ) b) S 1 {}7 5 0", "0 ".repeat(11));
        assert_eq!(ticks_of_children(&line), Some(12));
        assert_eq!(ticks_of_children("1 (a) S 1"), None);
    }
}
