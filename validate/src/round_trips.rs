//! `make study STUDY=round-trips`: do stability and fairness change with the round trip? cottrell-2005 prints means of all
//! its protocols over three paths (section IV.A).
//!
//! A study of `landspeed compare` has one path, so there is a record for each. The protocols are the same ones on each path,
//! so repeats are what is independent: each gives one log ratio, the mean over the protocols.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Args;
use landspeed_analysis::compare::{ROUND_TRIP_CLAIMS, RunFigures};
use landspeed_record::units::Nanos;
use landspeed_record::{ContestQuestion, Study};
use landspeed_stats::{mean_and_deviation, mean_interval};

use crate::study_runs::study_runs;
use crate::table;

const CONFIDENCE: f64 = 0.95;

/// A figure of a run: its name, the paper's means over 13.6, 80 and 164 ms, and the direction in which it goes with the round
/// trip (1 up, -1 down). S is the deviation of the aggregate rate over its mean, so less of it is steadier.
const FIGURES: [(&str, &str, f64); 2] =
    [("S", "0.21, 0.29, 0.42", 1.0), ("least F", "0.90, 0.83, 0.77", -1.0)];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Records of the same study over paths with other round trips
    #[arg(required = true, num_args = 2..)]
    records: Vec<PathBuf>,
}

/// The figures of one study, by protocol and repeat.
#[derive(Debug)]
struct PathFigures {
    rtt: Nanos,
    scale: f64,
    repeats: u32,
    protocols: Vec<String>,
    runs: BTreeMap<(String, u32), [f64; FIGURES.len()]>,
}

/// Prints the means over each path, and how each figure goes with the round trip.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut paths = options.records.iter().map(|file| PathFigures::read(file)).collect::<Result<Vec<_>>>()?;
    paths.sort_by_key(|path| path.rtt);
    for two in paths.windows(2) {
        ensure!(two[0].rtt < two[1].rtt, "two studies have a round trip of {}", two[0].rtt);
        ensure!(two[0].protocols == two[1].protocols, "the studies have other protocols");
        ensure!(two[0].scale == two[1].scale, "the studies have regions of other lengths");
    }
    for (figure, (name, papers, way)) in FIGURES.into_iter().enumerate() {
        means(&paths, (figure, name));
        let steps: Vec<Vec<f64>> = paths.windows(2).map(|two| two[0].step(&two[1], figure)).collect();
        let told: Vec<String> = steps.iter().map(|logs| ratio(logs)).collect();
        println!(
            "\nFrom one path to the next, mean over the protocols: {}. The paper's means: {papers} (`{}`). **{}**\n",
            told.join(", then "),
            ROUND_TRIP_CLAIMS[figure],
            answer(&steps, way)
        );
    }
    Ok(())
}

fn means(paths: &[PathFigures], (figure, name): (usize, &str)) {
    let columns: Vec<String> = paths.iter().map(|path| format!("{name}, {}", path.rtt)).collect();
    table::head(&format!("protocol | {}", columns.join(" | ")));
    let mut protocols = paths[0].protocols.clone();
    protocols.push(String::new());
    for protocol in &protocols {
        let cell = |path: &PathFigures| path.mean(protocol, figure);
        let cells: Vec<String> = paths.iter().map(cell).collect();
        let called = if protocol.is_empty() { "all" } else { protocol.as_str() };
        table::row(&[&called, &cells.join(" | ")]);
    }
}

impl PathFigures {
    fn read(file: &Path) -> Result<PathFigures> {
        let (study, all) = study_runs(file)?;
        let protocols = protocols(&study);
        let of_protocol = all.iter().filter(|run| protocols.contains(&run.contest));
        let runs = of_protocol.filter_map(|run| {
            let figures = RunFigures::of(&study, run)?;
            Some(((run.contest.clone(), run.repeat), [figures.stability?, figures.fairness_min?]))
        });
        let runs = runs.collect();
        Ok(PathFigures {
            rtt: study.path.rtt_ns,
            scale: study.scale,
            repeats: study.repeats,
            protocols,
            runs,
        })
    }

    /// Returns the mean over the runs of a protocol, or over all runs if `protocol` is empty, and their number.
    fn mean(&self, protocol: &str, figure: usize) -> String {
        let own = self.runs.iter().filter(|((name, _), _)| protocol.is_empty() || name == protocol);
        let values: Vec<f64> = own.map(|(_, figures)| figures[figure]).collect();
        match values.as_slice() {
            [] => "not run yet".to_owned(),
            values => format!("{:.2} ({})", mean_and_deviation(values).0, values.len()),
        }
    }

