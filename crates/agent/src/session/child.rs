//! The child process that carries a session: the agent itself, or ssh.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::session::frame::FrameError;
use crate::session::{Error, LineSink, one_line};

/// Number of lines of stderr that are kept to explain an early end.
const KEPT: usize = 8;
/// How long to wait for a child that was killed.
const KILLED: Duration = Duration::from_secs(2);
/// The largest number of bytes of stderr that are read as one line.
const LONGEST_LINE: u64 = 4096;

/// Known reasons why the child ends before the session begins. Each has a part of the line that the child prints, and
/// the remedy.
const KNOWN: &[(&str, &str)] = &[
    (
        "password is required",
        "; run landspeed at a terminal, which asks for it, let this user use sudo without a password there \
         (sudoers: NAME ALL=(root) NOPASSWD: ALL), or log in as root",
    ),
    ("incorrect password attempt", "; nothing was changed there"),
    ("not in the sudoers", "; let this user use sudo there, or log in as root"),
    ("not allowed to execute", "; let this user use sudo for any command there, or log in as root"),
    (
        "must have a tty",
        "; let this user use sudo without one (sudoers: Defaults:NAME !requiretty), or log in as root",
    ),
    ("Connection timed out", "; if it is only slow, --patience waits longer"),
    ("Could not resolve hostname", "; check its name, or give an address or an alias of ~/.ssh/config"),
    (
        "Host key verification failed",
        "; run ssh to it once by hand: that shows its key and asks, or says what has changed",
    ),
    (
        "Permission denied (",
        "; name another user, or let ssh log in without a password: ssh -v says what it tried",
    ),
    ("Connection refused", "; does sshd run there, on the port that ssh uses?"),
];

/// The last lines that a child printed.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputTail(Arc<Mutex<VecDeque<String>>>);

impl OutputTail {
    pub(crate) fn push(&self, line: String) {
        let mut lines = self.0.lock();
        lines.push_back(line);
        if lines.len() > KEPT {
            lines.pop_front();
        }
    }

    /// Returns the last printed line that contains one of the reasons of [`KNOWN`] for the child's early end, and that
    /// reason's remedy. Without such a line, returns the last line and an empty remedy. Returns `None` if the child
    /// printed nothing.
    fn verdict(&self) -> Option<(String, &'static str)> {
        let lines = self.0.lock();
        let known = |line: &String| {
            let (_, remedy) = KNOWN.iter().find(|(part, _)| line.contains(part))?;
            Some((line.clone(), *remedy))
        };
        lines.iter().rev().find_map(known).or_else(|| Some((lines.back()?.clone(), "")))
    }
}

pub(crate) struct Child {
    process: std::process::Child,
    tail: OutputTail,
    /// A channel that disconnects once stderr has ended.
    silent: Receiver<()>,
}

impl Child {
    /// Starts `command` with pipes as its stdio. Lines of its stderr go to `lines`, preceded by `name`.
    pub(crate) fn spawn(
        name: &str,
        mut command: Command,
        lines: &LineSink,
    ) -> Result<(Child, ChildStdin, ChildStdout), Error> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(|source| Error::Spawn {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
        })?;
        let stdin = process.stdin.take().expect("stdin was asked for");
        let stdout = process.stdout.take().expect("stdout was asked for");
        let stderr = process.stderr.take().expect("stderr was asked for");
        let tail = OutputTail::default();
        let silent = pass_on(name, stderr, &tail, lines)?;
        Ok((Child { process, tail, silent }, stdin, stdout))
    }

    /// Waits until the child ends, kills it if it still runs at `deadline`, and reaps it. Returns its exit status, or
    /// `None` if the kernel does not report one, for example because the child waits for a disk. Such a child is left
    /// behind and ends when the disk answers.
    pub(crate) fn reap(&mut self, deadline: Instant) -> Option<ExitStatus> {
        if let ended @ Some(_) = self.ended(deadline) {
            return ended;
        }
        // If the child has just ended, there is nothing to kill, and waiting reaps it.
        let _ = self.process.kill();
        self.ended(Instant::now() + KILLED)
    }

    /// Waits until the child ends, at most until `deadline`.
    fn ended(&mut self, deadline: Instant) -> Option<ExitStatus> {
        let mut pause = Duration::from_millis(2);
        loop {
            match self.process.try_wait() {
                Ok(None) if Instant::now() < deadline => std::thread::sleep(pause),
                ended => return ended.ok().flatten(),
            }
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Returns a handle to the child's last lines, so that lines of its stdout can be added to them.
    pub(crate) fn tail(&self) -> OutputTail {
        self.tail.clone()
    }

    /// Ends a child whose session could not be opened. Returns `error`; if the connection was lost, returns the child's
    /// own explanation and exit status in its place.
    pub(crate) fn explain(mut self, name: &str, error: Error) -> Error {
        let Error::Handshake { source: FrameError::Closed | FrameError::Cut | FrameError::Io(_), .. } = error
        else {
            self.reap(Instant::now() + Duration::from_millis(200));
            return error;
        };
        let status = self.reap(Instant::now() + Duration::from_secs(2));
        // The time limit is short, because a control master that ssh left behind keeps stderr open.
        let _ = self.silent.recv_timeout(Duration::from_millis(500));
        let silent = || ("it ended before the session began".to_owned(), "");
        let (said, remedy) = self.tail.verdict().unwrap_or_else(silent);
        Error::Child {
            name: name.to_owned(),
            remedy: if remedy.is_empty() { remedy_of(status) } else { remedy },
            said,
            status: status.map_or_else(|| "no exit status".to_owned(), |status| status.to_string()),
        }
    }
}

fn remedy_of(status: Option<ExitStatus>) -> &'static str {
    match status.and_then(|status| status.code()) {
        // POSIX sh, "Exit Status for Commands": not found, and found but not executable.
        Some(127 | 126) => "; install landspeed there, or leave --remote-path out, which sends it",
        _ => "",
    }
}

/// Starts a thread that passes each line of the child's stderr to `tail` and `lines`. Returns a channel that
/// disconnects once stderr has ended.
fn pass_on(
    name: &str,
    stderr: ChildStderr,
    tail: &OutputTail,
    lines: &LineSink,
) -> Result<Receiver<()>, Error> {
    let (name, tail, lines) = (name.to_owned(), tail.clone(), lines.clone());
    let (alive, silent) = sync_channel::<()>(0);
    let listen = move || {
        let _alive = alive;
        let mut stderr = BufReader::new(stderr);
        while let Some(line) = next_line(&mut stderr) {
            lines.say(&format!("{name}: {line}"));
            tail.push(line);
        }
    };
    std::thread::Builder::new()
        .name("landspeed-stderr".to_owned())
        .spawn(listen)
        .map_err(Error::system("start a thread"))?;
    Ok(silent)
}

/// Returns the next non-empty line, escaped for a terminal; `None` at the end of `from`.
fn next_line(from: &mut impl BufRead) -> Option<String> {
    loop {
        let mut line = Vec::new();
        let read = from.take(LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
        if read == 0 {
            return None;
        }
        let line = one_line(&String::from_utf8_lossy(&line));
        if !line.is_empty() {
            return Some(line);
        }
    }
}
