//! `landspeed-helpers gather`, with which the application ganglia queries its daemons.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::Args;
use landspeed_helpers::gather::gather;

#[derive(Debug, Args)]
pub(crate) struct GatherArgs {
    /// Port of the daemons
    #[arg(long, default_value_t = 17_000)]
    port: u16,
    /// Number of times to ask all of them
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Number of addresses to leave out at the beginning
    #[arg(long, default_value_t = 0)]
    skip: usize,
    /// Their addresses
    #[arg(value_name = "ADDRESS", value_delimiter = ',', required = true)]
    nodes: Vec<IpAddr>,
}

pub(crate) fn run(args: &GatherArgs) -> Result<ExitCode> {
    let nodes = args.nodes.iter().skip(args.skip).map(|node| SocketAddr::new(*node, args.port));
    super::print(&gather(&nodes.collect::<Vec<_>>(), args.rounds).map_err(Error::msg)?)
}
