//! Tests of runs on a machine whose neighbours take processor time: the tests lose statistical power, but the answer
//! does not change.

use landspeed_analysis::LadderRules;
use landspeed_record::units::BitRate;
use landspeed_record::{Arm, StepAnswer, TrialFigures};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::drive::{SimulatedRun, SimulatedTrial, candidate, usual};

/// Returns the figures of a trial that lost `share` of its processor time and `times` as much of its rate, with 4 %
/// noise.
fn hit(worth: f64, share: f64, times: f64, dice: &mut ChaCha8Rng) -> TrialFigures {
    let noise = 1.0 + 0.08 * (dice.random::<f64>() - 0.5);
    let rate = 4e9 * worth * noise * (1.0 - share).powf(times);
    TrialFigures { rate_bps: BitRate(rate), steal: share, ..usual() }
}

fn on(trial: &SimulatedTrial<'_>) -> bool {
    trial.cell.flow.contains_key("k")
}

/// Runs a ladder over "k" and three settings that do nothing.
fn drive(mut world: impl FnMut(&SimulatedTrial<'_>, &mut ChaCha8Rng) -> TrialFigures) -> SimulatedRun {
    let knobs = ["other-1", "k", "other-2", "other-3"];
    let candidates = (0..).zip(knobs).map(|(rank, knob)| candidate(knob, "on", rank)).collect();
    let mut dice = ChaCha8Rng::seed_from_u64(7);
    let rules = LadderRules { max_blocks: 11, ..LadderRules::default() };
    crate::drive::drive(candidates, rules, |trial| world(trial, &mut dice))
}

/// Returns the share that neighbours take: up to a half, for some of the trials of two blocks in five.
fn bursty(trial: &SimulatedTrial<'_>, dice: &mut ChaCha8Rng) -> f64 {
    let hits = matches!(trial.at % 5, 1 | 3) && dice.random::<f64>() < 0.7;
    if hits { 0.1 + 0.4 * dice.random::<f64>() } else { 0.0 }
}

#[test]
fn bursts_that_are_usual_leave_a_large_effect_its_answer() {
    for (worth, answer) in [(2.5, StepAnswer::Helps), (0.4, StepAnswer::Harms)] {
        let run = drive(|trial, dice| {
            let share = bursty(trial, dice);
            hit(if on(trial) { worth } else { 1.0 }, share, 1.5, dice)
        });
        let step = run.step("k");
        assert_eq!(step.answer, answer, "{step:?}");
        assert!(step.discarded * 5 <= step.blocks + step.discarded, "bursts are usual here: {step:?}");
    }
}

#[test]
fn blocks_that_stand_out_are_put_back_for_the_answer() {
    // Every sixth block loses a third, and the change is worth the same in it: with and without these blocks the
    // answers agree.
    let run = drive(|trial, dice| {
        let share = if trial.at % 12 == 11 { 0.3 } else { 0.0 };
        hit(if on(trial) { 1.3 } else { 1.0 }, share, 1.0, dice)
    });
    let step = run.step("k");
    assert!(step.answer == StepAnswer::Helps && step.discarded > 0, "{step:?}");
}

type LossSetter = fn(&mut TrialFigures, f64);
const KINDS: [(LossSetter, &str); 2] =
    [(|f, share| f.steal = share, "hypervisor"), (|f, share| f.throttled = share, "quota or to heat")];

#[test]
fn two_points_that_a_candidate_draws_do_not_explain_that_it_is_two_and_a_half_times_as_fast() {
    for (lose, word) in KINDS {
        let run = drive(|trial, dice| {
            let drawn = if on(trial) { 0.02 } else { 0.0 };
            let share = drawn + 0.03 * dice.random::<f64>();
            let mut figures = hit(if on(trial) { 2.48 } else { 1.0 }, share, 2.0, dice);
            figures.steal = 0.0;
            lose(&mut figures, share);
            figures
        });
        let step = run.step("k");
        assert_eq!((step.answer, step.confirmed), (StepAnswer::Helps, Some(true)), "{step:?}");
        assert!(step.reason.contains("points more") && step.reason.contains(word), "{step:?}");
    }
}

#[test]
fn lost_time_that_explains_all_of_an_effect_leaves_nothing_to_keep_and_harms_nothing() {
    // The arm that loses more time, and the apparent worth of the change because of it.
    for (loser, worth) in [(Arm::Incumbent, 1.0), (Arm::Candidate, 1.0), (Arm::Candidate, 1.3)] {
        for (lose, word) in KINDS {
            let run = drive(|trial, dice| {
                let more = if on(trial) == (loser == Arm::Candidate) { 0.2 } else { 0.0 };
                let share = more + 0.05 * dice.random::<f64>();
                let mut figures = hit(if on(trial) { worth } else { 1.0 }, share, 1.0, dice);
                figures.steal = 0.0;
                lose(&mut figures, share);
                figures
            });
            let step = run.step("k");
            assert!(matches!(step.answer, StepAnswer::Undecided | StepAnswer::NoEffect), "{worth}: {step:?}");
            assert!(step.reason.contains(word), "{step:?}");
        }
    }
}

#[test]
fn a_candidate_that_harms_by_more_than_its_lost_time_explains_is_harmful() {
    let run = drive(|trial, dice| {
        let share = if on(trial) { 0.05 } else { 0.0 } + 0.05 * dice.random::<f64>();
        hit(if on(trial) { 0.5 } else { 1.0 }, share, 1.0, dice)
    });
    assert_eq!(run.step("k").answer, StepAnswer::Harms, "{:?}", run.step("k"));
}

#[test]
fn a_cost_due_to_lost_time_alone_breaks_no_guard() {
    // Its trials lose a fifth more of the processor time, and their round trips are longer in proportion.
    let run = drive(|trial, dice| {
        let share = if on(trial) { 0.2 } else { 0.0 } + 0.05 * dice.random::<f64>();
        let figures = hit(if on(trial) { 3.0 } else { 1.0 }, share, 1.0, dice);
        let slow = usual().latency_ns.0 as f64 / (1.0 - share);
        TrialFigures { latency_ns: landspeed_record::units::Nanos(slow as u64), ..figures }
    });
    assert_ne!(run.step("k").answer, StepAnswer::Harms, "{:?}", run.step("k"));
}

#[test]
fn the_cost_of_a_busy_host_is_reported_once_and_early() {
    let run = drive(|trial, dice| {
        let share = bursty(trial, dice);
        hit(1.0, share, 1.5, dice)
    });
    let said: Vec<&String> = run.notes.iter().filter(|note| note.contains("Neighbours take about")).collect();
    assert_eq!(said.len(), 1, "{:?}", run.notes);
    assert!(said[0].contains("in bursts") && said[0].contains("times the time"), "{said:?}");
    let quiet = drive(|_, dice| hit(1.0, 0.0, 1.0, dice));
    assert!(!quiet.noted("Neighbours"), "{:?}", quiet.notes);
}
