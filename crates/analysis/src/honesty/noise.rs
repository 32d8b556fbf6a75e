//! Kinds of noise, a row each.

use landspeed_record::{Arm, Figures};
use landspeed_units::{BitRate, BytesPerCpuSecond, Nanos};

use super::dice::Dice;

/// A kind of noise: what trials of equal settings look like.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// For people.
    pub name: &'static str,
    /// Trials of a block: eight, or four.
    pub trials: usize,
    /// Whether the method promises to bound false keeps under it.
    pub bounded: bool,
    /// Whether the method promises power under it.
    pub powered: bool,
    source: Source,
}

/// What draws a block's trials.
type Source = fn(&mut State, &[Arm], &mut Dice) -> Vec<Trial>;

/// A trial's deviations from its cell's figures.
#[derive(Debug, Clone, Copy, Default)]
struct Trial {
    /// Of ln(rate), ln(bytes per CPU-second) and ln(round trip), in units of the noise's deviation.
    units: [f64; 3],
    /// The same whatever the deviation asked for.
    fixed: [f64; 3],
    /// Share of processor time stolen.
    steal: f64,
}

/// What a source remembers from block to block.
#[derive(Debug, Default)]
struct State {
    level: [f64; 3],
    last: Option<Arm>,
    burst: u32,
    depth: f64,
    time: f64,
}

const fn row(name: &'static str, trials: usize, source: Source) -> Kind {
    Kind { name, trials, bounded: true, powered: false, source }
}

impl Kind {
    const fn powered(self) -> Kind {
        Kind { powered: true, ..self }
    }

    const fn unbounded(self) -> Kind {
        Kind { bounded: false, ..self }
    }
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    row("normal", 8, normal).powered(),
    row("normal, blocks of 4", 4, normal),
    row("heavy tails (Student, 3 degrees)", 8, heavy),
    row("heavy tails, blocks of 4", 4, heavy),
    row("drift blind to the arm", 8, drift),
    row("drift, blocks of 4", 4, drift),
    row("two rates, drawn by connection", 8, two_rates).powered(),
    row("two rates by connection, blocks of 4", 4, two_rates),
    row("two rates, drawn by arm and block", 8, two_rates_an_arm),
    row("two rates by arm, blocks of 4", 4, two_rates_an_arm),
    row("candidate twice as noisy", 8, unequal).powered(),
    row("candidate twice as noisy, blocks of 4", 4, unequal),
    row("cold start after a toggle, 20 %", 8, cold_start).powered(),
    row("cold start, blocks of 4", 4, cold_start),
    row("linear trend, 0.5 % a trial", 8, trend).powered(),
    row("stolen time blind to the arm", 8, stolen),
    row("bursts blind to the arm", 8, bursts),
    row("candidate's arm disturbed, memory 2 blocks", 8, |s, a, d| arm_memory(s, a, d, (2.0, 1.0))),
    row("candidate's arm disturbed, memory 4 blocks", 8, |s, a, d| arm_memory(s, a, d, (4.0, 1.0))),
    row("the same, three times as much", 8, |s, a, d| arm_memory(s, a, d, (4.0, 3.0))),
    row("candidate's arm disturbed, memory 16 blocks", 8, |s, a, d| arm_memory(s, a, d, (16.0, 1.0)))
        .unbounded(),
    row("candidate's arm disturbed for the whole run", 8, arm_forever).unbounded(),
    row("candidate halves 4 % of its trials", 8, mishaps).unbounded(),
    row("stolen time drawn by the candidate", 8, drawn_steal).unbounded(),
];

/// Noise of a kind, scaled.
#[derive(Debug)]
pub struct Noise {
    kind: Kind,
    deviation: f64,
    state: State,
    dice: Dice,
}

impl Noise {
    /// Noise in which the log ratio of a block's rate varies by `deviation`.
    pub fn new(kind: Kind, deviation: f64, seed: u64) -> Self {
        let trials = (kind.trials / 2) as f64;
        // Of independent trials of deviation 1 the block's log ratio has deviation sqrt(2 / trials of an arm).
        let deviation = deviation / (2.0 / trials).sqrt();
        Noise { kind, deviation, state: State::default(), dice: Dice::new(seed) }
    }

