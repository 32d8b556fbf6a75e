//! `landspeed exec`: runs a program over another path below its sockets.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use landspeed_path::{
    ConnectionCounts, ConnectionSelector, Error, ExecOutcome, MissingFeature, Options, PATHS, Path,
    PortOrNetwork, RdmaDevice, find,
};
use landspeed_record::units::{Bytes, Nanos, parse_duration};
use serde::{Deserialize, Serialize};

use crate::failure::not_started;
use crate::groups::choices;

/// The part of the help that explains how paths work.
const PATHS_HELP: &str = "\
The program itself is unchanged and does not notice the path. `local` carries
connections between two programs that both run over it, on one host, as the
same user:

  landspeed exec --path local -- redis-server --port 6400
  landspeed exec --path local -- redis-benchmark -p 6400

A connection that cannot be carried stays on TCP. At the end, landspeed says
how many were carried, and why others were not.";

/// How long a client waits at most until the other program has accepted, unless an option says otherwise.
pub(crate) const ACCEPT_PATIENCE: &str = "50ms";

/// Run a program over another path below its sockets
#[derive(Debug, Args)]
#[command(after_help = "Example: landspeed exec --path local -- redis-server", after_long_help = PATHS_HELP)]
pub(crate) struct ExecArgs {
    /// What carries the program's connections
    #[arg(long, value_name = "NAME", value_parser = paths())]
    pub(crate) path: String,
    /// Put only connections to this port, or with this network, on the path (may be repeated)
    ///
    /// A port (6379) is the one on which the server listens, whichever end the program is. A network (10.0.0.0/8,
    /// fd00::/8) or an address (10.0.0.1) is that of the peer. A connection needs to match only one of several. Other
    /// connections stay on TCP and are not counted, so that --require does not fail because of them. mptcp, smc and
    /// rsocket carry all connections.
    #[arg(long, value_name = "PORT|CIDR", value_parser = str::parse::<PortOrNetwork>)]
    pub(crate) only: Vec<PortOrNetwork>,
    /// Fail if a connection stayed on TCP, if a call failed that the path lacks, or if there was no connection
    #[arg(long)]
    pub(crate) require: bool,
    /// With the path local: wait at most this long until the other program has accepted
    ///
    /// After this time, the connection stays on TCP. Programs on a busy or slow host accept late, so a longer time lets
    /// the path carry more connections. But if the other program accepts none, each connection waits this long.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = ACCEPT_PATIENCE)]
    pub(crate) patience: Nanos,
    /// Count the bytes of carried connections too (root)
    ///
    /// A BPF program in the kernel counts them, because only the kernel sees a socket until it closes. It makes every
    /// call that sends or receives slightly slower.
    #[arg(long)]
    pub(crate) bytes: bool,
    /// Print the counts as JSON, on standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// Returns the parser of an option whose values are the names of paths.
pub(crate) fn paths() -> PossibleValuesParser {
    choices(PATHS.iter().map(|path| (path.name(), path.describe())))
}

/// The output of `landspeed exec --json`, printed on standard error.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct ExecReport {
    /// Name of the path.
    path: String,
    #[serde(flatten)]
    counts: ConnectionCounts,
    /// Time from the start of the program to its end.
    pub(crate) took_ns: Nanos,
    /// Processor time of the program and of the processes that carried its connections.
    pub(crate) cpu_ns: Nanos,
    /// True if processes of the program continue in the background.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    goes_on: bool,
    /// Why the program could not run over the path, or why its connections are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unable: Option<String>,
}

impl ExecReport {
    fn of(path: &dyn Path, ended: &ExecOutcome) -> ExecReport {
        let (took_ns, cpu_ns) = (ended.took.into(), ended.cpu.into());
        let (counts, goes_on, unable) = (ended.counts.clone(), ended.goes_on, ended.unable.clone());
        ExecReport { path: path.name().to_owned(), counts, took_ns, cpu_ns, goes_on, unable }
    }

    /// Returns why the program did not run over the path, or `None` if it did. For a path that carries no connections
    /// itself, returns `None`.
    pub(crate) fn why_not(&self) -> Option<String> {
        let carries = find(&self.path).is_some_and(|path| !path.rules().is_empty());
        let (all, left) = (self.counts.all(), self.counts.left.iter().next());
        let failed = self.counts.lacks.iter().find(|(what, _)| what.fails());
        match (failed, left) {
            _ if !carries => None,
            _ if self.unable.is_some() => self.unable.clone(),
            (Some((what, count)), _) => Some(did(*what, *count)),
            (None, Some((why, count))) => {
                Some(format!("{count} of {all} connections stayed on TCP: {}", why.words()))
            }
            (None, None) if all == 0 => Some("it made and accepted no connection over TCP".to_owned()),
            (None, None) => None,
        }
    }
}

pub(crate) fn run(args: &ExecArgs) -> Result<ExitCode> {
    let path = path(&args.path)?;
    let (program, rest) = args.program.split_first().context("clap asks for a program")?;
    let mut command = Command::new(program);
    command.args(rest);
    let options = Options {
        only: ConnectionSelector::new(args.only.clone()),
        bytes: args.bytes,
        require: args.require,
        patience: Some(args.patience.into()),
    };
    let ended = match landspeed_path::exec(path, &options, command, keeper(path)) {
        Ok(ended) => ended,
        Err(error) => return not_run(error),
    };
    let report = ExecReport::of(path, &ended);
    if args.json {
        tell(serde_json::to_string(&report)?);
    } else if !path.rules().is_empty() {
        lines(path, &ended).iter().for_each(|line| tell(format_args!("landspeed: {line}")));
    }
    if args.require && ended.status.success() && report.why_not().is_some() {
        return Ok(ExitCode::FAILURE);
    }
    Ok(code(ended.status))
}

