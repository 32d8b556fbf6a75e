//! The kinds of noise. Each is a row of the tables.

use landspeed_record::units::{BitRate, BytesPerCpuSecond, Nanos};
use landspeed_record::{Arm, TrialFigures};
use landspeed_stats::Random;

/// A kind of noise: the distribution of trials that have equal settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoiseKind {
    pub(super) name: &'static str,
    /// The number of trials in a block: eight or four.
    pub(super) trials: usize,
    /// True if the method promises to bound false keeps under this noise.
    pub(super) bounded: bool,
    /// True if the method promises power under this noise.
    pub(super) powered: bool,
    source: TrialSource,
}

/// A function that draws the deviations of a block's trials.
type TrialSource = fn(&mut NoiseState, &[Arm]) -> Vec<TrialDeviations>;

/// The deviations of a trial from its cell's true figures.
#[derive(Debug, Clone, Copy, Default)]
struct TrialDeviations {
    /// Deviations of ln(rate), ln(bytes per CPU-second) and ln(round trip), in units of the noise's deviation.
    units: [f64; 3],
    /// Additional deviations of the same three logs, independent of the noise's deviation.
    fixed: [f64; 3],
    /// The share of processor time that is stolen from the trial.
    steal: f64,
}

/// The state that a source of trials keeps from block to block.
#[derive(Debug)]
struct NoiseState {
    random: Random,
    level: [f64; 3],
    last: Option<Arm>,
    burst: u32,
    depth: f64,
    time: f64,
}

const fn row(name: &'static str, trials: usize, source: TrialSource) -> NoiseKind {
    NoiseKind { name, trials, bounded: true, powered: false, source }
}

impl NoiseKind {
    const fn powered(self) -> NoiseKind {
        NoiseKind { powered: true, ..self }
    }

    const fn unbounded(self) -> NoiseKind {
        NoiseKind { bounded: false, ..self }
    }
}

pub(super) const KINDS: &[NoiseKind] = &[
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
    row("candidate's arm disturbed, memory 2 blocks", 8, |s, a| favoured(s, a, 2.0, 1.0)),
    row("candidate's arm disturbed, memory 4 blocks", 8, |s, a| favoured(s, a, 4.0, 1.0)),
    row("the same, three times as much", 8, |s, a| favoured(s, a, 4.0, 3.0)),
    row("candidate's arm disturbed, memory 16 blocks", 8, |s, a| favoured(s, a, 16.0, 1.0)).unbounded(),
    row("candidate's arm disturbed for the whole run", 8, |s, a| favoured(s, a, f64::INFINITY, 1.0))
        .unbounded(),
    row("candidate halves 4 % of its trials", 8, mishaps).unbounded(),
    row("stolen time drawn by the candidate", 8, drawn_steal).unbounded(),
    row("5 % stolen in bursts, blind to the arm", 8, |s, a| stolen_in_bursts(s, a, 0.05, 1.0)),
    row("10 % stolen in bursts, blind to the arm", 8, |s, a| stolen_in_bursts(s, a, 0.10, 1.0)),
    row("20 % stolen in bursts, blind to the arm", 8, |s, a| stolen_in_bursts(s, a, 0.20, 1.0)),
    row("5 % stolen in bursts, drawn by the candidate", 8, |s, a| stolen_in_bursts(s, a, 0.05, 1.5)),
    row("10 % stolen in bursts, drawn by the candidate", 8, |s, a| stolen_in_bursts(s, a, 0.10, 1.5)),
    row("20 % stolen in bursts, drawn by the candidate", 8, |s, a| stolen_in_bursts(s, a, 0.20, 1.5)),
    row("10 % stolen in bursts, of the incumbent twice as much", 8, spared),
];

/// Noise of one kind, with a given deviation.
#[derive(Debug)]
pub(super) struct SimulatedNoise {
    kind: NoiseKind,
    deviation: f64,
    state: NoiseState,
}