    /// The next block's trials of cells with the figures that `truth` tells.
    pub fn block(&mut self, arms: &[Arm], truth: impl Fn(Arm) -> Figures) -> Vec<Figures> {
        let trials = (self.kind.source)(&mut self.state, arms, &mut self.dice);
        self.state.last = arms.last().copied();
        let deviation = self.deviation;
        let figures = |(arm, trial): (&Arm, Trial)| {
            let truth = truth(*arm);
            let factor = |i: usize| (deviation * trial.units[i] + trial.fixed[i]).exp();
            Figures {
                rate_bps: BitRate(truth.rate_bps.0 * factor(0)),
                bytes_per_cpu_s: BytesPerCpuSecond(truth.bytes_per_cpu_s.0 * factor(1)),
                latency_ns: Nanos((truth.latency_ns.0 as f64 * factor(2)).round() as u64),
                steal: trial.steal,
                ..truth
            }
        };
        arms.iter().zip(trials).map(figures).collect()
    }

    /// For what the trials do beside their noise.
    pub fn happens(&mut self, share: f64) -> bool {
        self.dice.happens(share)
    }
}

/// The round trip varies by a third of what the rate does.
const SPREADS: [f64; 3] = [1.0, 1.0, 1.0 / 3.0];

/// Trials whose three deviations come from `draw`, each by itself.
fn each(arms: &[Arm], mut draw: impl FnMut(Arm) -> f64) -> Vec<Trial> {
    let trial = |arm: &Arm| Trial { units: SPREADS.map(|spread| spread * draw(*arm)), ..Trial::default() };
    arms.iter().map(trial).collect()
}

fn normal(_: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    each(arms, |_| dice.normal())
}

fn heavy(_: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    each(arms, |_| dice.heavy())
}

/// Autoregressive from trial to trial, with what is drawn anew beside it.
fn drift(state: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    const STAYS: f64 = 0.9;
    let trial = |_: &Arm| {
        let mut units = [0.0; 3];
        for ((unit, level), spread) in units.iter_mut().zip(&mut state.level).zip(SPREADS) {
            *level = STAYS * *level + (1.0 - STAYS * STAYS).sqrt() * dice.normal();
            *unit = spread * (2.0 * *level + 0.8 * dice.normal());
        }
        Trial { units, ..Trial::default() }
    };
    arms.iter().map(trial).collect()
}

/// A connection is fast or slow, whichever arm it belongs to (the processor that its queue came to).
fn two_rates(_: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    each(arms, |_| 0.995 * dice.coin() + 0.1 * dice.normal())
}

/// All connections of an arm in a block are fast or slow.
fn two_rates_an_arm(_: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    let [own, other] = [(); 2].map(|()| [(); 3].map(|()| dice.coin()));
    // Alike within the arm, so each draw counts for all its trials.
    let scale = (2.0 / arms.len() as f64).sqrt();
    let trial = |arm: &Arm| {
        let draws = if *arm == Arm::Candidate { own } else { other };
        let mut units = [0.0; 3];
        for ((unit, draw), spread) in units.iter_mut().zip(draws).zip(SPREADS) {
            *unit = spread * (0.995 * scale * draw + 0.1 * dice.normal());
        }
        Trial { units, ..Trial::default() }
    };
    arms.iter().map(trial).collect()
}

fn unequal(_: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    // Variances 4 and 1, 2.5 on average.
    let of = |arm| if arm == Arm::Candidate { 2.0 } else { 1.0 } / 2.5_f64.sqrt();
    each(arms, |arm| of(arm) * dice.normal())
}

/// The first trial after a change of the arm is slow. Blocks of eight ask for their idle round trips first, so the first
/// stream follows a change as well; it finds the path idle besides.
fn cold_start(state: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    let mut trials = normal(state, arms, dice);
    let mut last = if arms.len() == 8 { None } else { state.last };
    for (arm, trial) in arms.iter().zip(&mut trials) {
        if last != Some(*arm) {
            trial.fixed = [-0.223, -0.223, 0.223];
        }
        last = Some(*arm);
    }
    if arms.len() == 8 {
        trials[0].fixed = [-0.446, -0.446, 0.446];
    }
    trials
}

