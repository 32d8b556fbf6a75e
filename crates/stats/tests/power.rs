//! Simulates the error and power of the sequential decision. Seeds are fixed. The expected bounds allow for Monte Carlo
//! error (standard error at 20,000 runs and 90 %: 0.2 %).

use landspeed_stats::{BlockContrast, StepDesign, StepState, judge};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Runs one step. Returns the step's final state and number of blocks.
fn run(design: &StepDesign, rng: &mut ChaCha8Rng, shape: (f64, f64), noise: NoiseDraw) -> (StepState, usize) {
    let mut seen = Vec::new();
    loop {
        seen.push(block(rng, seen.len(), shape, noise));
        let state = judge(design, &seen).state;
        if state != StepState::Continue {
            return (state, seen.len());
        }
    }
}

/// A function that draws the eight trials of a block, each with the deviation 1. The candidate's trials have the
/// indexes 1, 2, 4 and 7, or the others if `candidate_first` is true.
type NoiseDraw = fn(&mut ChaCha8Rng, candidate_first: bool) -> [f64; 8];

/// Returns block `number` of a comparison with the given mean and deviation. The order of arms alternates.
fn block(
    rng: &mut ChaCha8Rng,
    number: usize,
    (mean, deviation): (f64, f64),
    noise: NoiseDraw,
) -> BlockContrast {
    let candidate_first = number % 2 == 1;
    // A block's log ratio is the difference of two means of four trials each.
    let trials = noise(rng, candidate_first).map(|value| deviation * value * 2.0_f64.sqrt());
    let is_candidate = |i: usize| (i.count_ones() % 2 == 1) != candidate_first;
    let of = |wanted| (0..8).filter(|i| is_candidate(*i) == wanted).map(|i| trials[i]).sum::<f64>() / 4.0;
    let (own, other): (f64, f64) = (of(true), of(false));
    let within = (0..8).map(|i| trials[i] - if is_candidate(i) { own } else { other }).collect();
    BlockContrast::new(mean + own - other, candidate_first, within)
}

/// Draws the trials of a block. One block in ten has eight times the deviation of the others, as after a move to other
/// processors.
fn struck(rng: &mut ChaCha8Rng, _: bool) -> [f64; 8] {
    let wide = rand::Rng::random_bool(rng, 0.1);
    let deviation = (0.9 + 0.1 * 64.0_f64).sqrt();
    gaussian(rng, false).map(|value| value * if wide { 8.0 } else { 1.0 } / deviation)
}

fn gaussian(rng: &mut ChaCha8Rng, _: bool) -> [f64; 8] {
    [(); 8].map(|()| normal(rng))
}

/// Draws trials of which the first is slow by four deviations of the others.
fn cold(rng: &mut ChaCha8Rng, _: bool) -> [f64; 8] {
    let mut trials = gaussian(rng, false);
    trials[0] -= 4.0;
    trials
}

/// Draws trials each of which has one of two rates.
fn two_rates(rng: &mut ChaCha8Rng, _: bool) -> [f64; 8] {
    [(); 8].map(|()| if rand::Rng::random_bool(rng, 0.5) { 1.0 } else { -1.0 })
}

/// Returns a Gaussian value (Box and Muller).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (rand::Rng::random(rng), rand::Rng::random(rng));
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Returns the share of `runs` that end in `wanted`, and the mean number of blocks, with Gaussian noise.
fn share(design: &StepDesign, wanted: StepState, shape: (f64, f64), runs: u32) -> (f64, f64) {
    share_of(design, wanted, shape, runs, gaussian)
}

/// Returns the share of `runs` that end in `wanted`, and the mean number of blocks, with the given noise.
fn share_of(
    design: &StepDesign,
    wanted: StepState,
    shape: (f64, f64),
    runs: u32,
    noise: NoiseDraw,
) -> (f64, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(20_031_115);
    let (mut hits, mut blocks) = (0, 0);
    for _ in 0..runs {
        let (state, n) = run(design, &mut rng, shape, noise);
        hits += u32::from(state == wanted);
        blocks += n;
    }
    (f64::from(hits) / f64::from(runs), blocks as f64 / f64::from(runs))
}

/// The error of one test in a five-minute run, which plans twelve tests.
const IN_RUN: f64 = 0.05 / 12.0;

fn least() -> f64 {
    1.02_f64.ln()
}

