//! Many runs: false keeps and power.

use landspeed_record::Answer;
use serde::Serialize;

use super::replay::candidate;
use super::{Effects, Noise, Replay};
use crate::{Metric, Rules};

/// How often do runs keep something useless?
#[derive(Debug, Clone)]
pub struct FalseKeepStudy {
    /// Whole runs to replay.
    pub runs: u32,
    /// Useless candidates in each.
    pub useless: u32,
    /// Effects of useful candidates that are mixed in, as ratios: their keeps recycle the error.
    pub useful: Vec<f64>,
    /// The rules; two placebos are added.
    pub rules: Rules,
    /// Seed of the study.
    pub seed: u64,
}

/// What a study of false keeps found.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct FalseKeeps {
    /// Whole runs.
    pub runs: u32,
    /// Runs that kept anything useless when it was decided, placebos included, dropped in the end or not.
    pub runs_with_false_keep: u32,
    /// Useless steps that were decided on trials, over all runs.
    pub tests: u64,
    /// Of those, kept when decided.
    pub false_keeps: u64,
    /// Useful steps over all runs, tried or not.
    pub useful: u64,
    /// Of those, kept in the end.
    pub useful_kept: u64,
}

impl FalseKeeps {
    /// The share of runs with a false keep.
    pub fn share(&self) -> f64 {
        f64::from(self.runs_with_false_keep) / f64::from(self.runs.max(1))
    }
}

/// Replays whole runs on `noise`.
pub fn false_keep_study(noise: &Noise, study: &FalseKeepStudy) -> FalseKeeps {
    let useful = |i: usize| format!("useful-{i}");
    let ranked = study.useful.iter().enumerate().map(|(i, _)| candidate(&useful(i), 20 * i as u32));
    let useless = (0..study.useless).map(|i| candidate(&format!("useless-{i}"), 10 * i + 5));
    let effects: Effects =
        study.useful.iter().enumerate().map(|(i, effect)| ((useful(i), "on".into()), *effect)).collect();
    let placebos = vec![candidate("placebo-early", 0), candidate("placebo-late", 0)];
    let rules = Rules { placebos, ..study.rules.clone() };
    let replay = Replay { noise, effects: &effects, candidates: ranked.chain(useless).collect(), rules };
    let mut found = FalseKeeps { runs: study.runs, ..FalseKeeps::default() };
    for run in 0..study.runs {
        let outcome = replay.run(study.seed.wrapping_add(u64::from(run)));
        let steps = &outcome.findings.steps;
        let wrong = outcome.kept_when_decided.iter().filter(|id| !id.contains("useful-")).count() as u64;
        found.runs_with_false_keep += u32::from(wrong > 0);
        found.false_keeps += wrong;
        found.tests += steps.iter().filter(|s| s.blocks > 0 && !s.knob.starts_with("useful-")).count() as u64;
        found.useful += study.useful.len() as u64;
        found.useful_kept += steps.iter().filter(|s| s.kept && s.knob.starts_with("useful-")).count() as u64;
    }
    found
}

/// How often is an effect found?
#[derive(Debug, Clone)]
pub struct PowerStudy {
    /// Steps to replay.
    pub runs: u32,
    /// The effect as a ratio.
    pub effect: f64,
    /// The standard deviation of the per-block log ratio that the noise is scaled to.
    pub deviation: f64,
    /// The rules: `planned` and `max_blocks` say what the step may use.
    pub rules: Rules,
    /// Seed of the study.
    pub seed: u64,
}

/// What a study of power found.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Power {
    /// Steps replayed.
    pub runs: u32,
    /// Those whose change was kept.
    pub found: u32,
    /// Those kept within the rules' `max_blocks` (a guard may ask for more).
    pub found_in_time: u32,
    /// Blocks that a step took, on average.
    pub mean_blocks: f64,
}

impl Power {
    /// The share that was found within `max_blocks`.
    pub fn share(&self) -> f64 {
        f64::from(self.found_in_time) / f64::from(self.runs.max(1))
    }
}

/// Replays single steps on `noise`, scaled to the study's deviation in the primary figure.
pub fn power_study(noise: &Noise, study: &PowerStudy) -> Power {
    let primary: Metric = study.rules.goal.primary();
    let noise = noise.scaled(primary, study.deviation);
    let effects = Effects::from([(("knob".into(), "on".into()), study.effect)]);
    let candidates = vec![candidate("knob", 0)];
    let replay = Replay { noise: &noise, effects: &effects, candidates, rules: study.rules.clone() };
    let mut power = Power { runs: study.runs, ..Power::default() };
    let mut blocks = 0;
    for run in 0..study.runs {
        let outcome = replay.run(study.seed.wrapping_add(u64::from(run)));
        let Some(step) = outcome.findings.steps.first() else { continue };
        let found = step.answer == Answer::Helps;
        let in_time = study.rules.max_blocks == 0 || step.blocks <= study.rules.max_blocks;
        power.found += u32::from(found);
        power.found_in_time += u32::from(found && in_time);
        blocks += u64::from(step.blocks);
    }
    power.mean_blocks = blocks as f64 / f64::from(study.runs.max(1));
    power
}
