//! `make experiments`: runs every experiment that ships, in its short version, in the lab. It writes a page for each
//! in target/experiments, and prints the table of docs/results/experiments.md.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::{ExpectationAgreement, ExpectationReport, GridReport};
use serde_json::Value;

use crate::built;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only experiments with this in their name
    #[arg(long, default_value = "")]
    only: String,
    /// At full size: hours
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let landspeed = built::landspeed()?;
    let pages = root.join("target/experiments");
    fs::create_dir_all(&pages)?;
    let listed = Command::new(&landspeed).args(["experiments", "--json"]).output()?;
    let listed: Vec<Value> =
        serde_json::from_slice(&listed.stdout).context("landspeed experiments --json")?;
    let names = listed.iter().filter_map(|one| one["name"].as_str());
    let began = Instant::now();
    let mut failed = Vec::new();
    println!(
        "| experiment | expected | came out | published | here | of what, and why |\n|---|---|---|---|---|---|"
    );
    for name in names.filter(|name| name.contains(&options.only)) {
        match measured(&landspeed, name, &pages, options.full) {
            Ok(report) => report.expected.iter().for_each(|one| println!("| {name} {}", row(one))),
            Err(why) => failed.push(format!("{name}: {why:#}")),
        }
    }
    println!("\n{} min; pages in {}", began.elapsed().as_secs() / 60, pages.display());
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

fn measured(landspeed: &Path, name: &str, pages: &Path, full: bool) -> Result<GridReport> {
    let page = pages.join(format!("{}.html", name.replace('/', "-")));
    let mut command = Command::new(landspeed);
    command.args(["run", name, "--json", "--html"]).arg(page).arg("--data-dir").arg(pages);
    if !full {
        command.arg("--short");
    }
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    ensure!(output.status.success(), "{last}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn row(one: &ExpectationReport) -> String {
    let came_out = match one.agreement {
        ExpectationAgreement::Reproduces => "reproduces",
        ExpectationAgreement::Differs => "**differs**",
        ExpectationAgreement::Undecided => "undecided",
        ExpectationAgreement::NotHere => "not on this hardware",
    };
    let published = one.published.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    let here = one.ours.map(|e| format!("{:.2} [{:.2}, {:.2}]", e.ratio, e.low, e.high)).unwrap_or_default();
    format!("| {} ({}) | {came_out} | {published} | {here} | {} |", one.claim, one.source, one.why)
}