fn trend(state: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    let mut trials = normal(state, arms, dice);
    for trial in &mut trials {
        state.time += 0.005;
        // Back to the start before the figures leave what a host can do.
        state.time %= 4.0;
        trial.fixed = [state.time, state.time, -state.time];
    }
    trials
}

/// Neighbours take a tenth to a half of the processors, for a quarter of a block to several.
fn stolen(state: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    let mut trials = normal(state, arms, dice);
    for trial in &mut trials {
        if state.burst == 0 && dice.happens(0.01) {
            state.burst = 2 + (dice.uniform() * 20.0) as u32;
            state.depth = 0.1 + 0.4 * dice.uniform();
        }
        if state.burst > 0 {
            state.burst -= 1;
            trial.steal = state.depth;
            let lost = (1.0 - state.depth).ln();
            trial.fixed = [lost, 0.3 * lost, -lost];
        }
    }
    trials
}

/// The rate halves for some trials; nothing is counted as stolen.
fn bursts(state: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    let mut trials = normal(state, arms, dice);
    for trial in &mut trials {
        if state.burst == 0 && dice.happens(0.02) {
            state.burst = 1 + (dice.uniform() * 6.0) as u32;
        }
        if state.burst > 0 {
            state.burst -= 1;
            trial.fixed = [-0.7, -0.7, 0.7];
        }
    }
    trials
}

/// What the candidate's trials have in common changes from block to block and lasts for `memory` blocks; `size` times as
/// large as the noise of a whole block.
fn arm_memory(state: &mut State, arms: &[Arm], dice: &mut Dice, (memory, size): (f64, f64)) -> Vec<Trial> {
    let stays = (-1.0 / memory).exp();
    let fresh = (1.0 - stays * stays).sqrt();
    if state.time == 0.0 {
        state.time = 1.0;
        state.level[0] = dice.normal();
    }
    state.level[0] = stays * state.level[0] + fresh * dice.normal();
    on_candidate(size * state.level[0], arms, dice)
}

fn arm_forever(state: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    if state.time == 0.0 {
        state.time = 1.0;
        state.level[0] = dice.normal();
    }
    on_candidate(state.level[0], arms, dice)
}

/// A level in units of the noise of a whole block.
fn on_candidate(level: f64, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    let scale = (4.0 / arms.len() as f64).sqrt();
    let mut trials = each(arms, |_| dice.normal());
    for (arm, trial) in arms.iter().zip(&mut trials) {
        if *arm == Arm::Candidate {
            trial.units[0] += scale * level;
            trial.units[1] += scale * level;
        }
    }
    trials
}

/// The effect on the mean is taken out: what is left is the mishaps' rareness.
fn mishaps(state: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    const SHARE: f64 = 0.04;
    let mut trials = normal(state, arms, dice);
    for (arm, trial) in arms.iter().zip(&mut trials) {
        if *arm == Arm::Candidate {
            let half = if dice.happens(SHARE) { 0.5_f64.ln() } else { 0.0 };
            trial.fixed[0] = half - SHARE * 0.5_f64.ln();
        }
    }
    trials
}

/// A fifth of the candidate's trials lose three tenths to the hypervisor, which the others gain in the mean.
fn drawn_steal(state: &mut State, arms: &[Arm], dice: &mut Dice) -> Vec<Trial> {
    const SHARE: f64 = 0.2;
    let mut trials = normal(state, arms, dice);
    for (arm, trial) in arms.iter().zip(&mut trials) {
        if *arm == Arm::Candidate {
            let hit = dice.happens(SHARE);
            trial.steal = if hit { 0.3 } else { 0.0 };
            let lost = if hit { 0.7_f64.ln() } else { 0.0 };
            trial.fixed[0] = lost - SHARE * 0.7_f64.ln();
        }
    }
    trials
}