#[test]
fn a_step_of_eleven_blocks_has_the_promised_power() {
    let design = StepDesign::new(IN_RUN, least(), 11);
    for (effect, deviation) in [(1.1_f64, 0.05), (1.3, 0.15)] {
        let (power, _) = share(&design, StepState::Helps, (effect.ln(), deviation), 20_000);
        assert!(power >= 0.905, "effect {effect} at {deviation}: {power}");
    }
}

#[test]
fn wild_blocks_and_two_rates_keep_no_more_than_granted() {
    let design = StepDesign::new(IN_RUN, least(), 11);
    for noise in [struck, two_rates] {
        let (error, _) = share_of(&design, StepState::Helps, (least(), 0.05), 20_000, noise);
        assert!(error <= IN_RUN + 0.0014, "{error}");
    }
}

#[test]
fn a_cold_start_hides_nothing() {
    let design = StepDesign::new(IN_RUN, least(), 11);
    let (power, _) = share_of(&design, StepState::Helps, (1.1_f64.ln(), 0.05), 20_000, cold);
    assert!(power >= 0.85, "{power}");
}

#[test]
fn a_helpful_step_takes_all_its_blocks_and_a_useless_one_ends_early() {
    let design = StepDesign::new(IN_RUN, least(), 11);
    let (found, blocks) = share(&design, StepState::Helps, (2.0_f64.ln(), 0.05), 2_000);
    assert!(found == 1.0 && blocks == 11.0, "{found} in {blocks}");
    let (found, blocks) = share(&design, StepState::Harms, (0.8_f64.ln(), 0.05), 2_000);
    assert!(found > 0.98 && blocks < 4.5, "{found} in {blocks}");
    let (_, blocks) = share(&design, StepState::Helps, (0.0, 0.05), 2_000);
    assert!(blocks < 7.0, "{blocks}");
}

/// Checks that the last look uses its error. A true effect equal to the least effect is found to help with probability
/// alpha at most, and with little less if no step is given up. With few blocks the probability is half of alpha,
/// because of the floor of the standard error.
#[test]
fn the_error_is_the_requested_one() {
    let few =
        share(&StepDesign::new(0.02, least(), 7).thorough(), StepState::Helps, (least(), 0.05), 40_000).0;
    assert!(few < 0.02 + 0.0021 && few > 0.0, "{few}");
    for (alpha, blocks) in [(0.05, 11), (0.05, 40)] {
        let design = StepDesign::new(alpha, least(), blocks).thorough();
        let (error, _) = share(&design, StepState::Helps, (least(), 0.05), 40_000);
        // The standard error is 0.0011 at alpha 0.05. Stops for "no effect" reduce the error a little.
        assert!(error < alpha + 0.0033 && error > alpha * 0.75, "alpha {alpha}, {blocks} blocks: {error}");
    }
}

#[test]
fn equal_arms_are_hardly_ever_kept() {
    let design = StepDesign::new(IN_RUN, least(), 11);
    for deviation in [0.01, 0.05, 0.15, 0.5] {
        let (error, _) = share(&design, StepState::Helps, (0.0, deviation), 20_000);
        assert!(error <= IN_RUN + 0.0014, "deviation {deviation}: {error}");
    }
}

#[test]
fn many_blocks_find_a_small_effect_in_heavy_noise() {
    let design = StepDesign::new(0.05, least(), 500).thorough();
    let (power, _) = share(&design, StepState::Helps, (1.05_f64.ln(), 0.15), 1_000);
    assert!(power >= 0.95, "{power}");
    let (dismissed, _) = share(&design, StepState::NoEffect, (0.0, 0.15), 1_000);
    assert!(dismissed >= 0.7, "{dismissed}");
}

/// Checks that the interval at the end of a step, at any look, contains the true effect.
#[test]
fn the_interval_survives_peeking() {
    let design = StepDesign::new(0.05, least(), 11);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut too_high, mut too_low, runs) = (0, 0, 20_000);
    for _ in 0..runs {
        let (mean, mut seen) = (0.05, Vec::new());
        let end = loop {
            seen.push(block(&mut rng, seen.len(), (mean, 0.05), gaussian));
            let verdict = judge(&design, &seen);
            if verdict.state != StepState::Continue {
                break verdict.estimate;
            }
        };
        too_high += u32::from(end.low.ln() > mean);
        too_low += u32::from(end.high.ln() < mean);
    }
    // At most 5 % on each side; the standard error is 0.15 %.
    assert!(too_high <= 1_100 && too_low <= 1_100, "{too_high} {too_low} of {runs}");
}
