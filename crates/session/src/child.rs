//! The child process that carries a session: the agent itself, or ssh.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::frame::FrameError;
use crate::{Error, LineSink, one_line};

/// Lines of stderr that are kept to explain an early end.
const KEPT: usize = 8;
/// Longest line of stderr that is read as one.
const LONGEST_LINE: u64 = 4096;

type Tail = Arc<Mutex<VecDeque<String>>>;

pub(crate) struct Child {
    process: std::process::Child,
    tail: Tail,
    /// Disconnected once stderr has ended.
    silent: Receiver<()>,
}

impl Child {
    /// Starts `command` with its stdio on pipes.
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
        let tail = Tail::default();
        let silent = pass_on(name, stderr, &tail, lines)?;
        Ok((Child { process, tail, silent }, stdin, stdout))
    }

    /// Waits for the child to end by itself, kills it when `deadline` passes, and reaps it.
    pub(crate) fn reap(&mut self, deadline: Instant) -> Option<ExitStatus> {
        let mut pause = Duration::from_millis(2);
        while Instant::now() < deadline {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => std::thread::sleep(pause),
                Err(_) => return None,
            }
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        // It may have ended just now: then there is nothing to kill, and waiting reaps it.
        let _ = self.process.kill();
        self.process.wait().ok()
    }

    pub(crate) fn last_words(&self) -> Option<String> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).back().cloned()
    }

    /// Ends a child with which no session could be had, and says why in its own words where it has any.
    pub(crate) fn explain(mut self, name: &str, error: Error) -> Error {
        let Error::Handshake { source: FrameError::Closed | FrameError::Cut | FrameError::Io(_), .. } = error
        else {
            self.reap(Instant::now() + Duration::from_millis(200));
            return error;
        };
        let status = self.reap(Instant::now() + Duration::from_secs(2));
        // A control master that ssh left behind holds stderr open for longer than we wait.
        let _ = self.silent.recv_timeout(Duration::from_millis(500));
        let said = self.last_words().unwrap_or_else(|| "it ended before the session began".to_owned());
        Error::Child {
            name: name.to_owned(),
            remedy: remedy(status, &said),
            said,
            status: status.map_or_else(|| "no exit status".to_owned(), |status| status.to_string()),
        }
    }
}

/// What to do about the ends that are met most.
fn remedy(status: Option<ExitStatus>, said: &str) -> &'static str {
    if said.contains("password is required") {
        return "; let this user run landspeed with sudo without a password there, or log in as root";
    }
    match status.and_then(|status| status.code()) {
        // POSIX sh, "Exit Status for Commands": not found, and found but not executable.
        Some(127 | 126) => "; install landspeed there, or give its path with --remote-path",
        _ => "",
    }
}

/// Passes the child's stderr on, line by line, in a thread that ends with it.
fn pass_on(name: &str, stderr: ChildStderr, tail: &Tail, lines: &LineSink) -> Result<Receiver<()>, Error> {
    let (name, tail, lines) = (name.to_owned(), Arc::clone(tail), lines.clone());
    let (alive, silent) = sync_channel::<()>(0);
    let listen = move || {
        let _alive = alive;
        let mut stderr = BufReader::new(stderr);
        while let Some(line) = next_line(&mut stderr) {
            lines.say(&format!("{name}: {line}"));
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.push_back(line);
            if tail.len() > KEPT {
                tail.pop_front();
            }
        }
    };
    std::thread::Builder::new()
        .name("landspeed-stderr".to_owned())
        .spawn(listen)
        .map_err(Error::system("start a thread"))?;
    Ok(silent)
}

/// The next line that is not empty, escaped; `None` at the end.
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
