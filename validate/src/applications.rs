//! `make applications`: runs every application that ships, with its real programs in labs, in several rounds. It
//! prints the table of docs/results/applications.md.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;
use landspeed_record::{CustomQuantity, FigureValue, MeasureReport};
use landspeed_stats::quantile;
use serde::Deserialize;

use crate::landspeed::{document, landspeed};
use crate::table;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only applications with this in their name
    #[arg(long, default_value = "")]
    only: String,
    /// Run each so often
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// The further runs, after one run of each application with its defaults.
const MORE: &[&str] = &[
    "app:redis --size 3",
    "app:ganglia lab:switch:9",
    "app:ganglia lab:switch:33",
    "app:tile --displays array",
    "app:tile --access independent",
    "app:tile --displays array --access independent",
    "app:mpi --test bandwidth --size 1M --repeats 20",
    "app:mpi lab:switch:4 --test alltoall --size 64K --repeats 100",
    "app:mpi lab:switch:4 --test allreduce --size 64K --repeats 100",
    "app:mpi-local --test bandwidth --size 1M --repeats 20",
];

/// An entry of a list that landspeed prints as JSON.
#[derive(Debug, Deserialize)]
pub(crate) struct ListedPart {
    pub(crate) name: String,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let listed: Vec<ListedPart> = document(Command::new(&landspeed).args(["app", "list", "--json"]))?;
    let more = MORE.iter().map(|words| (*words).to_owned());
    let all = listed.into_iter().map(|one| one.name).chain(more);
    let runs: Vec<String> = all
        .filter(|words| words.split(' ').next().is_some_and(|name| name.contains(&options.only)))
        .collect();
    let began = Instant::now();
    let mut measured: BTreeMap<(usize, String), (String, Vec<f64>)> = BTreeMap::new();
    let mut failed = Vec::new();
    for round in 0..options.rounds {
        for at in 0..runs.len() {
            // Each round begins with another run, so that drift does not always affect the same runs.
            let at = (at + round * 7) % runs.len();
            match figures(&landspeed, &runs[at]) {
                Ok(figures) => figures.into_iter().for_each(|(name, figure)| {
                    let entry = measured.entry((at, name)).or_insert((figure.unit, Vec::new()));
                    entry.1.push(figure.value);
                }),
                Err(why) => failed.push(format!("{}: {why:#}", runs[at])),
            }
        }
    }
    table::head(&format!("application | figure | median | least to most of {}", options.rounds));
    for ((at, name), (unit, values)) in &measured {
        let [least, middle, most] =
            [0.0, 0.5, 1.0].map(|share| amount(quantile(values, share).unwrap_or_default()));
        let median = format!("{middle} {unit}");
        table::row(&[&format!("`{}`", runs[*at]), name, &median, &format!("{least} to {most}")]);
    }
    println!("\n{} s", began.elapsed().as_secs());
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Returns the figures that `landspeed measure` prints for the arguments `words`, each with its name.
fn figures(landspeed: &Path, words: &str) -> Result<Vec<(String, CustomQuantity)>> {
    let report: MeasureReport =
        document(Command::new(landspeed).arg("measure").args(words.split(' ')).arg("--json"))?;
    let figures = report.figures.into_iter().flat_map(|part| part.figures);
    Ok(figures
        .filter_map(|figure| match figure.amount {
            FigureValue::Measured(measured) => Some((figure.name, measured)),
            _ => None,
        })
        .collect())
}

fn amount(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}
