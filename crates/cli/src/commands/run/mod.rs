//! `landspeed run FILE`: measures an experiment of a file, or one that ships.

mod hosts;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_engine::{Experiment, read_experiment};

use landspeed_record::units::{Nanos, parse_duration};

use super::experiments::found;
use crate::commands::measure::grid::{GridJob, GridOptions};
use crate::commands::measure::series::Series;
use crate::data::RecordArg;
use crate::groups::{HostArgs, OutputArgs};
use crate::output::{out, usage};
use crate::stop::StopRequest;

/// Measure an experiment that a file describes, and compare it with published results
#[derive(Debug, Args)]
#[command(
    after_help = "A file is strict TOML: what is sent, over what, what is varied, when it ends, and what is expected. \
             docs/reference/experiments.md describes it.\n\n\
             Examples:\n  \
             landspeed experiments                       list the experiments that ship\n  \
             sudo landspeed run cottrell/streams --short measure one of them in a few minutes\n  \
             sudo landspeed run balaji/streams --set socket-congestion=reno\n  \
             sudo landspeed run balaji/streams --occasions 5 --apart 1h\n  \
             sudo landspeed run bench/shares --short --values flow=cubic,udt\n  \
             sudo landspeed run balaji/latency lab:vm:6.12,driver=e1000e   in two virtual machines\n  \
             landspeed run --check mine.toml             look for mistakes, measure nothing"
)]
pub(crate) struct RunArgs {
    /// A file, or the name of an experiment that ships, such as cottrell/streams
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Set a factor in all cells, in place of what the file sets (may be repeated)
    #[arg(long, value_name = "FACTOR=VALUE")]
    pub(crate) set: Vec<String>,
    /// Keep only these values of a factor that the file varies (may be repeated)
    #[arg(long, value_name = "FACTOR=VALUE,VALUE")]
    pub(crate) values: Vec<String>,
    /// Measure the whole design this many times, each time with new hosts, processes and lab
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=100))]
    pub(crate) occasions: Option<u64>,
    /// With --occasions: start them at least this far apart
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0s", requires = "occasions")]
    pub(crate) apart: Nanos,
    /// With --occasions: count this record of the same design as one of them (may be repeated), to continue a series
    #[arg(long = "with", value_name = "RECORD", requires = "occasions")]
    pub(crate) made: Vec<RecordArg>,
    /// Measure the version that takes a few minutes
    #[arg(long)]
    pub(crate) short: bool,
    /// Measure without testing the noise of the machine first
    ///
    /// By default, if the file's expectations request a precision, trials of the first cell show how much they spread.
    /// If this noise hides every answer, nothing is measured.
    #[arg(long)]
    pub(crate) anyway: bool,
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
    let mut experiment = read_experiment(&path, &text, args.short).map_err(usage)?;
    args.set.iter().try_for_each(|text| experiment.set(text)).map_err(usage)?;
    args.values.iter().try_for_each(|text| experiment.keep(text)).map_err(usage)?;
    let words = hosts::words(&experiment, &args.hosts.hosts)?;
    if args.check {
        out(&format!("{}: no mistakes; {}", path.display(), summary(&experiment)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    let grid = experiment.grid;
    let options = GridOptions {
        yes: args.yes,
        report_missing: true,
        full: args.full,
        gate: !args.anyway,
        ..GridOptions::of(&args.hosts, &args.output)
    };
    match args.occasions {
        Some(count) => {
            Series { grid, words, count, apart: args.apart, made: &args.made }.measure(&options, &stop)
        }
        None => GridJob::of(grid, words, &options)?.finish(&options, &stop),
    }
}

/// Returns the size of an experiment: "24 cells, 3 expectations".
fn summary(experiment: &Experiment) -> String {
    let expectations = experiment.grid.expectations.len();
    format!("{} cells, {expectations} expectations", experiment.grid.cells())
}
