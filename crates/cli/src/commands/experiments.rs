//! `landspeed experiments`: lists the experiments that ship, or prints the file of one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use include_dir::{Dir, DirEntry, include_dir};
use landspeed_engine::read_experiment;
use landspeed_record::units::did_you_mean;
use serde::Serialize;

use crate::groups::ListArgs;
use crate::output::{list, next, out, usage};

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

/// The experiments that ship, embedded in the program.
static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

/// An experiment in the output of `landspeed experiments --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ExperimentEntry {
    /// The name that `landspeed run` takes.
    name: String,
    /// Title of the experiment.
    title: String,
    /// Paper and section.
    source: String,
    /// Number of combinations of values at full size.
    cells: u32,
    /// Number of combinations of values in the short version.
    short_cells: u32,
    /// Number of published claims that it compares with its measurements.
    expectations: usize,
}

pub(crate) fn run(args: &ExperimentsArgs) -> Result<ExitCode> {
    match &args.name {
        Some(name) => out(&found(name)?.1)?,
        None => list_shipped(&args.form)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the list of the experiments that ship.
fn list_shipped(form: &ListArgs) -> Result<()> {
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
    list(&["name", "title", "source", "cells / short"], &rows, &listed, form)?;
    let first = listed.first().map(|one| format!("landspeed run {} --short", one.name));
    first.map_or(Ok(()), |command| next(form.json, &command))
}

/// Returns the path and the text of the experiment `name`, which is a file or the name of an experiment that ships.
pub(crate) fn found(name: &str) -> Result<(PathBuf, String)> {
    let path = Path::new(name);
    if path.exists() {
        let failed = |error: std::io::Error| usage(format!("cannot read {name}: {error}"));
        let text = std::fs::read_to_string(path).map_err(failed)?;
        return Ok((path.to_owned(), text));
    }
    let shipped = shipped();
    match shipped.iter().find(|(known, _)| known == name.trim_end_matches(".toml")) {
        Some((known, text)) => Ok((PathBuf::from(format!("{known}.toml")), (*text).to_owned())),
        None => {
            let near = did_you_mean(name, shipped.iter().map(|(known, _)| known.as_str()));
            Err(usage(format!(
                "there is no file '{name}', and no experiment of that name ships{near}; `landspeed experiments` lists them"
            )))
        }
    }
}

/// Returns the name and text of each experiment that ships, sorted by name.
pub(crate) fn shipped() -> Vec<(String, &'static str)> {
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
                // The experiments of bench/ compare landspeed with other tools, and expect no result.
                let expects = name.starts_with("bench/") || !grid.expectations.is_empty();
                assert!(!grid.title.is_empty() && expects, "{name} expects nothing");
            }
        }
    }
}
