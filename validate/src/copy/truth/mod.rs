//! `make copy-truth`: bottlenecks made on purpose, one at a time, in an order that is drawn anew for each seed. Is what
//! `landspeed copy` names first what was made? Beside each of these copies is the same one without what was made: where that is
//! hardly faster, something else was slower, and the run is counted apart.
//!
//! | module | content |
//! |---|---|
//! | `truths` | what is made, and what is right |
//! | `places` | what is copied, and where |
//! | `made` | makes a bottleneck, and copies |
//! | `score` | counts what is right |

mod made;
mod places;
mod score;
mod truths;

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Result, ensure};
use clap::Args;
use landspeed_stats::Random;
use serde::{Deserialize, Serialize};

use crate::kept::KeptRuns;
use crate::landspeed::landspeed;
use crate::stop;
use places::Places;
use score::{TruthRun, TruthScore, report};
use truths::{TRUTHS, Truth, long_truths};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs of each truth
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Run only the truths whose name contains this
    #[arg(long, value_name = "PART-OF-A-NAME")]
    only: Option<String>,
    /// Make copies of about this many minutes, which are slowed to test what holds them (a gigabyte of memory for each)
    #[arg(long, value_parser = clap::value_parser!(u64).range(6..=30))]
    minutes: Option<u64>,
    /// Draws the order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder in which all is copied, in memory
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
    /// Holds the runs that were made. A study goes on with the runs that its file lacks.
    #[arg(long, value_name = "FILE", default_value = "target/copy-truth.jsonl")]
    state: PathBuf,
}

/// A run, as the study's file has it.
#[derive(Debug, Serialize, Deserialize)]
struct KeptTruthRun {
    truth: String,
    seed: u64,
    /// The number of the run among those of its truth.
    number: u32,
    run: TruthRun,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on_signals()?;
    let is_asked = |truth: &&Truth| options.only.as_deref().is_none_or(|only| truth.name.contains(only));
    let truths: Vec<Truth> =
        options.minutes.map_or_else(|| TRUTHS.into(), |minutes| long_truths(minutes).into());
    let asked: Vec<&Truth> = truths.iter().filter(is_asked).collect();
    ensure!(!asked.is_empty(), "no truth has such a name");
    let places = Places::new(&options.folder, &landspeed()?, options.minutes.unwrap_or_default())?;
    let is_possible = |truth: &&&Truth| places.missing(truth.made).is_none();
    let can: Vec<&Truth> = asked.iter().filter(is_possible).copied().collect();
    let mut kept = KeptRuns::<KeptTruthRun>::open(&options.state)?;
    can.iter().try_for_each(|truth| places.prepare(truth))?;
    for (done, (which, number)) in order(can.len(), options).into_iter().enumerate() {
        let truth = can[which];
        if found(&kept, truth, options.seed, number).is_some() {
            continue;
        }
        let run = places.run_of(truth, &stop).unwrap_or_else(|error| TruthRun::Failed(format!("{error:#}")));
        // Ctrl-C ends the copies of a run too, which then says nothing. What was made is taken away.
        ensure!(!stop.load(Ordering::Relaxed), "stopped after {done} runs: the same command goes on");
        eprintln!("{} of {}, {}: {}", done + 1, can.len() * options.runs as usize, truth.name, run.words());
        kept.add(KeptTruthRun { truth: truth.name.to_owned(), seed: options.seed, number, run })?;
    }
    println!("Seed {}. {}\n", options.seed, places.disk_words());
    for truth in asked {
        if let Some(why) = places.missing(truth.made) {
            println!("LEFT OUT, {why}: {}\n", truth.name);
        }
    }
    ensure!(!can.is_empty(), "none of it can be made here");
    let runs = |truth: &Truth| -> Vec<TruthRun> {
        (0..options.runs).filter_map(|number| found(&kept, truth, options.seed, number)).collect()
    };
    let scores: Vec<TruthScore> = can.iter().map(|truth| TruthScore { truth, runs: runs(truth) }).collect();
    report(&scores)
}

/// Returns a run that the study's file has.
fn found(kept: &KeptRuns<KeptTruthRun>, truth: &Truth, seed: u64, number: u32) -> Option<TruthRun> {
    let is_it = |run: &&KeptTruthRun| run.truth == truth.name && run.seed == seed && run.number == number;
    kept.made().iter().find(is_it).map(|run| run.run.clone())
}

/// Returns which truth each run makes, and its number among the runs of this truth.
fn order(truths: usize, options: &Options) -> Vec<(usize, u32)> {
    let mut order: Vec<(usize, u32)> =
        (0..options.runs).flat_map(|number| (0..truths).map(move |truth| (truth, number))).collect();
    Random::new(options.seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_truth_has_all_its_runs_and_a_seed_its_own_order() {
        let options = |seed| Options {
            runs: 20,
            only: None,
            minutes: None,
            seed,
            folder: PathBuf::new(),
            state: PathBuf::new(),
        };
        let one = order(12, &options(1));
        assert_eq!(one, order(12, &options(1)));
        assert_ne!(one, order(12, &options(2)));
        let mut runs = (0..12).flat_map(|truth| (0..20).map(move |number| (truth, number)));
        assert!(one.len() == 12 * 20 && runs.all(|run| one.contains(&run)));
    }
}
