//! Whole runs on simulated trials, few of each kind: nothing useless is confirmed more often than promised, and what is
//! useful is found. Fixed seeds; bounds leave room for Monte Carlo error. `make false-keeps` is the same at full length.

use landspeed_analysis::honesty::{KINDS, Kind, Worth, candidate, false_keeps, from_poor_start, single};
use landspeed_units::Nanos;

fn kind(name: &str) -> Kind {
    *KINDS.iter().find(|kind| kind.name == name).expect("a row of the table")
}

#[test]
fn whole_runs_of_useless_candidates_confirm_nothing() {
    let bounded: Vec<&Kind> = KINDS.iter().filter(|kind| kind.bounded).collect();
    let confirmed: u32 = bounded.iter().map(|kind| false_keeps(**kind, 0.05, 1.0199, RUNS).confirmed).sum();
    // 5 % of 76 is 3.8; ten or more have 0.6 % where the share is 5 %.
    assert!(confirmed < 10, "{confirmed} of {} runs", bounded.len() as u32 * RUNS);
}

/// Whole runs of each kind.
const RUNS: u32 = 4;
/// Single steps of each kind.
const STEPS: u32 = 40;

/// So many are at least seen where the share is `least`, but for 0.1 %.
fn low(least: f64) -> u32 {
    let steps = f64::from(STEPS);
    (steps * least - 3.1 * (steps * least * (1.0 - least)).sqrt()) as u32
}

#[test]
fn useful_effects_are_found() {
    for kind in KINDS.iter().filter(|kind| kind.powered) {
        for (effect, deviation, least) in [(1.1, 0.05, 0.85), (1.3, 0.15, 0.8)] {
            let found = single(*kind, deviation, Worth::of(effect), STEPS);
            assert!(found.kept >= low(least), "{}: {found:?}", kind.name);
        }
    }
}

#[test]
fn rare_mishaps_are_not_kept_and_harmless_changes_are() {
    let kept = |worth| single(kind("normal"), 0.05, worth, STEPS).kept;
    assert!(kept(Worth::of(1.3)) >= low(0.95));
    for mishap in [[1.0, 1.0, 20.0], [1.0, 0.05, 1.0]] {
        assert!(STEPS - kept(Worth { mishaps: 0.06, mishap, ..Worth::of(1.3) }) >= low(0.9), "{mishap:?}");
    }
}

#[test]
fn from_a_poor_start_what_is_kept_is_confirmed_in_five_minutes_and_all_is_found_in_seven() {
    let found = |minutes: u64| from_poor_start(kind("normal"), 0.05, Nanos::secs(60 * minutes), RUNS);
    let (five, seven) = (found(5), found(7));
    assert!(five.confirmed * 4 >= five.kept * 3, "{five:?}");
    assert!(seven.useful >= RUNS * 5 && seven.confirmed * 4 >= seven.kept * 3, "{seven:?}");
}

#[test]
fn a_candidate_of_the_study_changes_its_own_knob() {
    let [one, other] = ["one", "other"].map(|knob| candidate(knob, 0));
    assert_ne!(one.change, other.change);
    assert_eq!(one.change.flow.get("one").map(String::as_str), Some("on"));
}
