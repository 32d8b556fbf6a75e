//! One simulated run of `tune`: candidates with known effects, and the ladder that decides about them.

use std::collections::BTreeMap;

use landspeed_analysis::{Ladder, LadderAction, LadderBlock, LadderFindings, LadderRules};
use landspeed_record::units::{BitRate, BytesPerCpuSecond, Nanos};
use landspeed_record::{Arm, Candidate, Cell, Settings, TrialFigures};

use super::noise::{NoiseKind, SimulatedNoise};

/// The share of a candidate's trials that have a mishap, if the candidate has mishaps.
const RARE: f64 = 0.06;
const CANDIDATES: u32 = 30;

/// A useful setting, with the gain that it offers at the lab's start after SC'03 by hand measurements.
pub(super) struct UsefulKnob {
    pub(super) knob: &'static str,
    factor: f64,
    /// The position of the setting in the order of trying.
    place: u32,
}

pub(super) const USEFUL: [UsefulKnob; 6] = [
    UsefulKnob { knob: "checksum", factor: 1.4, place: 0 },
    UsefulKnob { knob: "segmentation", factor: 2.8, place: 2 },
    UsefulKnob { knob: "write-size", factor: 1.25, place: 4 },
    UsefulKnob { knob: "placement", factor: 1.3, place: 6 },
    UsefulKnob { knob: "window", factor: 1.4, place: 9 },
    UsefulKnob { knob: "small", factor: 1.06, place: 14 },
];

/// The effect of a candidate: factors on the rate, the bytes per CPU-second and the idle round trip of its trials.
#[derive(Debug, Clone, Copy)]
pub(super) struct CandidateEffect {
    pub(super) factors: [f64; 3],
    /// Further factors on the figures of rare trials, whose share is [`RARE`]; `None` if there are no such trials.
    pub(super) mishap: Option<[f64; 3]>,
}

impl CandidateEffect {
    /// Returns the effect that multiplies the rate and the bytes per CPU-second by `factor`.
    pub(super) fn of(factor: f64) -> Self {
        CandidateEffect { factors: [factor, factor, 1.0], mishap: None }
    }
}

/// The parameters of a run to simulate.
pub(super) struct SimulatedRun {
    kind: NoiseKind,
    /// Deviation of the log ratio of a block's rate.
    deviation: f64,
    /// The effects by knob. Knobs that are missing have none.
    effects: BTreeMap<String, CandidateEffect>,
    candidates: Vec<Candidate>,
    rules: LadderRules,
}

impl SimulatedRun {
    /// Returns a run of thirty useless candidates, each with the effect `effect`, and two placebos. An effect of 1 is
    /// none, and 1.0199 is just too small to be useful.
    pub(super) fn useless(kind: NoiseKind, deviation: f64, effect: f64) -> SimulatedRun {
        let knob = |i: u32| format!("useless-{i:02}");
        SimulatedRun {
            kind,
            deviation,
            effects: (0..CANDIDATES).map(|i| (knob(i), CandidateEffect::of(effect))).collect(),
            candidates: (0..CANDIDATES).map(|i| candidate(&knob(i), i)).collect(),
            rules: LadderRules { placebos: placebos(), ..LadderRules::default() },
        }
    }

    /// Returns a run of one candidate. Its step has the blocks and the error of one test in a plan of twelve.
    pub(super) fn single(kind: NoiseKind, deviation: f64, effect: CandidateEffect) -> SimulatedRun {
        SimulatedRun {
            kind,
            deviation,
            effects: BTreeMap::from([("knob".to_owned(), effect)]),
            candidates: vec![candidate("knob", 0)],
            rules: LadderRules { planned: 12, max_blocks: 11, ..LadderRules::default() },
        }
    }

    /// Returns a run of thirty candidates: the [`USEFUL`] ones, and useless ones without an effect.
    pub(super) fn poor_start(kind: NoiseKind, deviation: f64, budget: Nanos) -> SimulatedRun {
        let useful = USEFUL.iter().map(|useful| candidate(useful.knob, 10 * useful.place));
        let others = 0..CANDIDATES - USEFUL.len() as u32;
        let useless = others.map(|i| candidate(&format!("useless-{i:02}"), 10 * i + 5));
        let effect = |useful: &UsefulKnob| (useful.knob.to_owned(), CandidateEffect::of(useful.factor));
        SimulatedRun {
            kind,
            deviation,
            effects: USEFUL.iter().map(effect).collect(),
            candidates: useful.chain(useless).collect(),
            rules: LadderRules { placebos: placebos(), budget, ..LadderRules::default() },
        }
    }

    /// Simulates the run and returns its findings. The noise and the orders of trials depend on `seed`.
    pub(super) fn findings(&self, seed: u64) -> LadderFindings {
        let rules = LadderRules { seed, fine: self.kind.trials == 8, ..self.rules.clone() };
        let took = rules.block_time;
        let mut ladder = Ladder::new(Cell::default(), self.candidates.clone(), rules);
        let mut noise = SimulatedNoise::new(self.kind, self.deviation, seed);
        let mut used = Nanos(0);
        loop {
            match ladder.next(used) {
                LadderAction::Measure(block) => {
                    used += took;
                    let figures = self.measure(&block, &mut noise);
                    ladder.observe(block.result(figures, took));
                }
                LadderAction::Note(_) | LadderAction::Decided(_) | LadderAction::Watch(_) => {}
                LadderAction::Finished(findings) => return *findings,
            }
        }
    }

    /// Simulates the trials of a block.
    fn measure(&self, block: &LadderBlock, noise: &mut SimulatedNoise) -> Vec<TrialFigures> {
        let arms = block.arms();
        let truth = |arm: Arm| {
            let mut figures = TrialFigures {
                rate_bps: BitRate(4e9),
                bytes_per_cpu_s: BytesPerCpuSecond(3e8),
                latency_ns: Nanos(50_000),
                ..TrialFigures::default()
            };
            multiply(&mut figures, self.factors(block.cell(arm)));
            figures
        };
        let mut trials = noise.block(&arms, truth);
        for (arm, trial) in arms.iter().zip(&mut trials) {
            for mishap in self.effects_in(block.cell(*arm)).filter_map(|effect| effect.mishap) {
                if noise.happens(RARE) {
                    multiply(trial, mishap);
                }
            }
        }
        trials
    }

    fn effects_in<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a CandidateEffect> {
        cell.flow.keys().filter_map(|knob| self.effects.get(knob))
    }

    fn factors(&self, cell: &Cell) -> [f64; 3] {
        let join = |all: [f64; 3], effect: &CandidateEffect| [0, 1, 2].map(|i| all[i] * effect.factors[i]);
        self.effects_in(cell).fold([1.0; 3], join)
    }
}

fn multiply(figures: &mut TrialFigures, [rate, cost, latency]: [f64; 3]) {
    figures.rate_bps.0 *= rate;
    figures.bytes_per_cpu_s.0 *= cost;
    figures.latency_ns = Nanos((figures.latency_ns.0 as f64 * latency).round() as u64);
}

/// Returns a candidate that sets the flow's `knob` to "on".
fn candidate(knob: &str, rank: u32) -> Candidate {
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

fn placebos() -> Vec<Candidate> {
    ["placebo-early", "placebo-late"].map(|name| candidate(name, 0)).into()
}