/// Returns the command that starts the keeper, the process that continues a supervisor's work after the supervisor's
/// end.
fn keeper(path: &dyn Path) -> Command {
    let mut keeper = Command::new("/proc/self/exe");
    keeper.arg("keep-path").arg(path.name());
    keeper
}

/// Prints why the program did not start, and returns a shell's exit code.
fn not_run(error: Error) -> Result<ExitCode> {
    let Error::Start { source, .. } = &error else { return Err(error.into()) };
    Ok(not_started(source, &error.to_string()))
}

/// Prints a line on standard error. Ignores a failure, as after a terminal has closed: the exit code is the program's.
fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Runs the keeper of a program whose supervisor has exited.
pub(crate) fn keep(name: &str) -> Result<ExitCode> {
    // The keeper must outlive the session, its control group and the supervisor. A failure is ignored, because no one
    // would read a message.
    let _ = landspeed_kernel::daemon::daemonize("path");
    let [listener, shared, pidfd] =
        [io::stdin().as_fd(), io::stdout().as_fd(), io::stderr().as_fd()].map(|fd| fd.try_clone_to_owned());
    let fds: [OwnedFd; 3] = [listener?, shared?, pidfd?];
    let path = path(name)?;
    landspeed_path::keep(path, fds, keeper(path))?;
    Ok(ExitCode::SUCCESS)
}

fn path(name: &str) -> Result<&'static dyn Path> {
    find(name).context("clap takes the names of the table")
}

/// Returns the counts in words: "local carried 12 of 14 connections", and why the others were not carried.
fn lines(path: &dyn Path, ended: &ExecOutcome) -> Vec<String> {
    if let Some(why) = &ended.unable {
        return vec![why.clone()];
    }
    let counts = &ended.counts;
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
    lines.extend(counts.rdma.iter().map(sent_by));
    lines.extend(counts.lacks.iter().map(|(what, count)| did(*what, *count)));
    lines.extend(counts.left.iter().map(|(why, count)| format!("{count} stayed on TCP: {}", why.words())));
    lines.extend(ended.goes_on.then(|| {
        "it goes on in the background: connections there are carried, and not counted any more".to_owned()
    }));
    lines
}

/// Returns what the program did that the path lacks: "3 times it added an RDMA socket to an epoll set, ...".
fn did(what: MissingFeature, count: u64) -> String {
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    format!("{times} {}", what.words())
}

/// Formats what an RDMA device sent during the run: "rxe0 on eth0 (::ffff:10.0.0.1, RoCE v2) sent 1234 packets
/// meanwhile".
fn sent_by(port: &RdmaDevice) -> String {
    let sent = match port.packets_sent {
        Some(packets) => format!("sent {packets} packets meanwhile"),
        None => "does not count its packets".to_owned(),
    };
    let addresses = port.addresses.iter().map(|one| format!("{}, {}", one.gid, one.kind));
    let about: Vec<String> = addresses.chain(port.soft.then(|| "software".to_owned())).collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join("; ")) };
    format!("{} on {}{about} {sent}", port.device, port.interface)
}

/// Returns the program's own exit code, or a shell's code (128 + N) if signal N ended it.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use landspeed_path::RdmaAddress;

    use super::*;

    #[test]
    fn a_device_is_named_with_its_addresses_and_what_it_sent() {
        let address = RdmaAddress { gid: "::ffff:10.0.0.1".into(), kind: "RoCE v2".into() };
        let port = |soft, packets_sent| RdmaDevice {
            device: "rxe0".into(),
            interface: "eth0".into(),
            addresses: vec![address.clone()],
            soft,
            packets_sent,
        };
        let soft = "rxe0 on eth0 (::ffff:10.0.0.1, RoCE v2; software) sent 42 packets meanwhile";
        assert_eq!(sent_by(&port(true, Some(42))), soft);
        let silent = "rxe0 on eth0 (::ffff:10.0.0.1, RoCE v2) does not count its packets";
        assert_eq!(sent_by(&port(false, None)), silent);
        let bare = RdmaDevice { addresses: Vec::new(), ..port(false, Some(42)) };
        assert_eq!(sent_by(&bare), "rxe0 on eth0 sent 42 packets meanwhile");
    }

    #[test]
    fn a_call_that_failed_is_a_reason_and_a_fork_is_none() {
        let why_not = |what: MissingFeature, count: u64| {
            let lacks = [(what, count)].into();
            let counts = ConnectionCounts { carried: 1, lacks, ..ConnectionCounts::default() };
            let ended = ExecOutcome { counts, ..ExecOutcome::default() };
            ExecReport::of(path("rsocket").unwrap(), &ended).why_not()
        };
        let failed = why_not(MissingFeature::Epoll, 3).expect("a reason");
        assert!(failed.starts_with("3 times it added an RDMA socket to an epoll set"), "{failed}");
        assert_eq!(why_not(MissingFeature::Fork, 1), None);
    }
}