impl SimulatedNoise {
    /// Creates noise of one kind, in which the log ratio of a block's rate has the deviation `deviation`.
    pub(super) fn new(kind: NoiseKind, deviation: f64, seed: u64) -> Self {
        let trials = (kind.trials / 2) as f64;
        // With independent trials of deviation 1, the block's log ratio has deviation sqrt(2 / trials of an arm).
        let deviation = deviation / (2.0 / trials).sqrt();
        SimulatedNoise { kind, deviation, state: NoiseState::new(seed) }
    }

    /// Returns the figures of the next block's trials. `truth` returns the true figures of an arm.
    pub(super) fn block(&mut self, arms: &[Arm], truth: impl Fn(Arm) -> TrialFigures) -> Vec<TrialFigures> {
        let trials = (self.kind.source)(&mut self.state, arms);
        self.state.last = arms.last().copied();
        let deviation = self.deviation;
        let figures = |(arm, trial): (&Arm, TrialDeviations)| {
            let truth = truth(*arm);
            let factor = |i: usize| (deviation * trial.units[i] + trial.fixed[i]).exp();
            TrialFigures {
                rate_bps: BitRate(truth.rate_bps.0 * factor(0)),
                bytes_per_cpu_s: BytesPerCpuSecond(truth.bytes_per_cpu_s.0 * factor(1)),
                latency_ns: Nanos((truth.latency_ns.0 as f64 * factor(2)).round() as u64),
                steal: trial.steal,
                ..truth
            }
        };
        arms.iter().zip(trials).map(figures).collect()
    }

    /// Returns true with probability `share`, for events that are not part of the noise.
    pub(super) fn happens(&mut self, share: f64) -> bool {
        self.state.random.happens(share)
    }
}

impl NoiseState {
    fn new(seed: u64) -> NoiseState {
        let random = Random::new(seed);
        NoiseState { random, level: [0.0; 3], last: None, burst: 0, depth: 0.0, time: 0.0 }
    }

    /// Returns a value from Student's distribution with three degrees of freedom, scaled to deviation 1.
    fn heavy(&mut self) -> f64 {
        let square: f64 = (0..3).map(|_| self.random.normal().powi(2)).sum();
        self.random.normal() / square.sqrt()
    }

    /// Returns 1 or -1 with equal probability.
    fn coin(&mut self) -> f64 {
        if self.random.happens(0.5) { 1.0 } else { -1.0 }
    }

    /// Returns the depth of the burst in which the next trial is; `None` if it is in none. `depth` draws the depth of
    /// a new burst.
    fn burst(&mut self, law: &BurstLaw, depth: impl Fn(&mut Random) -> f64) -> Option<f64> {
        if self.burst == 0 && self.random.happens(law.share) {
            self.burst = law.least + (self.random.uniform() * law.more) as u32;
            self.depth = depth(&mut self.random);
        }
        self.burst = self.burst.checked_sub(1)?;
        Some(self.depth)
    }
}

/// The distribution of bursts. A burst begins with probability `share` in a trial outside of bursts, and lasts for at
/// least `least` trials, plus up to `more`.
struct BurstLaw {
    share: f64,
    least: u32,
    more: f64,
}

/// The deviations of the three figures relative to that of the rate. The round trip varies by a third as much as the
/// rate.
const SPREADS: [f64; 3] = [1.0, 1.0, 1.0 / 3.0];

/// Returns trials whose three deviations come from separate calls of `draw`.
fn each(arms: &[Arm], mut draw: impl FnMut(Arm, usize) -> f64) -> Vec<TrialDeviations> {
    let mut units = |arm| std::array::from_fn(|i| SPREADS[i] * draw(arm, i));
    arms.iter().map(|arm| TrialDeviations { units: units(*arm), ..TrialDeviations::default() }).collect()
}

fn of_candidate<'a>(
    arms: &[Arm],
    trials: &'a mut [TrialDeviations],
) -> impl Iterator<Item = &'a mut TrialDeviations> {
    arms.iter().zip(trials).filter(|(arm, _)| **arm == Arm::Candidate).map(|(_, trial)| trial)
}

