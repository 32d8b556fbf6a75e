//! `make applications`: runs every application that ships, with its real programs in labs, in rounds, and prints the
//! table of docs/results/applications.md.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::{CustomQuantity, FigureValue, MeasureReport};
use serde_json::Value;

use crate::built;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only applications with this in their name
    #[arg(long, default_value = "")]
    only: String,
    /// Run each so often
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Runs in addition to that of each application with its defaults.
const MORE: &[(&str, &[&str])] = &[
    ("app:redis", &["--size", "3"]),
    ("app:ganglia", &["lab:switch:9"]),
    ("app:ganglia", &["lab:switch:33"]),
    ("app:tile", &["--displays", "array"]),
    ("app:tile", &["--access", "independent"]),
    ("app:tile", &["--displays", "array", "--access", "independent"]),
    ("app:mpi", &["--test", "bandwidth", "--size", "1M", "--repeats", "20"]),
    ("app:mpi", &["lab:switch:4", "--test", "alltoall", "--size", "64K", "--repeats", "100"]),
    ("app:mpi", &["lab:switch:4", "--test", "allreduce", "--size", "64K", "--repeats", "100"]),
    ("app:mpi-local", &["--test", "bandwidth", "--size", "1M", "--repeats", "20"]),
];

pub(crate) fn run(_root: &Path, options: &Options) -> Result<()> {
    let landspeed = built::landspeed()?;
    let listed = Command::new(&landspeed).args(["app", "list", "--json"]).output()?;
    let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).context("landspeed app list --json")?;
    let names: Vec<String> = listed.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect();
    let usual = names.iter().map(|name| vec![name.clone()]);
    let more = MORE
        .iter()
        .map(|(name, args)| std::iter::once(name).chain(*args).map(|word| (*word).to_owned()).collect());
    let runs: Vec<Vec<String>> =
        usual.chain(more).filter(|run: &Vec<String>| run[0].contains(&options.only)).collect();
    let began = Instant::now();
    let mut seen: BTreeMap<(usize, String), (String, Vec<f64>)> = BTreeMap::new();
    let mut failed = Vec::new();
    for round in 0..options.rounds {
        for at in 0..runs.len() {
            // Each round begins at another run, so that drift does not always affect the same ones.
            let at = (at + round * 7) % runs.len();
            match measured(&landspeed, &runs[at]) {
                Ok(figures) => figures.into_iter().for_each(|(name, measured)| {
                    let entry = seen.entry((at, name)).or_insert((measured.unit, Vec::new()));
                    entry.1.push(measured.value);
                }),
                Err(why) => failed.push(format!("{}: {why:#}", runs[at].join(" "))),
            }
        }
    }
    println!("| application | figure | median | least to most of {} |\n|---|---|---|---|", options.rounds);
    for ((at, name), (unit, values)) in &mut seen {
        println!("| `{}` | {name} | {} |", runs[*at].join(" "), told(unit, values));
    }
    println!("\n{} s", began.elapsed().as_secs());
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Returns the figures that `landspeed measure` prints for these words, by name.
pub(crate) fn measured(landspeed: &Path, run: &[String]) -> Result<Vec<(String, CustomQuantity)>> {
    let output = Command::new(landspeed).arg("measure").args(run).arg("--json").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.lines().last().unwrap_or_default());
    let report: MeasureReport = serde_json::from_slice(&output.stdout)?;
    let figures = report.figures.into_iter().flat_map(|part| part.figures);
    Ok(figures
        .filter_map(|figure| match figure.amount {
            FigureValue::Measured(measured) => Some((figure.name, measured)),
            _ => None,
        })
        .collect())
}

/// Returns "99,100 requests/s | 98,000 to 101,000".
fn told(unit: &str, values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let shown = |value: f64| if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") };
    let [least, middle, most] = [0, values.len() / 2, values.len() - 1].map(|at| shown(values[at]));
    format!("{middle} {unit} | {least} to {most}")
}
