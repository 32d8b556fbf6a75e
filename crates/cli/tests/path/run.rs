//! Runs programs, alone or over a path, and reads the path's counts.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::ours::{signal, state, within};
use crate::support::{self, LANDSPEED, text};
use crate::{LIMIT, PROGRAM};

/// The path `local` for a client that waits long for its server. Without the option it goes on over TCP after 50 ms
/// (docs/reference/paths.md), and a busy machine may keep a server from accepting for as long. Tests that count what is carried
/// take it.
pub(crate) const PATIENT: &str = "local --patience 20s";

/// Returns a command that runs one of the programs, alone or over the path `over`, whose name may be followed by
/// options.
pub(crate) fn command(over: Option<&str>, does: &str) -> Command {
    command_after(over, &[], does)
}

/// Returns the command like [`command`], whose program is run by the words `before`, such as those of env(1): over a
/// path, landspeed runs these words.
pub(crate) fn command_after(over: Option<&str>, before: &[&str], does: &str) -> Command {
    let own = std::env::current_exe().expect("this program").into_os_string();
    let mut words = before.iter().map(OsString::from).chain([own]);
    let mut command = match over {
        Some(path) => {
            let mut command = Command::new(LANDSPEED);
            command.args(["exec", "--json", "--path"]).args(path.split(' ')).arg("--");
            command
        }
        None => Command::new(words.next().expect("at least a program")),
    };
    command.args(words).args(["--exact", "program", "--nocapture", "--quiet"]).env(PROGRAM, does);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns a command that runs the words `before`, such as those of prlimit(1), and then `ours` and its words.
pub(crate) fn behind(before: &[&str], ours: &Command) -> Command {
    let mut words = before.iter().map(OsStr::new).chain([ours.get_program()]).chain(ours.get_args());
    let mut command = Command::new(words.next().expect("at least a program"));
    command.args(words).envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A running server, which is ended on drop.
pub(crate) struct TestServer {
    pub(crate) child: Child,
    pub(crate) port: u16,
    pub(crate) out: BufReader<ChildStdout>,
}

impl TestServer {
    pub(crate) fn start(over: Option<&str>, connections: usize) -> Self {
        TestServer::of(command(over, &format!("serve {connections} 0")))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().expect("it runs");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let port = said(&mut out, "port ").parse().expect("a port");
        TestServer { child, port, out }
    }

    /// Returns the counts of the server's path after the server has exited.
    pub(crate) fn counts(mut self) -> Value {
        assert!(within_mut(|| self.child.try_wait().expect("a child").is_some()), "the server goes on");
        let mut err = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
        counts(&err)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // Landspeed forwards the signal to its program.
        if matches!(self.child.try_wait(), Ok(None)) {
            signal(self.child.id() as i32, Signal::TERM);
        }
        if !within_mut(|| !matches!(self.child.try_wait(), Ok(None))) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// A process that is stopped until this is dropped, also if the test fails meanwhile. A stopped process ends by no signal
/// but SIGKILL.
#[must_use]
pub(crate) struct StoppedProcess(i32);

impl StoppedProcess {
    pub(crate) fn of(pid: i32) -> Self {
        signal(pid, Signal::STOP);
        let stopped = StoppedProcess(pid);
        // Until then, the process goes on with a call that it was in: it may still reap a child.
        assert!(within(LIMIT, || state(pid) == Some('T')), "{pid} does not stop: {:?}", state(pid));
        stopped
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        signal(self.0, Signal::CONT);
    }
}

pub(crate) fn within_mut(mut holds: impl FnMut() -> bool) -> bool {
    let until = std::time::Instant::now() + LIMIT;
    while std::time::Instant::now() < until {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Returns the rest of the first line that begins with `begin`.
pub(crate) fn said(out: &mut impl BufRead, begin: &str) -> String {
    let mut lines = out.lines().map(|line| line.expect("a line"));
    lines.find_map(|line| line.strip_prefix(begin).map(str::to_owned)).expect("it is said")
}

pub(crate) fn counts(err: &str) -> Value {
    let line = err.lines().find(|line| line.starts_with("{\"path\"")).unwrap_or_else(|| panic!("{err}"));
    serde_json::from_str(line).expect("JSON")
}

/// Runs a client, which must succeed, and returns the counts of its path.
pub(crate) fn client(over: Option<&str>, does: &str) -> Value {
    let out = run(over, does);
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    over.map(|_| counts(&err)).unwrap_or_default()
}

pub(crate) fn run(over: Option<&str>, does: &str) -> Output {
    command(over, does).output().expect("it runs")
}

/// Returns true if the path `local` works on this host.
pub(crate) fn carries() -> bool {
    can("local")
}

/// Returns true if a path works on this host; otherwise reports a skipped test.
pub(crate) fn can(path: &str) -> bool {
    let out = run(Some(path), "ask 1 0 0");
    if !out.status.success() {
        support::skip(&text(&out).1);
    }
    out.status.success()
}