fn normal(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    each(arms, |_, _| state.random.normal())
}

fn heavy(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    each(arms, |_, _| state.heavy())
}

/// Draws autoregressive noise from trial to trial, plus independent noise.
fn drift(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    const STAYS: f64 = 0.9;
    each(arms, |_, i| {
        let level = &mut state.level[i];
        *level = STAYS * *level + (1.0 - STAYS * STAYS).sqrt() * state.random.normal();
        2.0 * *level + 0.8 * state.random.normal()
    })
}

/// Draws a fast or a slow rate for each connection, independent of its arm (as the processor of its queue may cause).
fn two_rates(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    each(arms, |_, _| 0.995 * state.coin() + 0.1 * state.random.normal())
}

/// Draws a fast or a slow rate for all connections of an arm in a block.
fn two_rates_an_arm(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    let [own, other] = [(); 2].map(|()| [(); 3].map(|()| state.coin()));
    // Trials of an arm are alike, so each draw counts for all of its trials.
    let scale = (2.0 / arms.len() as f64).sqrt();
    each(arms, |arm, i| {
        let draws = if arm == Arm::Candidate { own } else { other };
        0.995 * scale * draws[i] + 0.1 * state.random.normal()
    })
}

fn unequal(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    // Variances 4 and 1, 2.5 on average.
    let of = |arm| if arm == Arm::Candidate { 2.0 } else { 1.0 } / 2.5_f64.sqrt();
    each(arms, |arm, _| of(arm) * state.random.normal())
}