    /// Returns the log ratio of a figure to that over another path, one for each repeat that has all protocols on both.
    fn step(&self, other: &PathFigures, figure: usize) -> Vec<f64> {
        let ln = |name: &String, repeat: u32| {
            let key = (name.clone(), repeat);
            Some((other.runs.get(&key)?[figure] / self.runs.get(&key)?[figure]).ln())
        };
        let of_repeat = |repeat: u32| {
            let logs = self.protocols.iter().map(|name| ln(name, repeat)).collect::<Option<Vec<f64>>>()?;
            (!logs.is_empty()).then(|| mean_and_deviation(&logs).0)
        };
        (0..self.repeats).filter_map(of_repeat).collect()
    }
}

/// Returns the names of the protocols whose flows come and go on the path.
fn protocols(study: &Study) -> Vec<String> {
    let asked = study.contests.iter().filter(|contest| contest.question == ContestQuestion::Regions);
    asked.map(|contest| contest.name.clone()).collect()
}

/// Returns the ratio from its logarithms, with its interval where there are two.
fn ratio(logs: &[f64]) -> String {
    let ends =
        mean_interval(logs, CONFIDENCE).map(|(low, high)| format!(" [{:.2}, {:.2}]", low.exp(), high.exp()));
    match logs {
        [] => "not run yet".to_owned(),
        logs => format!("{:.2}x{}", mean_and_deviation(logs).0.exp(), ends.unwrap_or_default()),
    }
}

/// Returns whether a figure goes `way` (1 up, -1 down) at every step.
fn answer(steps: &[Vec<f64>], way: f64) -> &'static str {
    let ends: Option<Vec<(f64, f64)>> = steps.iter().map(|logs| mean_interval(logs, CONFIDENCE)).collect();
    let Some(ends) = ends else { return "too few repeats" };
    let turned = |(low, high): &(f64, f64)| if way > 0.0 { (*low, *high) } else { (-high, -low) };
    match () {
        () if ends.iter().any(|ends| turned(ends).1 < 0.0) => "does not show",
        () if ends.iter().all(|ends| turned(ends).0 > 0.0) => "shows",
        () => "undecided",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns three repeats of two protocols, whose first figure is about `stability`.
    fn path(rtt: u64, stability: f64) -> PathFigures {
        let protocols = ["bic", "reno"].map(str::to_owned);
        let keys = (0..3).flat_map(|repeat| protocols.clone().map(|name| (name, repeat)));
        let runs = keys.map(|(name, repeat)| {
            let own = if name == "bic" { 0.5 } else { 1.0 };
            let figures = [stability * own * (1.0 + 0.01 * f64::from(repeat)), 0.9];
            ((name, repeat), figures)
        });
        let runs = runs.collect();
        PathFigures { rtt: Nanos::millis(rtt), scale: 1.0, repeats: 3, protocols: protocols.into(), runs }
    }

    #[test]
    fn a_figure_shows_its_way_where_each_step_does() {
        let [short, middle, far] = [path(13, 0.2), path(80, 0.3), path(164, 0.4)];
        let steps = [short.step(&middle, 0), middle.step(&far, 0)];
        assert_eq!(steps[0].len(), 3);
        assert!(steps[0].iter().all(|ln| (ln.exp() - 1.5).abs() < 1e-9), "{steps:?}");
        assert_eq!((answer(&steps, 1.0), answer(&steps, -1.0)), ("shows", "does not show"));
        assert_eq!(answer(&[steps[0].clone(), vec![0.1, -0.1, 0.02]], 1.0), "undecided");
        assert!(ratio(&[1.5f64.ln(), 1.6f64.ln()]).starts_with("1.55x ["));
        assert_eq!(short.mean("bic", 0), "0.10 (3)");
        assert_eq!(short.mean("", 1), "0.90 (6)");
    }

    #[test]
    fn a_repeat_without_all_of_its_runs_does_not_count() {
        let (short, mut far) = (path(13, 0.2), path(164, 0.4));
        far.runs.retain(|(name, repeat), _| !(name == "reno" && *repeat > 0));
        let step = short.step(&far, 0);
        assert_eq!((step.len(), answer(std::slice::from_ref(&step), 1.0)), (1, "too few repeats"));
        far.runs.clear();
        assert_eq!(
            (ratio(&short.step(&far, 0)), far.mean("bic", 0)),
            ("not run yet".to_owned(), "not run yet".to_owned())
        );
    }
}
