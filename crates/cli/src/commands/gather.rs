//! `landspeed gather`, with which the application ganglia queries its daemons.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::output::out;

/// Asks Ganglia's daemons for their state, for applications
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct GatherArgs {
    /// Port of the daemons
    #[arg(long, default_value_t = 17_000)]
    pub(crate) port: u16,
    /// Ask all of them so often
    #[arg(long, default_value_t = 100)]
    pub(crate) rounds: u32,
    /// Leave out the first so many addresses
    #[arg(long, default_value_t = 0)]
    pub(crate) skip: usize,
    /// Their addresses
    #[arg(value_name = "ADDRESS", value_delimiter = ',', required = true)]
    pub(crate) nodes: Vec<IpAddr>,
}

pub(crate) fn run(args: &GatherArgs) -> Result<ExitCode> {
    let nodes: Vec<SocketAddr> =
        args.nodes.iter().skip(args.skip).map(|node| SocketAddr::new(*node, args.port)).collect();
    let gathered =
        landspeed_workload::app::gather::gather(&nodes, args.rounds).map_err(anyhow::Error::msg)?;
    out(&format!("{}\n", serde_json::to_string(&gathered)?))?;
    Ok(ExitCode::SUCCESS)
}