/// Draws trials of which the first after a change of the arm is slow. Blocks of eight measure their idle round trips
/// first, so that their first stream also follows a change, and in addition finds the path idle.
fn cold_start(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    let mut trials = normal(state, arms);
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

fn trend(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    let mut trials = normal(state, arms);
    for trial in &mut trials {
        state.time += 0.005;
        // Starts again before the figures exceed what a host can do.
        state.time %= 4.0;
        trial.fixed = [state.time, state.time, -state.time];
    }
    trials
}

/// Draws trials with neighbours that take a tenth to a half of the processors, for a quarter of a block to several
/// blocks.
fn stolen(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    const LAW: BurstLaw = BurstLaw { share: 0.01, least: 2, more: 20.0 };
    let mut trials = normal(state, arms);
    for trial in &mut trials {
        if let Some(depth) = state.burst(&LAW, |random| 0.1 + 0.4 * random.uniform()) {
            trial.steal = depth;
            let lost = (1.0 - depth).ln();
            trial.fixed = [lost, 0.3 * lost, -lost];
        }
    }
    trials
}

/// The ratio of the logarithm of the remaining rate to that of the remaining processor share. It is above 1, because
/// a flow waits for the processor that is missing.
const SENSITIVITY: f64 = 1.5;
/// The least and the largest depth of a burst: the share of a trial's time that is lost.
const DEPTHS: [f64; 2] = [0.1, 0.5];

/// Takes the share `depth` of a trial's processor time away.
fn steal(trial: &mut TrialDeviations, depth: f64) {
    let lost = (1.0 - depth).ln();
    trial.steal = depth;
    trial.fixed = [SENSITIVITY * lost, 0.3 * lost, -lost];
}

/// Draws trials that lose processor time in bursts of a sixth of a second to a second. In a burst a trial loses a
/// tenth to a half of its time, and the share `share` of all processor time is lost on average. The candidate's
/// trials lose `times` as much, and are raised by as much on average, so that the candidate's effect is zero.
fn stolen_in_bursts(state: &mut NoiseState, arms: &[Arm], share: f64, times: f64) -> Vec<TrialDeviations> {
    const MOST_MORE: f64 = 6.0;
    const LEAST: u32 = 1;
    let depth = (DEPTHS[0] + DEPTHS[1]) / 2.0 * (1.0 + times) / 2.0;
    let within = share / depth;
    let length = f64::from(LEAST) + (MOST_MORE - 1.0) / 2.0;
    // The probability that a burst begins, so that bursts of this mean length cover this part of the time.
    let begins = within / (within + length * (1.0 - within));
    let gain = SENSITIVITY * within * (mean_loss(times) - mean_loss(1.0));
    let mut trials = normal(state, arms);
    for (arm, trial) in arms.iter().zip(&mut trials) {
        let draw = |random: &mut Random| DEPTHS[0] + (DEPTHS[1] - DEPTHS[0]) * random.uniform();
        let depth = state.burst(&BurstLaw { share: begins, least: LEAST, more: MOST_MORE }, draw);
        let own = if *arm == Arm::Candidate { times } else { 1.0 };
        depth.into_iter().for_each(|depth| steal(trial, own * depth));
        trial.fixed[0] += if *arm == Arm::Candidate { gain } else { 0.0 };
    }
    trials
}

/// Returns the mean of -ln(1 - x), where x is `times` the depth of a burst.
fn mean_loss(times: f64) -> f64 {
    let [most, least] = DEPTHS.map(|depth| 1.0 - times * depth);
    let integral = |left: f64| left - left * left.ln();
    (integral(most) - integral(least)) / (most - least)
}

/// Draws trials of which the candidate's lose half as much processor time as the incumbent's. This is the candidate's
/// only effect.
fn spared(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    let mut trials = stolen_in_bursts(state, arms, 0.133, 1.0);
    for trial in of_candidate(arms, &mut trials) {
        let depth = trial.steal / 2.0;
        steal(trial, depth);
    }
    trials
}

/// Draws trials of which some have half the rate, without stolen time.
fn bursts(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    const LAW: BurstLaw = BurstLaw { share: 0.02, least: 1, more: 6.0 };
    let mut trials = normal(state, arms);
    for trial in &mut trials {
        if let Some(depth) = state.burst(&LAW, |_| 0.7) {
            trial.fixed = [-depth, -depth, depth];
        }
    }
    trials
}

/// Draws trials in which all of the candidate's share a deviation. It changes from block to block with a memory of
/// `memory` blocks, and is `size` times as large as the noise of a whole block.
fn favoured(state: &mut NoiseState, arms: &[Arm], memory: f64, size: f64) -> Vec<TrialDeviations> {
    let stays = (-1.0 / memory).exp();
    if state.time == 0.0 {
        state.time = 1.0;
        state.level[0] = state.random.normal();
    }
    if stays < 1.0 {
        state.level[0] = stays * state.level[0] + (1.0 - stays * stays).sqrt() * state.random.normal();
    }
    let level = size * state.level[0] * (4.0 / arms.len() as f64).sqrt();
    let mut trials = normal(state, arms);
    for trial in of_candidate(arms, &mut trials) {
        trial.units[0] += level;
        trial.units[1] += level;
    }
    trials
}

/// Draws trials of which the candidate halves the rate of a few. All of its trials are raised so that the mean does
/// not change, and only the rare mishaps remain.
fn mishaps(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    const SHARE: f64 = 0.04;
    let mut trials = normal(state, arms);
    for trial in of_candidate(arms, &mut trials) {
        let half = if state.random.happens(SHARE) { 0.5_f64.ln() } else { 0.0 };
        trial.fixed[0] = half - SHARE * 0.5_f64.ln();
    }
    trials
}

/// Draws trials in which a fifth of the candidate's lose three tenths of their time to the hypervisor. All of its
/// trials are raised so that the mean does not change.
fn drawn_steal(state: &mut NoiseState, arms: &[Arm]) -> Vec<TrialDeviations> {
    const SHARE: f64 = 0.2;
    let mut trials = normal(state, arms);
    for trial in of_candidate(arms, &mut trials) {
        let hit = state.random.happens(SHARE);
        trial.steal = if hit { 0.3 } else { 0.0 };
        let lost = if hit { 0.7_f64.ln() } else { 0.0 };
        trial.fixed[0] = lost - SHARE * 0.7_f64.ln();
    }
    trials
}
