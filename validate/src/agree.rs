//! `make agree`: checks if the kernel and the simulator agree in a study, from one record of `landspeed compare` by
//! each.
//!
//! Every congestion control fills the link, so the rate does not distinguish them, but the other figures do. A figure
//! agrees if its two means are no further apart than two single runs are in 95 of 100 cases, by the spread of both
//! engines' runs (docs/decisions/0021).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_analysis::compare::RunFigures;
use landspeed_record::{Contest, RunFlow, Study, StudyRegion, StudyRun};
use landspeed_stats::{apart, mean_and_deviation, unpaired};

use crate::study_runs::study_runs;
use crate::table;

const CONFIDENCE: f64 = 0.95;
/// The bounds of the interval of the ratio of the two rates.
const RATES: std::ops::RangeInclusive<f64> = 0.85..=1.18;
/// Least share of the protocols that must agree.
const ENOUGH: f64 = 0.8;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Record of a study on the kernel's sockets
    kernel: PathBuf,
    /// Record of the same study with --simulate
    simulator: PathBuf,
}

/// The names of a run's figures. S is stability: the deviation of the aggregate rate over its mean. F is Jain's index
/// of fairness. Rates and windows are those of the middle region, in which all flows run.
const FIGURES: [&str; 6] = ["rate", "S", "least F", "window", "window's deviation", "round trip's deviation"];

/// The figures of one protocol in one engine, with one row for each valid run.
struct ProtocolFigures {
    protocol: String,
    runs: Vec<[f64; FIGURES.len()]>,
}

/// Prints one row for each protocol. Returns an error if kernel and simulator differ in the rate of any protocol, or if
/// they agree in all figures for too few protocols.
pub(crate) fn run(options: &Options) -> Result<()> {
    let ((real, kernel), (model, simulator)) = (columns(&options.kernel)?, columns(&options.simulator)?);
    ensure!(is_same(&real, &model), "the two records are of other paths, cross traffic or senders");
    println!("Kernel over simulator\n");
    table::head(&format!("protocol | {} | | also taken for", FIGURES.join(" | ")));
    let (mut alike, mut rates_differ) = (0, Vec::new());
    for real in &kernel {
        let model = simulator.iter().find(|model| model.protocol == real.protocol);
        let model = model.with_context(|| format!("{} was not simulated", real.protocol))?;
        let differs = real.differs(model);
        let others = simulator.iter().filter(|other| other.protocol != real.protocol);
        let taken_for = others.filter(|other| real.differs(other).is_some_and(|names| names.is_empty()));
        let taken_for: Vec<&str> = taken_for.map(|other| other.protocol.as_str()).collect();
        let ratios: Vec<String> = (0..FIGURES.len()).map(|i| real.ratio(model, i)).collect();
        let verdict = match &differs {
            None => "too few runs".to_owned(),
            Some(names) if names.is_empty() => "agrees".to_owned(),
            Some(names) => format!("**{}**", names.join(", ")),
        };
        table::row(&[&real.protocol, &ratios.join(" | "), &verdict, &taken_for.join(", ")]);
        alike += usize::from(verdict == "agrees");
        if differs.is_some_and(|names| names.contains(&FIGURES[0])) {
            rates_differ.push(real.protocol.as_str());
        }
    }
    println!("\n{alike} of {} protocols agree.", kernel.len());
    ensure!(rates_differ.is_empty(), "the rates differ: {}", rates_differ.join(", "));
    ensure!(alike as f64 >= ENOUGH * kernel.len() as f64, "too few protocols agree");
    Ok(())
}

/// Returns true if two studies have the same path, traffic of others, senders and schedule.
fn is_same(one: &Study, other: &Study) -> bool {
    let of = |study: &Study| (study.path.clone(), study.without.clone(), study.flows, study.region_ns);
    of(one) == of(other)
}

