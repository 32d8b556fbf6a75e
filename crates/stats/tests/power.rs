//! Simulated error and power of the sequential decision. Fixed seeds; bounds leave room for Monte
//! Carlo error (standard error at 20,000 runs and 90 %: 0.2 %).

use landspeed_stats::{Contrast, Design, State, judge};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A step's end, and the blocks it took.
fn run(design: &Design, rng: &mut ChaCha8Rng, (mean, deviation): (f64, f64), noise: Draw) -> (State, usize) {
    let mut seen = Vec::new();
    loop {
        seen.push(block(rng, (mean, deviation), noise));
        let state = judge(design, &seen).state;
        if state != State::Continue {
            return (state, seen.len());
        }
    }
}

/// Draws noise of deviation 1, for a block's log ratio and for what the trials of each arm differ by.
type Draw = fn(&mut ChaCha8Rng) -> [f64; 3];

/// A block of this mean and deviation.
fn block(rng: &mut ChaCha8Rng, (mean, deviation): (f64, f64), noise: Draw) -> Contrast {
    let [ratio, first, second] = noise(rng);
    Contrast { ln_ratio: mean + deviation * ratio, unrest: deviation * first.hypot(second) }
}

/// Most blocks agree, one in ten has eight times the deviation: what two processors that change
/// places do.
fn struck(rng: &mut ChaCha8Rng) -> [f64; 3] {
    let wide = rand::Rng::random_bool(rng, 0.1);
    let deviation = (0.9 + 0.1 * 64.0_f64).sqrt();
    gaussian(rng).map(|value| value * if wide { 8.0 } else { 1.0 } / deviation)
}

/// Restlessness that tells nothing.
fn gaussian(rng: &mut ChaCha8Rng) -> [f64; 3] {
    [(); 3].map(|()| normal(rng))
}

/// Box and Muller's normal.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (rand::Rng::random(rng), rand::Rng::random(rng));
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// The share of `runs` that end in `wanted`, and the mean number of blocks.
fn share(design: &Design, wanted: State, shape: (f64, f64), runs: u32) -> (f64, f64) {
    share_of(design, wanted, shape, runs, gaussian)
}

/// The same, of any noise.
fn share_of(design: &Design, wanted: State, shape: (f64, f64), runs: u32, noise: Draw) -> (f64, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(20_031_115);
    let (mut hits, mut blocks) = (0, 0);
    for _ in 0..runs {
        let (state, n) = run(design, &mut rng, shape, noise);
        hits += u32::from(state == wanted);
        blocks += n;
    }
    (f64::from(hits) / f64::from(runs), blocks as f64 / f64::from(runs))
}

/// One of the twelve shares of a five-minute run.
const IN_RUN: f64 = 0.05 / 12.0;

fn least() -> f64 {
    1.02_f64.ln()
}

#[test]
fn a_step_of_eleven_blocks_finds_what_it_promises() {
    let design = Design::new(IN_RUN, least(), 11);
    for (effect, deviation) in [(1.1_f64, 0.05), (1.3, 0.15)] {
        let (power, _) = share(&design, State::Helps, (effect.ln(), deviation), 20_000);
        assert!(power >= 0.905, "effect {effect} at {deviation}: {power}");
    }
}

#[test]
fn blocks_that_were_struck_by_something_else_hide_nothing() {
    let design = Design::new(IN_RUN, least(), 11);
    for (effect, deviation) in [(1.1_f64, 0.05), (1.3, 0.15)] {
        let shape = (effect.ln(), deviation);
        let (power, _) = share_of(&design, State::Helps, shape, 20_000, struck);
        assert!(power >= 0.95, "effect {effect} at {deviation}: {power}");
    }
    let (error, _) = share_of(&design, State::Helps, (least(), 0.05), 20_000, struck);
    assert!(error <= IN_RUN + 0.0014, "{error}");
}

#[test]
fn a_large_effect_ends_early_and_so_does_a_useless_one() {
    let design = Design::new(IN_RUN, least(), 11);
    let (found, blocks) = share(&design, State::Helps, (2.0_f64.ln(), 0.05), 2_000);
    assert!(found == 1.0 && blocks < 4.5, "{found} in {blocks}");
    let (found, blocks) = share(&design, State::Harms, (0.8_f64.ln(), 0.05), 2_000);
    assert!(found > 0.98 && blocks < 4.5, "{found} in {blocks}");
    let (_, blocks) = share(&design, State::Helps, (0.0, 0.05), 2_000);
    assert!(blocks < 7.0, "{blocks}");
}

/// The boundaries spend exactly their error: an effect of just the least effect is said to help with
/// probability alpha at most, and little less where nothing is given up.
#[test]
fn the_error_is_what_was_asked_for() {
    for (alpha, blocks) in [(0.05, 11), (0.05, 40), (0.02, 7)] {
        let design = Design::new(alpha, least(), blocks).thorough();
        let (error, _) = share(&design, State::Helps, (least(), 0.05), 40_000);
        // Standard error 0.0011 at alpha 0.05. Stops for "no effect" take a little off.
        assert!(error < alpha + 0.0033 && error > alpha * 0.75, "alpha {alpha}, {blocks} blocks: {error}");
    }
}

#[test]
fn equal_arms_are_hardly_ever_kept() {
    let design = Design::new(IN_RUN, least(), 11);
    for deviation in [0.01, 0.05, 0.15, 0.5] {
        let (error, _) = share(&design, State::Helps, (0.0, deviation), 20_000);
        assert!(error <= IN_RUN + 0.0014, "deviation {deviation}: {error}");
    }
}

#[test]
fn many_blocks_find_a_small_effect_in_heavy_noise() {
    let design = Design::new(0.05, least(), 500).thorough();
    let (power, _) = share(&design, State::Helps, (1.05_f64.ln(), 0.15), 1_000);
    assert!(power >= 0.95, "{power}");
    let (dismissed, _) = share(&design, State::NoEffect, (0.0, 0.15), 1_000);
    assert!(dismissed >= 0.7, "{dismissed}");
}

/// The interval at the end of a step, wherever it stopped, holds the true effect.
#[test]
fn the_interval_survives_peeking() {
    let design = Design::new(0.05, least(), 11);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut too_high, mut too_low, runs) = (0, 0, 20_000);
    for _ in 0..runs {
        let (mean, mut seen) = (0.05, Vec::new());
        let end = loop {
            seen.push(block(&mut rng, (mean, 0.05), gaussian));
            let verdict = judge(&design, &seen);
            if verdict.state != State::Continue {
                break verdict.estimate;
            }
        };
        too_high += u32::from(end.low.ln() > mean);
        too_low += u32::from(end.high.ln() < mean);
    }
    // 5 % a side at most; standard error 0.15 %.
    assert!(too_high <= 1_100 && too_low <= 1_100, "{too_high} {too_low} of {runs}");
}
