//! `landspeed run FILE`: measures an experiment of a file, or one that ships.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use include_dir::{Dir, DirEntry, include_dir};
use landspeed_engine::{Experiment, read_experiment};
use landspeed_record::units::did_you_mean;
use serde::Serialize;

use crate::commands::measure::grid::{GridJob, GridOptions};
use crate::groups::{HostArgs, ListArgs, OutputArgs};
use crate::output::{list, out, usage};
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

/// The experiments that ship, embedded in the program.
static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

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

/// Returns a file, or an experiment that ships.
pub(crate) fn found(name: &str) -> Result<(PathBuf, String)> {
    let path = Path::new(name);
    if path.exists() {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        return Ok((path.to_owned(), text));
    }
    let shipped = shipped();
    match shipped.iter().find(|(known, _)| known == name.trim_end_matches(".toml")) {
        Some((known, text)) => Ok((PathBuf::from(format!("{known}.toml")), (*text).to_owned())),
        None => {
            let near = did_you_mean(name, shipped.iter().map(|(known, _)| known.as_str()));
            Err(usage(format!(
                "there is no file {name}, and no experiment of that name ships{near}; `landspeed experiments` lists them"
            )))
        }
    }
}

/// Returns the name and text of each experiment that ships, sorted by name.
fn shipped() -> Vec<(String, &'static str)> {
    let folders = SHIPPED.entries().iter().filter_map(DirEntry::as_dir);
    let files = folders.flat_map(|folder| folder.files());
    let file = |file: &'static include_dir::File<'static>| {
        let name = file.path().to_str()?.strip_suffix(".toml")?.to_owned();
        Some((name, file.contents_utf8()?))
    };
    let mut all: Vec<_> = files.filter_map(file).collect();
    all.sort();
    all
}

/// Returns the size of an experiment: "24 cells, 3 expectations".
fn told(experiment: &Experiment) -> String {
    let expectations = experiment.grid.expectations.len();
    format!("{} cells, {expectations} expectations", experiment.grid.cells())
}

/// An experiment in the output of `landspeed experiments --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ExperimentEntry {
    /// The name that `landspeed run` takes.
    name: String,
    /// Title of the experiment.
    title: String,
    /// Paper and section.
    source: String,
    /// Combinations of values at full size.
    cells: u32,
    /// Combinations of values in the short version.
    short_cells: u32,
    /// Number of published claims that it compares with its measurements.
    expectations: usize,
}

/// Prints the list of the experiments that ship.
pub(crate) fn list_shipped(form: &ListArgs) -> Result<()> {
    let listed = shipped().into_iter().map(|(name, text)| {
        let read = |short| read_experiment(Path::new(&format!("{name}.toml")), text, short);
        let (full, short) = (read(false)?, read(true)?);
        Ok(ExperimentEntry {
            title: full.title,
            source: full.source,
            cells: full.grid.cells(),
            short_cells: short.grid.cells(),
            expectations: full.grid.expectations.len(),
            name,
        })
    });
    let listed: Vec<ExperimentEntry> = listed.collect::<Result<_>>()?;
    let row = |one: &ExperimentEntry| {
        let cells = format!("{} / {}", one.cells, one.short_cells);
        vec![one.name.clone(), one.title.clone(), one.source.clone(), cells]
    };
    let rows: Vec<Vec<String>> = listed.iter().map(row).collect();
    list(&["name", "title", "source", "cells / short"], &rows, &listed, form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_that_ships_is_without_mistakes_in_both_versions() {
        let all = shipped();
        assert!(!all.is_empty());
        for (name, text) in all {
            for short in [false, true] {
                let read = read_experiment(Path::new(&name), text, short);
                let grid = read.unwrap_or_else(|error| panic!("{error}")).grid;
                // What is beside other tools is measured, not expected.
                let expects = name.starts_with("bench/") || !grid.expectations.is_empty();
                assert!(!grid.title.is_empty() && expects, "{name} expects nothing");
            }
        }
    }
}
