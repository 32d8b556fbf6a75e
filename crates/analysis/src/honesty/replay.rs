//! One whole run on replayed noise.

use std::collections::BTreeMap;

use landspeed_record::{Candidate, Cell, Settings};
use landspeed_units::Nanos;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::noise::{Draw, multiply};
use super::{Noise, NoiseBlock};
use crate::{Action, BlockResult, Findings, Ladder, Metric, Pair, Rules, arms};

/// What settings of the flow are worth: (knob, value) to the factor on rate and cost. What is not
/// named is worth nothing.
pub type Effects = BTreeMap<(String, String), f64>;

/// A run to replay.
#[derive(Debug, Clone)]
pub struct Replay<'a> {
    /// Where the trials come from.
    pub noise: &'a Noise,
    /// What the candidates are really worth.
    pub effects: &'a Effects,
    /// What is tried; see [`candidate`].
    pub candidates: Vec<Candidate>,
    /// The rules; their `block_time` is what every block takes.
    pub rules: Rules,
}

/// How a replayed run went.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What it found.
    pub findings: Findings,
    /// Ids of all steps that were kept when decided, placebos and later dropped ones included.
    pub kept_when_decided: Vec<String>,
    /// Blocks measured in all.
    pub blocks: u32,
    /// Time used.
    pub used: Nanos,
}

/// A candidate that sets the flow's `knob` to "on".
pub fn candidate(knob: &str, rank: u32) -> Candidate {
    let flow = Settings::from([(knob.to_owned(), "on".to_owned())]);
    let change = Cell { flow, ..Cell::default() };
    Candidate {
        knob: knob.into(),
        value: "on".into(),
        from: "off".into(),
        change,
        rank,
        ..Candidate::default()
    }
}

impl Replay<'_> {
    /// Runs it; `seed` draws the noise, and with the rules' seed the orders.
    pub fn run(&self, seed: u64) -> Outcome {
        let rules = Rules { seed: self.rules.seed ^ seed, ..self.rules.clone() };
        let mut ladder = Ladder::new(Cell::default(), self.candidates.clone(), rules);
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = Draw::new(self.noise);
        let (mut used, mut blocks, mut kept_when_decided) = (Nanos(0), 0, Vec::new());
        loop {
            match ladder.next(used) {
                Action::Measure(pair) => {
                    used += self.rules.block_time;
                    blocks += 1;
                    let figures = self.measure(&pair, draw.block(&mut dice));
                    let Pair { step, candidate_first, .. } = *pair;
                    ladder.observe(BlockResult {
                        step,
                        figures,
                        candidate_first,
                        took: self.rules.block_time,
                        remarks: Vec::new(),
                    });
                }
                Action::Decided(line)
                    if line.summary.kept && !kept_when_decided.contains(&line.summary.id) =>
                {
                    kept_when_decided.push(line.summary.id.clone());
                }
                Action::Decided(_) | Action::Note(_) | Action::Watch(_) => {}
                Action::Finished(findings) => {
                    return Outcome { findings: *findings, kept_when_decided, blocks, used };
                }
            }
        }
    }

    /// The trials that this pair would have given.
    fn measure(&self, pair: &Pair, mut noise: NoiseBlock) -> NoiseBlock {
        for (arm, figures) in arms(noise.len(), pair.candidate_first).into_iter().zip(&mut noise) {
            let worth = self.worth(pair.cell(arm));
            multiply(figures, Metric::Rate, worth);
            multiply(figures, Metric::Cost, worth);
        }
        noise
    }

    fn worth(&self, cell: &Cell) -> f64 {
        let named = |(knob, value): (&String, &String)| self.effects.get(&(knob.clone(), value.clone()));
        cell.flow.iter().filter_map(named).product()
    }
}
