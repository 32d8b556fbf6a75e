//! `make zoo`: does `landspeed explain` name what was done to a path? Every fault at two strengths and
//! at strengths drawn by lot, pairs of faults, and paths on which nothing is wrong.
//!
//! `explain` is run as a user runs it, told nothing but the two hosts and the flow's address.

mod run;
mod table;

use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_faults::{FAULTS, Fault, Scenario, fault};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::built::landspeed;
use crate::stop;
use run::{Case, Judged, judge};

/// Paths without a fault.
const CLEAN: usize = 20;
/// Pairs drawn by lot.
const DRAWN: usize = 16;
/// Pairs of which each costs something while the other one stands: of a black hole and a busy core only
/// one holds the flow back, and nobody can see the other. Chosen by what TCP and a processor do, before
/// any was tried.
const PAIRS: [[(&str, f64); 2]; 16] = [
    // Both take from the congestion window.
    [("random-loss", 0.2), ("reordering", 0.7)],
    [("burst-loss", 0.2), ("reordering", 0.7)],
    // The window that losses leave (Mathis et al. 1997) and the one that buffers leave are alike.
    [("random-loss", 0.3), ("receive-buffer", 0.3)],
    [("random-loss", 0.3), ("send-buffer", 0.3)],
    [("random-loss", 0.5), ("window-below-bdp", 0.5)],
    [("reordering", 0.8), ("receive-buffer", 0.3)],
    [("reordering", 0.8), ("send-buffer", 0.3)],
    // The rate that losses leave and the one that is written are alike.
    [("slow-writer", 0.5), ("random-loss", 0.3)],
    // Both cost processor time.
    [("offloads-off", 0.3), ("competing-load", 0.3)],
    [("software-checksum", 0.3), ("competing-load", 0.3)],
    [("tiny-writes", 0.5), ("offloads-off", 0.3)],
    [("tiny-writes", 0.5), ("software-checksum", 0.3)],
    [("fragmentation", 0.5), ("competing-load", 0.3)],
    [("udp-receive-buffer", 0.5), ("competing-load", 0.3)],
    // Losses beside what each packet costs.
    [("qdisc-drops", 0.5), ("offloads-off", 0.3)],
    // Each request waits for an acknowledgement, and some for a retransmission.
    [("nagle-delayed-ack", 0.5), ("random-loss", 1.0)],
];

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only faults whose name contains this; "pairs" is the pairs, "lot" those drawn by lot, "clean" the paths
    /// without a fault.
    #[arg(long, value_name = "PART-OF-A-NAME")]
    only: Option<String>,
    /// Draws strengths.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Runs the study and prints its tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let cases = cases(options)?;
    let mut judged = Vec::new();
    let stop = stop::on(&[SIGINT, SIGTERM])?;
    for (number, case) in cases.iter().enumerate() {
        // The case at hand takes its stage down before this ends.
        ensure!(!stop.load(Ordering::Relaxed), "stopped after {number} of {} cases", cases.len());
        match judge(&landspeed, case).with_context(|| case.name()) {
            Ok(found) => {
                eprintln!("{}/{} {}", number + 1, cases.len(), found.line());
                judged.push(found);
            }
            // Chance draws pairs that no traffic gets through.
            Err(error) if case.drawn => eprintln!("{}/{} not to be had: {error:#}", number + 1, cases.len()),
            Err(error) => return Err(error),
        }
    }
    println!("{}", table::page(&judged, options.seed));
    let failed = table::broken(&judged);
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(())
}

fn cases(options: &Options) -> Result<Vec<Case>> {
    let mut dice = ChaCha8Rng::seed_from_u64(options.seed);
    let wanted = |fault: &&Fault| options.only.as_ref().is_none_or(|only| fault.name.contains(only.as_str()));
    let faults: Vec<&'static Fault> = FAULTS.iter().filter(wanted).collect();
    let one = |fault: &'static Fault, strength| Case { faults: vec![(fault, strength)], drawn: false };
    let mut cases: Vec<Case> = faults.iter().flat_map(|&f| [one(f, 0.0), one(f, 1.0)]).collect();
    cases.extend(faults.iter().map(|&fault| one(fault, dice.random_range(0.0..1.0))));
    let also = |what| options.only.as_deref().is_none_or(|only| only == what);
    if also("pairs") {
        cases.extend(pairs()?);
    }
    if also("lot") {
        cases.extend((0..DRAWN).map(|_| draw(&mut dice)));
    }
    if also("clean") {
        cases.extend((0..CLEAN).map(|_| Case { faults: Vec::new(), drawn: false }));
    }
    Ok(cases)
}

/// The pairs that `PAIRS` names.
fn pairs() -> Result<Vec<Case>> {
    let known = |(name, strength): (&str, f64)| -> Result<(&'static Fault, f64)> {
        Ok((fault(name).with_context(|| format!("no fault is called {name}"))?, strength))
    };
    let case = |[one, other]: &[(&str, f64); 2]| {
        Ok(Case { faults: vec![known(*one)?, known(*other)?], drawn: false })
    };
    PAIRS.iter().map(case).collect()
}

/// Two faults that can be had at once, whichever they are.
fn draw(dice: &mut ChaCha8Rng) -> Case {
    loop {
        let mut one = || (&FAULTS[dice.random_range(0..FAULTS.len())], dice.random_range(0.0..1.0));
        let faults = vec![one(), one()];
        let named: Vec<(&str, f64)> =
            faults.iter().map(|(fault, strength)| (fault.name, *strength)).collect();
        if faults[0].0.cause != faults[1].0.cause && Scenario::with(&named).is_ok() {
            return Case { faults, drawn: true };
        }
    }
}

/// How often something held, of how many.
fn held<'a>(judged: impl Iterator<Item = &'a Judged>, test: impl Fn(&Judged) -> bool) -> (usize, usize) {
    judged.fold((0, 0), |(held, all), case| (held + usize::from(test(case)), all + 1))
}
