//! `landspeed spawn`, with which MPI applications start ranks.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

/// Starts ranks of MPI on other hosts, for applications: `spawn --listen ADDR:PORT`, or `spawn HOST orted ...`
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct SpawnArgs {
    /// Port of the servers
    #[arg(long, default_value_t = 17_000)]
    pub(crate) port: u16,
    /// Serve there, until the end
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// A host, and what to run there
    #[arg(required_unless_present = "listen", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

pub(crate) fn run(args: &SpawnArgs) -> Result<ExitCode> {
    let token = std::env::var("LANDSPEED_TOKEN").unwrap_or_default();
    if let Some(at) = args.listen {
        landspeed_workload::app::spawn::serve(at, &token).map_err(anyhow::Error::msg)?;
        return Ok(ExitCode::SUCCESS);
    }
    let [host, words @ ..] = args.words.as_slice() else { bail!("name a host and what to run there") };
    let host: IpAddr = host.parse().with_context(|| format!("{host} is no address"))?;
    let code = landspeed_workload::app::spawn::run(SocketAddr::new(host, args.port), &token, words);
    Ok(ExitCode::from(code.map_err(anyhow::Error::msg)?))
}
