//! `landspeed run FILE`: measures an experiment of a file, or one that ships.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_engine::{Experiment, read_experiment};

use super::experiments::found;
use crate::commands::measure::grid::{GridJob, GridOptions};
use crate::groups::{HostArgs, OutputArgs};
use crate::output::{out, usage};
use crate::stop::StopRequest;

/// Measure an experiment that a file describes, and set it beside what was published
#[derive(Debug, Args)]
#[command(
    after_help = "A file is strict TOML: what is sent, over what, what is varied, when it ends, and what is expected. \
             docs/reference/experiments.md describes it.\n\n\
             Examples:\n  \
             landspeed experiments                       list the experiments that ship\n  \
             sudo landspeed run cottrell/streams --short measure one of them in a few minutes\n  \
             landspeed run --check mine.toml             look for mistakes, measure nothing"
)]
pub(crate) struct RunArgs {
    /// A file, or the name of an experiment that ships, such as cottrell/streams
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Measure the version of a few minutes
    #[arg(long)]
    pub(crate) short: bool,
    /// Look for mistakes in the file and measure nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Change settings of real hosts without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print everything that the page says
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let (path, text) = found(&args.file)?;
    let experiment = read_experiment(&path, &text, args.short).map_err(usage)?;
    if args.check {
        out(&format!("{}: no mistakes; {}", path.display(), told(&experiment)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    let Experiment { words, grid, .. } = experiment;
    let words = if args.hosts.hosts.is_empty() { words } else { args.hosts.hosts.clone() };
    let options = GridOptions {
        yes: args.yes,
        report_missing: true,
        full: args.full,
        ..GridOptions::of(&args.hosts, &args.output)
    };
    GridJob::of(grid, words, &options)?.finish(&options, &stop)
}

/// Returns the size of an experiment: "24 cells, 3 expectations".
fn told(experiment: &Experiment) -> String {
    let expectations = experiment.grid.expectations.len();
    format!("{} cells, {expectations} expectations", experiment.grid.cells())
}
