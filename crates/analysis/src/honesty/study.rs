//! Many runs: false keeps, power and guards, and what is found from a poor start.

use std::collections::BTreeMap;

use landspeed_record::{Answer, StepSummary};
use landspeed_units::Nanos;

use super::Kind;
use super::run::{Outcome, Scene, Worth, candidate};
use crate::Rules;

/// Counts over simulated runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Whole runs, or steps where each run is one.
    pub runs: u32,
    /// Runs in which something was kept that was asked about, dropped in the end or not.
    pub kept: u32,
    /// Runs in which something was kept and confirmed that was asked about.
    pub confirmed: u32,
    /// Runs that a kept placebo voids.
    pub void: u32,
    /// Runs that say of themselves that their trials look like a kind of noise under which nothing is promised.
    pub warned: u32,
    /// Blocks over all runs.
    pub blocks: u64,
}

impl std::ops::Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            runs: self.runs + other.runs,
            kept: self.kept + other.kept,
            confirmed: self.confirmed + other.confirmed,
            void: self.void + other.void,
            warned: self.warned + other.warned,
            blocks: self.blocks + other.blocks,
        }
    }
}

impl Counts {
    fn of(outcome: &Outcome, wanted: impl Fn(&StepSummary) -> bool) -> Counts {
        let steps = || outcome.findings.steps.iter().filter(|step| wanted(step));
        Counts {
            runs: 1,
            kept: u32::from(steps().any(|step| step.answer == Answer::Helps)),
            confirmed: u32::from(steps().any(|step| step.kept && step.confirmed == Some(true))),
            void: u32::from(outcome.findings.void.is_some()),
            warned: u32::from(!outcome.findings.doubts.is_empty()),
            blocks: u64::from(outcome.blocks),
        }
    }
}

/// Useless candidates of a whole run.
pub const USELESS: u32 = 30;

/// Whole runs of thirty candidates that are worth `effect` each (1 is nothing, 1.0199 just not useful), and two
/// placebos: how many runs keep and confirm one?
pub fn false_keeps(kind: Kind, deviation: f64, effect: f64, runs: u32) -> Counts {
    let knob = |i: u32| format!("useless-{i:02}");
    let placebos = vec![candidate("placebo-early", 0), candidate("placebo-late", 0)];
    let scene = Scene {
        kind,
        deviation,
        worths: (0..USELESS).map(|i| (knob(i), Worth::of(effect))).collect(),
        candidates: (0..USELESS).map(|i| candidate(&knob(i), i)).collect(),
        rules: Rules { placebos, ..Rules::default() },
    };
    over(runs, |seed| Counts::of(&scene.run(seed), |step| !step.placebo))
}

/// One candidate of that worth in a step with the usual share of the error: how often is it kept, and how often confirmed?
pub fn single(kind: Kind, deviation: f64, worth: Worth, runs: u32) -> Counts {
    // The share of the error and the blocks of one of twelve tests.
    let rules = Rules { planned: 12, max_blocks: 11, ..Rules::default() };
    let scene = Scene {
        kind,
        deviation,
        worths: BTreeMap::from([("knob".to_owned(), worth)]),
        candidates: vec![candidate("knob", 0)],
        rules,
    };
    over(runs, |seed| Counts::of(&scene.run(seed), |_| true))
}

/// What whole runs make of useful candidates among useless ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Whole runs.
    pub runs: u32,
    /// Steps kept in the end, over all runs.
    pub kept: u32,
    /// Those of them that are confirmed.
    pub confirmed: u32,
    /// Useful candidates in the final settings.
    pub useful: u32,
    /// Candidates that were measured.
    pub tried: u32,
}

/// What the lab's start after SC'03 has to offer, by hand measurements: factors, and places in the order of trying.
pub const USEFUL: [(&str, f64, u32); 6] = [
    ("checksum", 1.4, 0),
    ("segmentation", 2.8, 2),
    ("write-size", 1.25, 4),
    ("placement", 1.3, 6),
    ("window", 1.4, 9),
    ("small", 1.06, 14),
];

/// Whole runs of [`USEFUL`] and useless candidates, thirty in all, in `budget`.
pub fn from_poor_start(kind: Kind, deviation: f64, budget: Nanos, runs: u32) -> Found {
    let placebos = vec![candidate("placebo-early", 0), candidate("placebo-late", 0)];
    let useful = USEFUL.iter().map(|(knob, _, place)| candidate(knob, 10 * place));
    let useless =
        (0..USELESS - USEFUL.len() as u32).map(|i| candidate(&format!("useless-{i:02}"), 10 * i + 5));
    let scene = Scene {
        kind,
        deviation,
        worths: USEFUL.iter().map(|(knob, worth, _)| ((*knob).to_owned(), Worth::of(*worth))).collect(),
        candidates: useful.chain(useless).collect(),
        rules: Rules { placebos, budget, ..Rules::default() },
    };
    let one = |seed| {
        let findings = scene.run(seed).findings;
        let count =
            |which: &dyn Fn(&StepSummary) -> bool| findings.steps.iter().filter(|s| which(s)).count() as u32;
        let in_the_end = |(knob, ..): &&(&str, f64, u32)| findings.final_cell.flow.contains_key(*knob);
        Found {
            runs: 1,
            kept: count(&|step| step.kept),
            confirmed: count(&|step| step.kept && step.confirmed == Some(true)),
            useful: USEFUL.iter().filter(in_the_end).count() as u32,
            tried: count(&|step| step.blocks > 0),
        }
    };
    over(runs, one)
}

impl std::ops::Add for Found {
    type Output = Found;

    fn add(self, other: Found) -> Found {
        Found {
            runs: self.runs + other.runs,
            kept: self.kept + other.kept,
            confirmed: self.confirmed + other.confirmed,
            useful: self.useful + other.useful,
            tried: self.tried + other.tried,
        }
    }
}

/// The sum of what runs of different seeds give, on all processors.
fn over<T: Default + Send + std::ops::Add<Output = T>>(runs: u32, one: impl Fn(u64) -> T + Sync) -> T {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let part = |thread: u32| {
        let own = (0..runs).filter(|run| run % threads == thread);
        own.map(|run| one(u64::from(run))).fold(T::default(), T::add)
    };
    std::thread::scope(|scope| {
        let part = &part;
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        workers.into_iter().map(|w| w.join().expect("a worker ends")).fold(T::default(), T::add)
    })
}
