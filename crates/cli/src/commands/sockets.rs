//! `landspeed sockets`: the papers' benchmark of the sockets interface, as a program for applications.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use landspeed_sockets::{BenchmarkOptions, ConnectionTask, Secret, ask, serve};

use crate::args::SocketsArgs;
use crate::output::out;

pub(crate) fn run(args: &SocketsArgs) -> Result<ExitCode> {
    let token = Secret::from_env("sockets").map_err(|why| anyhow!(why))?;
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
