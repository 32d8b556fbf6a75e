//! Tests of the evidence that keeps a step and confirms it: whole runs of few candidates in worlds without chance.

use landspeed_analysis::LadderRules;
use landspeed_record::units::{BitRate, BytesPerCpuSecond, Nanos};
use landspeed_record::{Arm, StepAnswer, TrialFigures};

use crate::drive::{SimulatedRun, SimulatedTrial, candidate, usual};

/// Returns rules with eleven blocks a step, however few candidates there are.
fn usual_rules() -> LadderRules {
    LadderRules { max_blocks: 11, ..LadderRules::default() }
}

fn scaled(rate: f64) -> TrialFigures {
    TrialFigures { rate_bps: BitRate(4e9 * rate), ..usual() }
}

fn on(trial: &SimulatedTrial<'_>) -> bool {
    trial.cell.flow.contains_key("k")
}

/// Runs a ladder over the knob "k" and `others` candidates that do nothing.
fn drive(
    others: u32,
    rules: LadderRules,
    world: impl FnMut(&SimulatedTrial<'_>) -> TrialFigures,
) -> SimulatedRun {
    let others = (1..=others).map(|i| candidate(&format!("other-{i}"), "on", 0));
    crate::drive::drive([candidate("k", "on", 0)].into_iter().chain(others).collect(), rules, world)
}

#[test]
fn a_round_trip_that_few_trials_lose_twenty_times_over_is_not_kept() {
    let run = drive(0, usual_rules(), |trial| {
        let mishap = on(trial) && trial.number % 16 == 5;
        let latency_ns = Nanos(if mishap { 1_000_000 } else { 50_000 });
        TrialFigures { latency_ns, ..scaled(if on(trial) { 1.3 } else { 1.0 }) }
    });
    let step = run.step("k");
    assert!(!step.kept && step.reason.contains("round trip"), "{step:?}");
}

#[test]
fn processor_time_counts_in_total() {
    // The processor time is a tenth less for most bytes, and ten times as much for the bytes of one trial in sixteen:
    // the mean of the logs is 0.94, the bytes for all of the processor time 0.65.
    let run = drive(0, usual_rules(), |trial| {
        let cost = match (on(trial), trial.number % 16) {
            (false, _) => 1.0,
            (true, 5) => 0.1,
            (true, _) => 1.1,
        };
        TrialFigures {
            bytes_per_cpu_s: BytesPerCpuSecond(3e8 * cost),
            ..scaled(if on(trial) { 1.3 } else { 1.0 })
        }
    });
    let step = run.step("k");
    assert!(!step.kept && step.reason.contains("bytes per CPU-second"), "{step:?}");
}

#[test]
fn a_noisy_guard_costs_a_large_gain_nothing_and_a_small_one_the_step() {
    // The round trip does not change, and varies by a factor of two between blocks and arms: 0.78 to 1.3 is what blocks
    // can show of it.
    let world = |gain: f64, harm: f64| {
        move |trial: &SimulatedTrial<'_>| {
            let noise =
                [0.6, 1.5, 0.9, 1.2, 0.7, 1.4, 1.1][(trial.at as usize * 3 + usize::from(on(trial)) * 2) % 7];
            let (rate, harm) = if on(trial) { (gain, harm) } else { (1.0, 1.0) };
            TrialFigures { latency_ns: Nanos((50_000.0 * noise * harm) as u64), ..scaled(rate) }
        }
    };
    let run = |gain, harm| drive(0, usual_rules(), world(gain, harm));
    assert!(run(50.0, 1.0).step("k").kept, "{:?}", run(50.0, 1.0).step("k"));
    // The mean may lie above the usual margin because of noise, as long as it is not shown to.
    assert!(run(50.0, 1.13).step("k").kept, "{:?}", run(50.0, 1.13).step("k"));
    // Nor does a loss that is shown, where it is small beside the gain: in the step, and in the final check.
    assert!(run(50.0, 1.25).step("k").kept, "{:?}", run(50.0, 1.25).step("k"));
    let small = run(1.3, 1.0);
    assert_eq!(small.step("k").answer, StepAnswer::Undecided, "{:?}", small.step("k"));
    let harmful = run(50.0, 3.0);
    assert_eq!(harmful.step("k").answer, StepAnswer::Harms, "{:?}", harmful.step("k"));
}

#[test]
fn beside_a_large_gain_bad_trials_count_if_the_candidate_is_shown_to_have_more() {
    // Of the round trips of both arms one in five is bad, as on a machine that others use; the candidate has one more
    // in each two blocks.
    let world = |gain: f64, length: u64| {
        move |trial: &SimulatedTrial<'_>| {
            let both = trial.number.is_multiple_of(5);
            let more = on(trial) && trial.at.is_multiple_of(2) && trial.number % 8 < 2;
            let latency_ns = Nanos(if more {
                length
            } else if both {
                120_000
            } else {
                50_000
            });
            TrialFigures { latency_ns, ..scaled(if on(trial) { gain } else { 1.0 }) }
        }
    };
    let run = |gain, length| drive(0, usual_rules(), world(gain, length));
    assert!(run(50.0, 120_000).step("k").kept, "{:?}", run(50.0, 120_000).step("k"));
    assert!(!run(1.3, 120_000).step("k").kept, "{:?}", run(1.3, 120_000).step("k"));
    assert!(!run(50.0, 2_000_000).step("k").kept, "{:?}", run(50.0, 2_000_000).step("k"));
}

