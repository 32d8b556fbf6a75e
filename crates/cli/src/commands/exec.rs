//! `landspeed exec`: a program over another path below its sockets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use landspeed_path::{Counts, Ended, Only, Options, Path, find};
use landspeed_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::args::ExecArgs;

/// What --json prints.
#[derive(Serialize, Deserialize)]
pub(crate) struct Told {
    path: String,
    #[serde(flatten)]
    counts: Counts,
    pub(crate) took_ns: Nanos,
    /// Processor time of the program and of what carried its connections.
    pub(crate) cpu_ns: Nanos,
}

impl Told {
    fn of(path: &dyn Path, ended: &Ended) -> Told {
        let (took_ns, cpu_ns) = (ended.took.into(), ended.cpu.into());
        Told { path: path.name().to_owned(), counts: ended.counts.clone(), took_ns, cpu_ns }
    }

    /// Why this was no run over the path; `None` where every connection was carried.
    pub(crate) fn why_not(&self) -> Option<String> {
        let carries = find(&self.path).is_some_and(|path| !path.rules().is_empty());
        let (all, left) = (self.counts.all(), self.counts.left.iter().next());
        match left {
            _ if !carries => None,
            Some((why, count)) => {
                Some(format!("{count} of {all} connections stayed on TCP: {}", why.words()))
            }
            None if all == 0 => Some("it made and accepted no connection over TCP".to_owned()),
            None => None,
        }
    }
}

pub(crate) fn run(args: &ExecArgs) -> Result<ExitCode> {
    let path = path(&args.path)?;
    let (program, rest) = args.program.split_first().context("clap asks for a program")?;
    let mut command = Command::new(program);
    command.args(rest);
    let mut keeper = Command::new("/proc/self/exe");
    keeper.arg("keep-path").arg(path.name());
    let options = Options { only: Only::new(args.only.clone()), bytes: args.bytes };
    let ended = landspeed_path::exec(path, &options, command, keeper)?;
    let told = Told::of(path, &ended);
    if args.json {
        eprintln!("{}", serde_json::to_string(&told)?);
    } else if !path.rules().is_empty() {
        lines(path, &ended.counts).iter().for_each(|line| eprintln!("landspeed: {line}"));
    }
    if args.require && ended.status.success() && told.why_not().is_some() {
        return Ok(ExitCode::FAILURE);
    }
    Ok(code(ended.status))
}

/// Answers for a program whose `exec` has gone.
pub(crate) fn keep(name: &str) -> Result<ExitCode> {
    let [listener, shared, pidfd] =
        [io::stdin().as_fd(), io::stdout().as_fd(), io::stderr().as_fd()].map(|fd| fd.try_clone_to_owned());
    let fds: [OwnedFd; 3] = [listener?, shared?, pidfd?];
    landspeed_path::keep(path(name)?, fds)?;
    Ok(ExitCode::SUCCESS)
}

fn path(name: &str) -> Result<&'static dyn Path> {
    find(name).context("clap takes the names of the table")
}

/// "local carried 12 of 14 connections", and why it did not carry the others.
fn lines(path: &dyn Path, counts: &Counts) -> Vec<String> {
    let all = counts.all();
    let connections = if all == 1 { "connection" } else { "connections" };
    let mut lines = vec![match all {
        0 => format!("{} saw no connection over TCP", path.name()),
        _ => format!("{} carried {} of {all} {connections}", path.name(), counts.carried),
    }];
    lines.extend(counts.bytes.map(|bytes| {
        format!("{} sent and {} received over it", Bytes(bytes.bytes_sent), Bytes(bytes.bytes_received))
    }));
    lines.extend(counts.no_bytes.as_ref().map(|why| format!("bytes were not counted: {why}")));
    lines.extend(counts.left.iter().map(|(why, count)| format!("{count} stayed on TCP: {}", why.words())));
    lines
}

/// The program's own exit status; that of a shell where a signal ended it.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
