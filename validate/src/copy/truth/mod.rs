//! `make copy-truth`: bottlenecks made on purpose, one at a time, in an order that is drawn anew for each seed. Is what
//! `landspeed copy` names first what was made?
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
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::landspeed::landspeed;
use crate::stop;
use places::Places;
use score::{TruthRun, TruthScore, report};
use truths::{TRUTHS, Truth};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs of each truth
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Run only the truths whose name contains this
    #[arg(long, value_name = "PART-OF-A-NAME")]
    only: Option<String>,
    /// Draws the order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder in which all is copied, in memory
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    let is_asked = |truth: &&Truth| options.only.as_deref().is_none_or(|only| truth.name.contains(only));
    let asked: Vec<&Truth> = TRUTHS.iter().filter(is_asked).collect();
    ensure!(!asked.is_empty(), "no truth has such a name");
    let places = Places::new(&options.folder, &landspeed()?)?;
    let is_possible = |truth: &&&Truth| places.missing(truth.made).is_none();
    let can: Vec<&Truth> = asked.iter().filter(is_possible).copied().collect();
    let mut scores: Vec<TruthScore> =
        can.iter().map(|truth| TruthScore { truth, runs: Vec::new() }).collect();
    can.iter().try_for_each(|truth| places.prepare(truth.content))?;
    for (number, which) in order(can.len(), options).into_iter().enumerate() {
        // The current run takes away what it has made before this ends.
        ensure!(!stop.load(Ordering::Relaxed), "stopped after {number} runs");
        let truth = can[which];
        let named = places.copy_with(truth).unwrap_or_else(|error| TruthRun::Failed(format!("{error:#}")));
        eprintln!("{} {}: {}", number + 1, truth.name, named.words());
        scores[which].runs.push(named);
    }
    println!("Seed {}. {}\n", options.seed, places.disk_words());
    for truth in asked {
        if let Some(why) = places.missing(truth.made) {
            println!("LEFT OUT, {why}: {}\n", truth.name);
        }
    }
    ensure!(!can.is_empty(), "none of it can be made here");
    report(&scores)
}

/// Returns which truth each run makes.
fn order(truths: usize, options: &Options) -> Vec<usize> {
    let mut order: Vec<usize> = (0..options.runs).flat_map(|_| 0..truths).collect();
    Random::new(options.seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_truth_has_all_its_runs_and_a_seed_its_own_order() {
        let options = |seed| Options { runs: 20, only: None, seed, folder: PathBuf::new() };
        let one = order(12, &options(1));
        assert_eq!(one, order(12, &options(1)));
        assert_ne!(one, order(12, &options(2)));
        let count = |truth| one.iter().filter(|run| **run == truth).count();
        assert!((0..12).all(|truth| count(truth) == 20));
    }
}
