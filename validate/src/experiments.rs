//! `make experiments`: runs every experiment that ships in the lab, in its short version. It writes a page for each
//! in target/experiments, and prints the table of docs/results/experiments.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;
use landspeed_engine::{Experiment, read_experiment};
use landspeed_lab::topology;
use landspeed_record::{ExpectationReport, GridReport};

use crate::applications::ListedPart;
use crate::forecast::{PlannedRun, forecast};
use crate::landspeed::{document, ended, is_too_noisy, landspeed, last_said, printed};
use crate::table;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only experiments with one of these in their names
    #[arg(long, default_value = "", value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// At full size: hours
    #[arg(long)]
    full: bool,
    /// Measure each file under each of these congestion controls, which all hosts have as their default
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    controls: Vec<String>,
    /// Keep the pages and the records in this folder, as one occasion
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// Say first how long it takes, by the records of these occasions: folders that `--into` wrote, or archives of them
    #[arg(long, value_name = "OCCASION", num_args = 1..)]
    like: Vec<PathBuf>,
}

/// The folder of the experiments that compare landspeed with other tools. `make bench` runs them.
const BENCH: &str = "bench/";

pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let pages = options.into.clone().unwrap_or_else(|| landspeed.with_file_name("../experiments"));
    fs::create_dir_all(&pages)?;
    let listed: Vec<ListedPart> = document(Command::new(&landspeed).args(["experiments", "--json"]))?;
    let names = listed.iter().map(|one| one.name.as_str()).filter(|name| !name.starts_with(BENCH));
    let (mut runs, mut failed, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for name in names.filter(|name| options.only.iter().any(|only| name.contains(only))) {
        let experiment = shipped(&landspeed, name)?;
        if are_guests(&experiment.words)? {
            left_out.push(name);
        } else {
            runs.extend(options.runs_of(name, &experiment));
        }
    }
    options.tell(&runs)?;
    let began = Instant::now();
    table::head("experiment | control | expected | came out | published | here | of what, and why");
    for run in &runs {
        if run.is_first {
            eprintln!("validate: {}, after {} min", run.name, began.elapsed().as_secs() / 60);
        }
        match run.measured(&landspeed, &pages) {
            Ok(report) => report.expected.iter().for_each(|one| run.row(one)),
            Err(why) => failed.push(format!("{} {}: {why:#}", run.name, run.control.unwrap_or_default())),
        }
    }
    if !left_out.is_empty() {
        println!("\nLeft out, because their hosts are virtual machines: {}.", left_out.join(", "));
    }
    println!("\n{} min; pages in {}", began.elapsed().as_secs() / 60, pages.display());
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Returns an experiment that ships, in its short version.
fn shipped(landspeed: &Path, name: &str) -> Result<Experiment> {
    let text = Command::new(landspeed).args(["experiments", name]).output()?.stdout;
    Ok(read_experiment(Path::new(name), &String::from_utf8(text)?, true)?)
}

/// Returns true if an experiment's flows name their congestion controls themselves, so that the hosts' default decides
/// nothing.
fn names_control(experiment: &Experiment) -> bool {
    experiment.grid.all_settings().any(|one| one.name == "socket-congestion")
}

/// Returns true if these words name virtual machines. They have no place in an occasion of the lab, and many machines
/// cannot boot them.
fn are_guests(words: &[String]) -> Result<bool> {
    Ok(topology::find(words)?.plan(words)?.has_guests())
}

impl Options {
    /// Returns the controls under which each file is measured; `None` is the one that the file and the hosts have.
    fn each_control(&self) -> Vec<Option<&str>> {
        match self.controls.as_slice() {
            [] => vec![None],
            some => some.iter().map(|control| Some(control.as_str())).collect(),
        }
    }

    /// Returns the runs of an experiment: one under each control, or a single one.
    fn runs_of<'a>(&'a self, name: &'a str, experiment: &Experiment) -> Vec<ExperimentRun<'a>> {
        let controls = if names_control(experiment) { vec![None] } else { self.each_control() };
        let (passes, is_full) = (experiment.grid.blocks.unwrap_or(1), self.full);
        let run = |(nth, control): (usize, Option<&'a str>)| {
            let is_first = nth == 0;
            ExperimentRun { name, control, is_first, is_full, passes }
        };
        controls.into_iter().enumerate().map(run).collect()
    }

    /// Says how much there is to measure and, by earlier records, how long it takes.
    fn tell(&self, runs: &[ExperimentRun<'_>]) -> Result<()> {
        let files = runs.iter().filter(|run| run.is_first).count();
        let count = format!("validate: {files} files, {} runs", runs.len());
        if self.like.is_empty() || self.full {
            eprintln!("{count}");
            return Ok(());
        }
        let planned: Vec<PlannedRun> = runs.iter().map(ExperimentRun::planned).collect();
        let found = forecast(&self.like, &planned)?;
        let minutes = (found.time.as_secs_f64() / 60.0).round();
        let without = match found.unknown {
            0 => String::new(),
            unknown => format!("; no record has {unknown} of the runs, which come on top"),
        };
        eprintln!("{count}: about {minutes} min, by earlier records{without}");
        Ok(())
    }
}

/// An experiment under one congestion control.
struct ExperimentRun<'a> {
    name: &'a str,
    control: Option<&'a str>,
    /// True for the first run of the file: landspeed looks at the machine before it, and not before the others.
    is_first: bool,
    is_full: bool,
    /// The passes over all cells in the short version.
    passes: u32,
}

impl ExperimentRun<'_> {
    /// Measures the experiment. Where the look at the machine refuses it, this is printed, and it is measured all the same: an
    /// occasion has every file.
    fn measured(&self, landspeed: &Path, pages: &Path) -> Result<GridReport> {
        if self.is_first {
            let looked = ended(&mut self.command(landspeed, pages))?;
            if !is_too_noisy(&looked) {
                return printed(&looked);
            }
            eprintln!("validate: {}: {}", self.name, last_said(&looked));
        }
        document(self.command(landspeed, pages).arg("--anyway"))
    }

    /// Returns the name of the run's folder and of its page.
    fn folder(&self) -> String {
        let file = self.name.replace('/', "-");
        [Some(file.as_str()), self.control].into_iter().flatten().collect::<Vec<_>>().join("-")
    }

    fn planned(&self) -> PlannedRun {
        PlannedRun { folder: self.folder(), passes: self.passes, looks: self.is_first }
    }

    fn command(&self, landspeed: &Path, pages: &Path) -> Command {
        let name = self.folder();
        // A folder of its own has one record, which its name finds.
        let records = pages.join(&name);
        let mut command = Command::new(landspeed);
        command.args(["run", self.name, "--json", "--html"]).arg(pages.join(name + ".html"));
        command.arg("--data-dir").arg(&records);
        for side in self.control.iter().flat_map(|control| ["a", "b"].map(|side| format!("{side}={control}")))
        {
            command.arg("--set").arg(format!("congestion-control@{side}"));
        }
        if !self.is_full {
            command.arg("--short");
        }
        command
    }

    fn row(&self, one: &ExpectationReport) {
        let came_out = table::came_out(one.agreement);
        let published = one.published.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let claim = format!("{} ({})", one.claim, one.source);
        let control = self.control.unwrap_or("as found");
        table::row(&[&self.name, &control, &claim, &came_out, &published, &table::ratio(one.ours), &one.why]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_look_refuses_is_measured_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("landspeed");
        // A process of its own writes it: one that this process has open could not be run.
        let looks = |status: u8| {
            let text = format!(
                "#!/bin/sh\ncase \"$*\" in *--anyway*) exit 9;; esac; echo noisy >&2; exit {status}\n"
            );
            let write = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
            let written = Command::new("sh").args(["-c", write]).arg(&program).arg(text).status();
            assert!(written.unwrap().success());
        };
        let run = |is_first| {
            let run =
                ExperimentRun { name: "feng/ladder", control: None, is_first, is_full: false, passes: 1 };
            run.measured(&program, folder.path()).unwrap_err().to_string()
        };
        looks(7);
        assert_eq!([run(true), run(false)], ["exit status: 9: ", "exit status: 9: "]);
        // A failure that says the same is none.
        looks(1);
        assert_eq!(run(true), "exit status: 1: noisy");
    }

    #[test]
    fn an_experiment_in_virtual_machines_is_known_by_its_file() {
        let text = include_str!("../../experiments/feng/coalescing.toml");
        let experiment = read_experiment(Path::new("coalescing.toml"), text, true).unwrap();
        assert!(are_guests(&experiment.words).unwrap());
        assert!(!are_guests(&["lab:back-to-back".to_owned()]).unwrap() && !are_guests(&[]).unwrap());
    }
}
