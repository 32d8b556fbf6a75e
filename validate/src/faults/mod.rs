//! `make faults`: checks that `landspeed explain` names what was done to a path. It runs every fault at two strengths
//! and at a random one, random pairs of faults, and eight kinds of paths without faults.
//!
//! The weakest and the strongest fault are the cases on which the verdict's thresholds were chosen. Drawn strengths are
//! those that judge them; take a seed that has not been judged before.
//!
//! `explain` is run as a user runs it, and gets only the two hosts and the flow's address. A fault that it does not
//! name is an error. A fault that it names although it was not made is counted.

mod clean;
mod confusion;
mod draw;
pub(crate) mod remedies;
mod run;
mod score;

use std::sync::atomic::Ordering;

use anyhow::{Result, ensure};
use clap::Args;
use landspeed_lab::faults::{FAULTS, Fault};
use landspeed_stats::Random;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::landspeed::landspeed;
use crate::stop;
use clean::CLEAN;
use draw::DrawnFault;
pub(crate) use run::lab;
use run::{CasePurpose, FaultCase, judge};

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Run only the faults whose name contains this. "pairs" runs only the pairs, "clean" only the paths without a
    /// fault.
    #[arg(long, value_name = "PART-OF-A-NAME")]
    only: Option<String>,
    /// Draws strengths and pairs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Random pairs.
    #[arg(long, default_value_t = 32)]
    pairs: usize,
    /// Runs of each kind of path without a fault.
    #[arg(long, default_value_t = 5)]
    clean: usize,
    /// Each fault only at its random strength, not at the weakest and strongest too.
    #[arg(long)]
    short: bool,
}

/// Runs the study, and prints its tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let cases = cases(options);
    let mut judged = Vec::new();
    let stop = stop::on(&[SIGINT, SIGTERM])?;
    for (number, case) in cases.into_iter().enumerate() {
        // The current case removes its lab before this ends.
        ensure!(!stop.load(Ordering::Relaxed), "stopped after {number} cases");
        let found = judge(&landspeed, case);
        eprintln!("{} {}", number + 1, found.line());
        judged.push(found);
    }
    println!("Seed {}.\n", options.seed);
    score::print(&judged);
    confusion::print(&judged);
    let failed = score::broken(&judged);
    ensure!(failed.is_empty(), "below the target: {}", failed.join("; "));
    Ok(())
}

/// Returns the faults whose name contains `only`; all if it is `None`.
fn named(only: Option<&str>) -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().filter(move |fault| only.is_none_or(|only| fault.name.contains(only)))
}

fn cases(options: &Options) -> Vec<FaultCase> {
    let mut random = Random::new(options.seed);
    let faults: Vec<&'static Fault> = named(options.only.as_deref()).collect();
    let strengths: &[f64] = if options.short { &[] } else { &[0.0, 1.0] };
    let one = |purpose, fault, strength| FaultCase::of(purpose, &[DrawnFault { fault, strength }]);
    let at_strengths = |fault: &&'static Fault| {
        strengths.iter().map(|s| one(CasePurpose::Chosen, *fault, *s)).collect::<Vec<_>>()
    };
    let mut cases: Vec<FaultCase> = faults.iter().flat_map(at_strengths).collect();
    cases.extend(faults.iter().map(|fault| one(CasePurpose::Judged, *fault, random.uniform())));
    let also = |what| options.only.as_deref().is_none_or(|only| only == what);
    if also("pairs") {
        cases
            .extend((0..options.pairs).map(|_| FaultCase::of(CasePurpose::Judged, &draw::pair(&mut random))));
    }
    if also("clean") {
        cases.extend((0..options.clean).flat_map(|_| CLEAN.iter().map(FaultCase::clean)));
    }
    cases
}
