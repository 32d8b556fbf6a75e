//! `landspeed sockets`: the papers' benchmark of the sockets interface, as a program for applications.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueEnum};
use landspeed_record::units::{Nanos, parse_duration};
use landspeed_sockets::{BenchmarkOptions, ConnectionTask, Secret, TrafficKind, ask, serve};

use crate::output::out;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SocketsActionArg {
    /// A message there and back, one at a time
    Pingpong,
    /// Send as fast as it goes
    Send,
    /// Receive as fast as it goes
    Receive,
    /// Make one connection after the other
    Connect,
}

impl SocketsActionArg {
    fn does(self) -> TrafficKind {
        match self {
            SocketsActionArg::Pingpong => TrafficKind::Pingpong,
            SocketsActionArg::Send => TrafficKind::Send,
            SocketsActionArg::Receive => TrafficKind::Receive,
            SocketsActionArg::Connect => TrafficKind::Connect,
        }
    }
}

/// Serves and asks through the sockets interface, for applications
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct SocketsArgs {
    /// Serve at this address and port, until it is ended
    #[arg(long, value_name = "ADDR:PORT", exclusive = true)]
    pub(crate) listen: Option<SocketAddr>,
    /// Do this with every server
    #[arg(long = "do", value_enum, default_value = "pingpong")]
    pub(crate) does: SocketsActionArg,
    /// Addresses of the servers
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',', required_unless_present = "listen")]
    pub(crate) servers: Vec<IpAddr>,
    /// Leave out the first so many addresses
    #[arg(long, default_value_t = 0)]
    pub(crate) skip: usize,
    /// Port of the servers
    #[arg(long, default_value_t = 17_000)]
    pub(crate) port: u16,
    /// Bytes of a message, or of a call
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(crate) size: u32,
    /// Connections to each server
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) connections: u16,
    /// Call again and again until there is something, and do not sleep
    #[arg(long, value_parser = ["event", "polling"], default_value = "event")]
    pub(crate) waits: String,
    /// Pause behind each connection, with --do connect
    #[arg(long, default_value = "0s", value_parser = parse_duration)]
    pub(crate) gap: Nanos,
    /// How long
    #[arg(long, default_value = "1s", value_parser = parse_duration)]
    pub(crate) time: Nanos,
}

pub(crate) fn run(args: &SocketsArgs) -> Result<ExitCode> {
    let token =
        Secret::of(&std::env::var("LANDSPEED_TOKEN").unwrap_or_default()).map_err(|why| anyhow!(why))?;
    if let Some(at) = args.listen {
        serve(at, token).with_context(|| format!("cannot serve at {at}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let servers = args.servers.iter().skip(args.skip).map(|server| SocketAddr::new(*server, args.port));
    let options = BenchmarkOptions {
        servers: servers.collect(),
        task: ConnectionTask {
            kind: args.does.does(),
            size: args.size as usize,
            is_polling: args.waits == "polling",
        },
        connections: usize::from(args.connections),
        gap: args.gap.into(),
        time: args.time.into(),
    };
    let report = ask(&options, token).context("cannot ask the servers")?;
    out(&format!("{}\n", serde_json::to_string(&report)?))?;
    Ok(ExitCode::SUCCESS)
}
