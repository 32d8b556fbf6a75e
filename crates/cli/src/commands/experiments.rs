//! `landspeed experiments`: lists the experiments that ship, or prints the file of one.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::run::{found, list_shipped};
use crate::groups::ListArgs;
use crate::output::out;

/// List the experiments that ship
#[derive(Debug, Args)]
#[command(after_help = "Example: sudo landspeed run cottrell/streams --short")]
pub(crate) struct ExperimentsArgs {
    #[command(flatten)]
    pub(crate) form: ListArgs,
    /// Print the file of this experiment
    #[arg(value_name = "NAME", conflicts_with_all = ["json", "csv"])]
    pub(crate) name: Option<String>,
}

pub(crate) fn run(args: &ExperimentsArgs) -> Result<ExitCode> {
    match &args.name {
        Some(name) => out(&found(name)?.1)?,
        None => list_shipped(&args.form)?,
    }
    Ok(ExitCode::SUCCESS)
}