fn columns(file: &Path) -> Result<(Study, Vec<ProtocolFigures>)> {
    let (study, runs) = study_runs(file)?;
    let column = |contest: &Contest| {
        let runs = runs.iter().filter(|run| run.contest == contest.name);
        let runs = runs.filter_map(|run| figures(&study, run)).collect();
        ProtocolFigures { protocol: contest.name.clone(), runs }
    };
    let columns = study.contests.iter().map(column).collect();
    Ok((study, columns))
}

fn figures(study: &Study, run: &StudyRun) -> Option<[f64; FIGURES.len()]> {
    let figures = RunFigures::of(study, run)?;
    let (window, deviation) = windows(study, run)?;
    let rate = figures.middle_bps()?.0;
    Some([rate, figures.stability?, figures.fairness_min?, window, deviation / window, figures.rtt_sd_s?])
}

/// Returns the mean and the deviation, over the samples, of the sum of all flows' windows while all flows run.
fn windows(study: &Study, run: &StudyRun) -> Option<(f64, f64)> {
    let StudyRegion { start, end, .. } = study.regions().into_iter().max_by_key(|region| region.flows)?;
    let of_flow = |flow: &RunFlow| -> Option<Vec<u32>> {
        let within = flow.samples.iter().filter(|sample| sample.at_ns > start && sample.at_ns <= end);
        within.map(|sample| sample.cwnd_segments).collect()
    };
    let flows: Vec<Vec<u32>> = run.flows.iter().map(of_flow).collect::<Option<_>>()?;
    let looks = flows.iter().map(Vec::len).min().filter(|looks| *looks > 1)?;
    let sums = (0..looks).map(|look| flows.iter().map(|flow| f64::from(flow[look])).sum());
    Some(mean_and_deviation(&sums.collect::<Vec<f64>>()))
}

impl ProtocolFigures {
    fn figure(&self, i: usize) -> Vec<f64> {
        self.runs.iter().map(|run| run[i]).collect()
    }

    /// Returns the names of the figures in which the two engines differ; `None` if either has too few runs.
    fn differs(&self, other: &ProtocolFigures) -> Option<Vec<&'static str>> {
        let rates = unpaired(&self.figure(0), &other.figure(0), CONFIDENCE)?;
        let mut differing = Vec::new();
        if !(RATES.contains(&rates.low) && RATES.contains(&rates.high)) {
            differing.push(FIGURES[0]);
        }
        for (i, name) in FIGURES.iter().enumerate().skip(1) {
            let logs =
                |column: &ProtocolFigures| -> Vec<f64> { column.figure(i).iter().map(|x| x.ln()).collect() };
            if !apart(&logs(self), &logs(other), CONFIDENCE)?.is_within() {
                differing.push(name);
            }
        }
        Some(differing)
    }

    /// Formats the ratio of figure `i` in this engine to that in the other one, with its interval.
    fn ratio(&self, other: &ProtocolFigures, i: usize) -> String {
        table::ratio(unpaired(&self.figure(i), &other.figure(i), CONFIDENCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(windows: &[f64]) -> ProtocolFigures {
        let run = |window: &f64| [96.5e6, 0.1, 0.9, *window, 0.1, 0.002];
        ProtocolFigures { protocol: String::new(), runs: windows.iter().map(run).collect() }
    }

    #[test]
    fn a_full_link_makes_no_two_protocols_alike() {
        let (kernel, own, other) =
            (column(&[100.0, 101.0, 102.0]), column(&[100.0, 102.0]), column(&[201.0, 203.0]));
        assert_eq!(kernel.differs(&own), Some(Vec::new()));
        assert_eq!(kernel.differs(&other), Some(vec!["window"]));
        assert_eq!(kernel.differs(&column(&[100.0])), None, "one run has no spread");
    }

    #[test]
    fn rates_are_held_to_a_fixed_bound() {
        let (kernel, mut model) = (column(&[100.0, 102.0]), column(&[100.0, 102.0]));
        model.runs.iter_mut().for_each(|run| run[0] /= 1.2);
        assert_eq!(kernel.differs(&model), Some(vec!["rate"]));
        assert!(kernel.ratio(&model, 0).starts_with("1.200 ["), "{}", kernel.ratio(&model, 0));
    }
}
