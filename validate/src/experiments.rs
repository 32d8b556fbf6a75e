//! `make experiments`: runs every experiment that ships in the lab, in its short version. It writes a page for each
//! in target/experiments, and prints the table of docs/results/experiments.md.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;
use landspeed_record::{ExpectationAgreement, ExpectationReport, GridReport};

use crate::applications::ListedPart;
use crate::landspeed::{document, landspeed};
use crate::table;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only experiments with this in their name
    #[arg(long, default_value = "")]
    only: String,
    /// At full size: hours
    #[arg(long)]
    full: bool,
}

/// The folder of the experiments that compare landspeed with other tools. `make bench` runs them.
const BENCH: &str = "bench/";

pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let pages = landspeed.with_file_name("../experiments");
    fs::create_dir_all(&pages)?;
    let listed: Vec<ListedPart> = document(Command::new(&landspeed).args(["experiments", "--json"]))?;
    let names = listed.iter().map(|one| one.name.as_str()).filter(|name| !name.starts_with(BENCH));
    let began = Instant::now();
    let mut failed = Vec::new();
    table::head("experiment | expected | came out | published | here | of what, and why");
    for name in names.filter(|name| name.contains(&options.only)) {
        match measured(&landspeed, name, &pages, options.full) {
            Ok(report) => report.expected.iter().for_each(|one| row(name, one)),
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
    document(&mut command)
}

fn row(name: &str, one: &ExpectationReport) {
    let came_out = match one.agreement {
        ExpectationAgreement::Reproduces => "reproduces",
        ExpectationAgreement::Differs => "**differs**",
        ExpectationAgreement::Undecided => "undecided",
        ExpectationAgreement::NotHere => "not on this hardware",
    };
    let published = one.published.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    let claim = format!("{} ({})", one.claim, one.source);
    table::row(&[&name, &claim, &came_out, &published, &table::ratio(one.ours), &one.why]);
}
