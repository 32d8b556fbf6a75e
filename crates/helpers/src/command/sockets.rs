//! `landspeed-helpers sockets`: the papers' benchmark of the sockets interface.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_helpers::sockets::{BenchmarkOptions, ConnectionTask, TrafficKind, ask, serve};
use landspeed_record::units::{Nanos, parse_duration};

#[derive(Debug, Args)]
pub(crate) struct SocketsArgs {
    /// Serve at this address and port, until it is ended
    #[arg(long, value_name = "ADDR:PORT", exclusive = true)]
    listen: Option<SocketAddr>,
    /// Do this with every server
    #[arg(long = "do", value_enum, default_value = "pingpong")]
    does: TrafficKind,
    /// Addresses of the servers
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',', required_unless_present = "listen")]
    servers: Vec<IpAddr>,
    /// Number of addresses to leave out at the beginning
    #[arg(long, default_value_t = 0)]
    skip: usize,
    /// Port of the servers
    #[arg(long, default_value_t = 17_000)]
    port: u16,
    /// Bytes of a message, or of a call
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    size: u32,
    /// Connections to each server
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    connections: u16,
    /// Call again and again until there is something, and do not sleep
    #[arg(long, value_parser = ["event", "polling"], default_value = "event")]
    waits: String,
    /// Pause behind each connection, with --do connect
    #[arg(long, default_value = "0s", value_parser = parse_duration)]
    gap: Nanos,
    /// Duration
    #[arg(long, default_value = "1s", value_parser = parse_duration)]
    time: Nanos,
}

pub(crate) fn run(args: &SocketsArgs) -> Result<ExitCode> {
    let token = super::secret("sockets")?;
    if let Some(at) = args.listen {
        serve(at, token).with_context(|| format!("cannot serve at {at}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let servers = args.servers.iter().skip(args.skip).map(|server| SocketAddr::new(*server, args.port));
    let options = BenchmarkOptions {
        servers: servers.collect(),
        task: ConnectionTask {
            kind: args.does,
            size: args.size as usize,
            is_polling: args.waits == "polling",
        },
        connections: usize::from(args.connections),
        gap: args.gap.into(),
        time: args.time.into(),
    };
    super::print(&ask(&options, token).context("cannot ask the servers")?)
}
