//! `landspeed-helpers spawn`, with which MPI applications start ranks.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, Error, Result, bail};
use clap::Args;
use landspeed_helpers::spawn;

#[derive(Debug, Args)]
pub(crate) struct SpawnArgs {
    /// Port of the servers
    #[arg(long, default_value_t = 17_000)]
    port: u16,
    /// Serve there, until the end
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// A host, and what to run there
    #[arg(required_unless_present = "listen", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn run(args: &SpawnArgs) -> Result<ExitCode> {
    let secret = super::secret("spawn")?;
    if let Some(at) = args.listen {
        spawn::serve(at, secret).map_err(Error::msg)?;
        return Ok(ExitCode::SUCCESS);
    }
    let [host, words @ ..] = args.words.as_slice() else { bail!("name a host and what to run there") };
    let host: IpAddr = host.parse().with_context(|| format!("{host} is no address"))?;
    let code = spawn::run(SocketAddr::new(host, args.port), secret, words);
    Ok(ExitCode::from(code.map_err(Error::msg)?))
}
