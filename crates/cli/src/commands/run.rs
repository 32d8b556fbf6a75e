//! `landspeed run FILE`: measures an experiment of a file, or one that ships.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use landspeed_engine::{Experiment, read_experiment};

use landspeed_record::Grid;
use landspeed_record::units::{Nanos, parse_duration};
use landspeed_report::{DetailLevel, quoted};

use super::experiments::found;
use super::show::occasions;
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
             sudo landspeed run balaji/streams --set socket-congestion=reno\n  \
             sudo landspeed run balaji/streams --occasions 5 --apart 1h\n  \
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
    /// Measure the whole design this many times, each with hosts, processes and a lab made anew
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=100))]
    pub(crate) occasions: Option<u64>,
    /// With --occasions: begin them at least this far apart
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0s", requires = "occasions")]
    pub(crate) apart: Nanos,
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
    let mut experiment = read_experiment(&path, &text, args.short).map_err(usage)?;
    args.set.iter().try_for_each(|text| experiment.set(text)).map_err(usage)?;
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
    match args.occasions {
        Some(count) => on_occasions(args, &Design { grid, words }, count, &options, &stop),
        None => GridJob::of(grid, words, &options)?.finish(&options, &stop),
    }
}

/// A grid, and the words that name its hosts.
struct Design {
    grid: Grid,
    words: Vec<String>,
}

/// Measures a design on several occasions, with another order of cells on each, and shows what they say together.
fn on_occasions(
    args: &RunArgs,
    design: &Design,
    count: u64,
    options: &GridOptions<'_>,
    stop: &StopRequest,
) -> Result<ExitCode> {
    let mut files = Vec::new();
    for nth in 0..count {
        let began = Instant::now();
        eprintln!("landspeed: occasion {} of {count}", nth + 1);
        let grid = Grid { seed: design.grid.seed + nth, ..design.grid.clone() };
        files.push(GridJob::of(grid, design.words.clone(), options)?.measure(options, stop)?);
        let until = began + Duration::from(args.apart);
        while nth + 1 < count && !stop.asked() && Instant::now() < until {
            std::thread::sleep(until.saturating_duration_since(Instant::now()).min(LOOK));
        }
        if stop.asked() {
            break;
        }
    }
    let detail = if args.full { DetailLevel::Full } else { DetailLevel::Brief };
    match files.as_slice() {
        [one] => bail!(
            "one occasion is no series; it is kept: landspeed show {}",
            quoted(&one.display().to_string())
        ),
        files => occasions(files, &args.output.form, detail),
    }
}

/// How often a wait for the next occasion looks whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(200);

/// Returns the size of an experiment: "24 cells, 3 expectations".
fn told(experiment: &Experiment) -> String {
    let expectations = experiment.grid.expectations.len();
    format!("{} cells, {expectations} expectations", experiment.grid.cells())
}
