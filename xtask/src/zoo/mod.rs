//! `make zoo`: does `landspeed explain` name what was done to a path? Every fault at two strengths and
//! at strengths drawn by lot, pairs of faults, and paths on which nothing is wrong.
//!
//! `explain` is run as a user runs it, told nothing but the two hosts and the flow's address.

mod run;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};
use landspeed_faults::{FAULTS, Fault};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use signal_hook::consts::{SIGINT, SIGTERM};

use run::{Case, Judged, judge};

/// Paths without a fault.
const CLEAN: usize = 20;
/// Pairs of faults.
const PAIRS: usize = 16;

/// What to run.
#[derive(Default)]
struct Options {
    /// Only faults whose name contains this.
    only: Option<String>,
    /// Draws strengths and pairs.
    seed: u64,
}

impl Options {
    fn parse(words: &[String]) -> Result<Options> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--only" => options.only = Some(value.clone()),
                "--seed" => options.seed = value.parse().context("--seed")?,
                _ => bail!("usage: zoo [--only PART-OF-A-NAME] [--seed N]"),
            }
        }
        Ok(options)
    }
}

/// Runs the study and prints its tables.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let options = Options::parse(words)?;
    // Of the same profile as this program.
    let landspeed = std::env::current_exe()?.with_file_name("landspeed");
    ensure!(landspeed.exists(), "build first: cargo build --release --bin landspeed");
    let cases = cases(&options);
    let mut judged = Vec::new();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    for (number, case) in cases.iter().enumerate() {
        // The case at hand takes its stage down before this ends.
        ensure!(!stop.load(Ordering::Relaxed), "stopped after {number} of {} cases", cases.len());
        let found = judge(&landspeed, case).with_context(|| case.name())?;
        eprintln!("{}/{} {}", number + 1, cases.len(), found.line());
        judged.push(found);
    }
    println!("{}", table::page(&judged, options.seed));
    let failed = table::broken(&judged);
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(())
}

fn cases(options: &Options) -> Vec<Case> {
    let mut dice = ChaCha8Rng::seed_from_u64(options.seed);
    let wanted = |fault: &&Fault| options.only.as_ref().is_none_or(|only| fault.name.contains(only.as_str()));
    let faults: Vec<&'static Fault> = FAULTS.iter().filter(wanted).collect();
    let one = |fault: &'static Fault, strength| Case { faults: vec![fault], strength };
    let mut cases: Vec<Case> = faults.iter().flat_map(|&f| [one(f, 0.0), one(f, 1.0)]).collect();
    cases.extend(faults.iter().map(|&fault| one(fault, dice.random_range(0.0..1.0))));
    if options.only.is_none() {
        cases.extend(pairs(&faults, &mut dice));
        cases.extend((0..CLEAN).map(|_| Case { faults: Vec::new(), strength: 0.0 }));
    }
    cases
}

/// Pairs by lot of faults that can be had on one flow, each with one that differs in kind.
fn pairs(faults: &[&'static Fault], dice: &mut ChaCha8Rng) -> Vec<Case> {
    let mut all: Vec<Case> = Vec::new();
    for (at, &first) in faults.iter().enumerate() {
        for &second in &faults[at + 1..] {
            if first.needs.goes_with(second.needs) {
                all.push(Case { faults: vec![first, second], strength: dice.random_range(0.3..1.0) });
            }
        }
    }
    all.shuffle(dice);
    all.truncate(PAIRS);
    all
}

/// How often something held, of how many.
fn held<'a>(judged: impl Iterator<Item = &'a Judged>, test: impl Fn(&Judged) -> bool) -> (usize, usize) {
    judged.fold((0, 0), |(held, all), case| (held + usize::from(test(case)), all + 1))
}