#[test]
fn guards_hold_on_44_trials_of_the_candidate_and_no_fewer() {
    for (fine, blocks) in [(true, 11), (false, 22)] {
        let rules = LadderRules { fine, ..usual_rules() };
        let run = drive(0, rules, |trial| scaled(if on(trial) { 1.5 } else { 1.0 }));
        assert_eq!((run.step("k").kept, run.step("k").blocks), (true, blocks));
    }
}

#[test]
fn a_harmless_change_is_kept_at_the_last_look_and_a_harmful_one_given_up_at_the_first() {
    let run = |rate| drive(0, usual_rules(), move |trial| scaled(if on(trial) { rate } else { 1.0 }));
    let (good, bad) = (run(2.0), run(0.5));
    assert_eq!((good.step("k").answer, good.step("k").blocks), (StepAnswer::Helps, 11));
    assert_eq!((bad.step("k").answer, bad.step("k").blocks), (StepAnswer::Harms, 4));
}

#[test]
fn blocks_that_agree_while_their_trials_do_not_prove_nothing() {
    // Each block's mean is 4 % better; the trials of an arm are a factor of four apart.
    let run = drive(0, usual_rules(), |trial| {
        let factors = [[0.5, 2.0, 2.0, 0.5], [2.0, 0.5, 2.0, 0.5], [0.5, 0.5, 2.0, 2.0]];
        let apart = factors[trial.at as usize % 3][(trial.number as usize - 1) % 4];
        scaled(apart * if on(trial) { 1.04 } else { 1.0 })
    });
    let step = run.step("k");
    assert!(!step.kept, "{step:?}");
}

#[test]
fn a_cold_start_is_no_noise() {
    // The first trial of a block takes twice as long, whichever arm it belongs to.
    let run = drive(0, usual_rules(), |trial| {
        scaled(if on(trial) { 1.1 } else { 1.0 } * if trial.place == 0 { 0.5 } else { 1.0 })
    });
    assert!(run.step("k").kept, "{:?}", run.step("k"));
}

#[test]
fn a_verdict_holds_with_the_discarded_blocks_put_back() {
    // In every seventh block neighbours take a third of the time, and the change costs as much there as it gains
    // elsewhere.
    let run = drive(3, usual_rules(), |trial| {
        let stolen = trial.at % 7 == 6;
        let rate = match (on(trial), stolen) {
            (false, _) => 1.0,
            (true, false) => 1.1,
            (true, true) => 0.4,
        };
        TrialFigures { steal: if stolen { 0.3 } else { 0.0 }, ..scaled(rate) }
    });
    let step = run.step("k");
    assert!(step.discarded > 0 && !step.kept && step.reason.contains("left out"), "{step:?}");
}

#[test]
fn an_advantage_of_one_arm_for_a_minute_is_not_confirmed() {
    // The candidate's arm gains 30 % in the run's first 40 blocks, whatever its setting. The knob does nothing.
    let run = drive(0, usual_rules(), |trial| {
        scaled(if trial.arm == Arm::Candidate && trial.at < 40 { 1.3 } else { 1.0 })
    });
    let step = run.step("k");
    assert_eq!(step.answer, StepAnswer::Helps, "it cannot be noticed while it lasts");
    assert!(!step.kept || step.confirmed == Some(false), "{step:?}");
}

#[test]
fn a_kept_step_is_confirmed_by_blocks_far_apart() {
    for others in [0, 20] {
        let run = drive(others, usual_rules(), |trial| scaled(if on(trial) { 1.3 } else { 1.0 }));
        let step = run.step("k");
        assert_eq!((step.kept, step.confirmed), (true, Some(true)), "{step:?}");
        let blocks = (0..).zip(&run.pairs);
        let fresh: Vec<u32> =
            blocks.filter(|(_, pair)| pair.step.starts_with("without")).map(|(at, _)| at).collect();
        assert!(fresh.len() >= 8, "{fresh:?}");
        let (first, last) = (fresh[0], fresh[fresh.len() - 1]);
        assert!(last - first > 80 && fresh.windows(2).all(|two| two[1] - two[0] >= 5), "{fresh:?}");
    }
}

#[test]
fn a_stream_may_fill_its_queue_twice_and_by_five_milliseconds_but_not_both_beyond() {
    let kept = |usual_ns: u64, own_ns: u64| {
        let run = drive(0, usual_rules(), |trial| TrialFigures {
            loaded_latency_ns: Some(Nanos(if on(trial) { own_ns } else { usual_ns })),
            ..scaled(if on(trial) { 1.5 } else { 1.0 })
        });
        run.step("k").kept
    };
    assert!(kept(100_000, 4_000_000), "forty times as long, but not 5 ms more");
    assert!(kept(20_000_000, 39_000_000), "19 ms more, but not twice as long");
    assert!(!kept(20_000_000, 41_000_000));
}

#[test]
fn a_run_whose_blocks_vary_more_than_their_trials_says_so() {
    let run = |sway: f64| {
        drive(20, usual_rules(), move |trial| {
            let own = [1.0, 1.03, 0.97, 1.01, 0.99][trial.number as usize % 5];
            let whole = if trial.arm == Arm::Candidate && trial.at % 6 < 3 { sway } else { 1.0 };
            scaled(own * whole)
        })
    };
    let doubts = |run: SimulatedRun| run.findings.doubts;
    assert_eq!(doubts(run(1.0)), [""; 0]);
    assert!(doubts(run(1.3)).iter().any(|doubt| doubt.contains("from one block of trials to the next")));
}
