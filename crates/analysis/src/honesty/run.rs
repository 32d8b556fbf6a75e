//! One whole run on simulated trials.

use std::collections::BTreeMap;

use landspeed_record::{Arm, Candidate, Cell, Figures, Settings};
use landspeed_units::{BitRate, BytesPerCpuSecond, Nanos};

use super::noise::{Kind, Noise};
use crate::{Action, BlockResult, Findings, Ladder, Pair, Rules};

/// What a candidate does to the figures of its trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worth {
    /// Factors on rate, bytes per CPU-second and idle round trip.
    pub factors: [f64; 3],
    /// Share of trials with a mishap.
    pub mishaps: f64,
    /// Further factors on the figures of those trials.
    pub mishap: [f64; 3],
}

impl Worth {
    /// A factor on the rate, and on the bytes that a second of processor time carries.
    pub fn of(factor: f64) -> Self {
        Worth { factors: [factor, factor, 1.0], mishaps: 0.0, mishap: [1.0; 3] }
    }
}

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Scene {
    /// How trials vary.
    pub kind: Kind,
    /// Deviation of the log ratio of a block's rate.
    pub deviation: f64,
    /// What candidates are worth, by knob; those not named nothing.
    pub worths: BTreeMap<String, Worth>,
    /// What is tried: see [`candidate`].
    pub candidates: Vec<Candidate>,
    /// The rules. Each block takes their `block_time`.
    pub rules: Rules,
}

/// How a run went.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What it found.
    pub findings: Findings,
    /// Blocks measured in all.
    pub blocks: u32,
    /// What was said.
    pub notes: Vec<String>,
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

impl Scene {
    /// Runs it; `seed` draws the noise and the orders.
    pub fn run(&self, seed: u64) -> Outcome {
        let rules = Rules { seed, fine: self.kind.trials == 8, ..self.rules.clone() };
        let took = rules.block_time;
        let mut ladder = Ladder::new(Cell::default(), self.candidates.clone(), rules);
        let mut noise = Noise::new(self.kind, self.deviation, seed);
        let (mut used, mut blocks, mut notes) = (Nanos(0), 0, Vec::new());
        loop {
            match ladder.next(used) {
                Action::Measure(pair) => {
                    used += took;
                    blocks += 1;
                    let figures = self.measure(&pair, &mut noise);
                    let Pair { step, candidate_first, .. } = *pair;
                    ladder.observe(BlockResult { step, figures, candidate_first, took, remarks: Vec::new() });
                }
                Action::Note(text) => notes.push(text),
                Action::Decided(_) | Action::Watch(_) => {}
                Action::Finished(findings) => return Outcome { findings: *findings, blocks, notes },
            }
        }
    }

    /// The trials of a pair.
    fn measure(&self, pair: &Pair, noise: &mut Noise) -> Vec<Figures> {
        let arms = pair.arms();
        let truth = [&pair.incumbent, &pair.candidate].map(|cell| figures(self.factors(cell)));
        let of = |arm: Arm| if arm == Arm::Candidate { truth[1] } else { truth[0] };
        let mut trials = noise.block(&arms, of);
        for (arm, trial) in arms.iter().zip(&mut trials) {
            for worth in self.worths_in(pair.cell(*arm)).filter(|worth| worth.mishaps > 0.0) {
                if noise.happens(worth.mishaps) {
                    multiply(trial, worth.mishap);
                }
            }
        }
        trials
    }

    fn worths_in<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a Worth> {
        cell.flow.keys().filter_map(|knob| self.worths.get(knob))
    }

    fn factors(&self, cell: &Cell) -> [f64; 3] {
        let join = |all: [f64; 3], worth: &Worth| [0, 1, 2].map(|i| all[i] * worth.factors[i]);
        self.worths_in(cell).fold([1.0; 3], join)
    }
}

fn figures(factors: [f64; 3]) -> Figures {
    let mut figures = Figures {
        rate_bps: BitRate(4e9),
        bytes_per_cpu_s: BytesPerCpuSecond(3e8),
        latency_ns: Nanos(50_000),
        ..Figures::default()
    };
    multiply(&mut figures, factors);
    figures
}

fn multiply(figures: &mut Figures, [rate, cost, latency]: [f64; 3]) {
    figures.rate_bps.0 *= rate;
    figures.bytes_per_cpu_s.0 *= cost;
    figures.latency_ns = Nanos((figures.latency_ns.0 as f64 * latency).round() as u64);
}
