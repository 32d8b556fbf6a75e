//! The simulator held against the kernel, and the kernel against what is published.
//!
//! `agree` runs the study in both; `agree drops` gives both the same list of losses and compares windows round trip by
//! round trip; `agree responses` holds windows at given loss rates against the published functions; `agree beside` asks
//! what HSTCP-LP leaves to Reno. The last three use real sockets over `lab:wan`, and the congestion controls of this build.

mod beside;
mod columns;
mod drops;
mod path;
mod regions;
mod responses;
mod rounds;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};

/// What is compared: the study, where nothing else is named.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    regions: regions::Options,
}

#[derive(Debug, Subcommand)]
enum Other {
    /// The same list of losses in the kernel and in the simulator, window by window.
    Drops(drops::Options),
    /// Windows at given loss rates against the published functions.
    Responses(responses::Options),
    /// What HSTCP-LP leaves to Reno.
    Beside,
}

/// Compares.
pub(crate) fn run(options: &Options) -> Result<()> {
    match &options.other {
        None => regions::run(&options.regions),
        Some(Other::Drops(options)) => drops::run(options),
        Some(Other::Responses(options)) => responses::run(options),
        Some(Other::Beside) => beside::run(),
    }
}

/// Says which rows of a table are not as they should be.
fn verdict(apart: &[String]) -> Result<()> {
    match apart {
        [] => Ok(()),
        _ => bail!("not as they should be: {}", apart.join(", ")),
    }
}
