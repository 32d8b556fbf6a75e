//! Whole runs on synthetic noise: nothing useless is kept more often than promised, and what is useful
//! is found. Fixed seeds; bounds leave room for Monte Carlo error. The same studies run on recorded
//! noise, at full length, outside of the tests.

mod common;

use common::{Shape, noise};
use landspeed_analysis::honesty::{FalseKeepStudy, PowerStudy, false_keep_study, power_study};
use landspeed_analysis::{Metric, Rules};
use landspeed_units::Nanos;

fn study(useful: Vec<f64>) -> FalseKeepStudy {
    FalseKeepStudy { runs: 200, useless: 30, useful, rules: Rules::default(), seed: 1 }
}

#[test]
fn runs_of_useless_candidates_keep_nothing() {
    for shape in [Shape::Gaussian, Shape::HeavyTailed, Shape::Autocorrelated] {
        for deviation in [0.01, 0.05, 0.2] {
            let found = false_keep_study(&noise(shape, 400, deviation), &study(Vec::new()));
            // 5 % of 200 is 10; 17 is 2.3 standard errors above.
            assert!(found.runs_with_false_keep <= 17, "{shape:?} at {deviation}: {found:?}");
            assert!(found.tests > 200 * 12, "{shape:?} at {deviation}: {found:?}");
        }
    }
}

/// Keeps of useful steps recycle their error: the bound for the useless ones still holds.
#[test]
fn useful_steps_are_kept_without_help_to_the_useless() {
    let found = false_keep_study(&noise(Shape::Gaussian, 400, 0.05), &study(vec![2.0, 1.5, 1.3, 1.3]));
    assert!(found.runs_with_false_keep <= 17, "{found:?}");
    assert!(found.useful_kept as f64 >= 0.97 * found.useful as f64, "{found:?}");
}

#[test]
fn eleven_blocks_find_what_is_promised() {
    let rules = Rules { planned: 12, max_blocks: 11, ..Rules::default() };
    for (effect, deviation) in [(1.3, 0.15), (1.1, 0.05)] {
        let study = PowerStudy { runs: 2_000, effect, deviation, rules: rules.clone(), seed: 3 };
        let power = power_study(&noise(Shape::Gaussian, 2_000, 0.03), &study);
        // Promised are 90 %; the standard error is 0.7 %.
        assert!(power.share() >= 0.89, "effect {effect} at {deviation}: {power:?}");
    }
}

#[test]
fn one_knob_and_twenty_minutes_find_a_small_effect() {
    let rules = Rules { budget: Nanos::secs(1_200), ..Rules::default() };
    let study = PowerStudy { runs: 200, effect: 1.05, deviation: 0.15, rules, seed: 4 };
    let power = power_study(&noise(Shape::Gaussian, 2_000, 0.03), &study);
    assert!(power.share() >= 0.9, "{power:?}");
}

#[test]
fn scaling_gives_the_deviation_asked_for() {
    let scaled = noise(Shape::HeavyTailed, 500, 0.04).scaled(Metric::Rate, 0.15);
    assert!((scaled.deviation(Metric::Rate) - 0.15).abs() < 1e-9);
}
