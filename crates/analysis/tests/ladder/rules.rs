//! Tests of the ladder's rules, one by one.

use std::collections::BTreeSet;

use landspeed_analysis::{Ladder, LadderAction, LadderRules};
use landspeed_record::units::Nanos;
use landspeed_record::{Candidate, Cell, StepAnswer, StepSummary, TrialFigures};

use crate::drive::{BLOCK, BROKEN, candidate, drive, noisy, on, worth};

fn interacting(knob: &str, rank: u32, with: &[&str]) -> Candidate {
    let interacts = with.iter().map(|knob| (*knob).to_owned()).collect();
    Candidate { interacts, ..candidate(knob, "on", rank) }
}

#[test]
fn windows_are_reopened_and_kept_after_tso() {
    let world = |c: &Cell| match (on(c, "tso"), on(c, "window")) {
        (true, true) => 4.2,
        (true, false) => 3.0,
        _ => 1.0,
    };
    let candidates = vec![interacting("window", 1, &["tso"]), candidate("tso", "on", 2)];
    let run = drive(candidates, LadderRules::default(), worth(world));
    let windows: Vec<&StepSummary> = run.findings.steps.iter().filter(|s| s.knob == "window").collect();
    assert_eq!(windows.len(), 2);
    assert!(!windows[0].kept && !windows[0].reopened);
    assert!(windows[1].kept && windows[1].reopened, "{:?}", windows[1]);
    assert!(on(&run.findings.final_cell, "window"));
    let gain = run.findings.gain.rate.expect("measured in the end");
    assert!(gain.low > 4.1 && gain.high < 4.3, "{gain:?}");
    let left_out = windows[1].left_out.expect("measured in the end");
    assert!(left_out.low > 1.35 && left_out.high < 1.45, "{left_out:?}");
    assert!(run.used <= Nanos::secs(300));
}

#[test]
fn a_step_made_useless_by_a_later_one_is_dropped() {
    let world = |c: &Cell| match (on(c, "tso"), c.flow.contains_key("mtu")) {
        (true, _) => 4.0,
        (false, true) => 2.0,
        _ => 1.0,
    };
    let candidates = vec![candidate("mtu", "9000", 1), candidate("tso", "on", 2)];
    let run = drive(candidates, LadderRules::default(), worth(world));
    let mtu = run.step("mtu");
    assert!(!mtu.kept && mtu.answer == StepAnswer::Helps && mtu.reason.contains("dropped"), "{mtu:?}");
    assert!(mtu.left_out.is_some_and(|e| e.high < 1.02));
    assert!(!run.findings.final_cell.flow.contains_key("mtu"));
    let tso = run.step("tso");
    assert!(tso.kept && tso.left_out.is_some_and(|e| e.low > 3.8), "measured again after the drop: {tso:?}");
}

#[test]
fn a_pair_that_interacts_is_measured_as_a_square() {
    let world = |c: &Cell| match (on(c, "csum"), on(c, "zerocopy")) {
        (true, true) => 2.0,
        (true, false) => 1.4,
        (false, true) => 1.1,
        (false, false) => 1.0,
    };
    let candidates = vec![interacting("csum", 1, &["zerocopy"]), candidate("zerocopy", "on", 2)];
    let run = drive(candidates, LadderRules::default(), worth(world));
    assert!(run.noted("2x2 of") && run.noted("they interact"), "{:?}", run.notes);
}

#[test]
fn values_of_one_knob_are_tried_against_the_kept_one() {
    let world = |c: &Cell| match c.flow.get("mtu").map(String::as_str) {
        Some("8160") => 1.7,
        Some("9000") => 2.5,
        Some("16000") => 2.51,
        _ => 1.0,
    };
    let mtus = ["8160", "9000", "16000"].iter().enumerate().map(|(i, v)| candidate("mtu", v, i as u32));
    let run = drive(mtus.collect(), LadderRules::default(), worth(world));
    let steps = &run.findings.steps;
    assert_eq!((steps[1].from.as_str(), steps[2].from.as_str()), ("8160", "9000"));
    assert!(!steps[0].kept && steps[0].reason.contains("replaced"), "{:?}", steps[0]);
    assert!(steps[1].kept && !steps[2].kept);
}

#[test]
fn a_step_that_costs_round_trip_or_processor_is_not_kept() {
    let world = |c: &Cell| {
        let slow = if on(c, "coalesce") { 3.0 } else { 1.0 };
        let cost = if on(c, "spin") { 0.6 } else { 1.0 };
        let rate = if slow > 1.0 || cost < 1.0 { 1.5 } else { 1.0 };
        [rate, cost, slow, 0.0]
    };
    let candidates = vec![candidate("coalesce", "on", 1), candidate("spin", "on", 2)];
    let run = drive(candidates, LadderRules::default(), noisy(world));
    for knob in ["coalesce", "spin"] {
        let step = run.step(knob);
        assert!(
            step.answer == StepAnswer::Harms && !step.kept && step.reason.contains("costs too much"),
            "{step:?}"
        );
    }
}

#[test]
fn small_harms_may_not_add_up_against_the_start() {
    // Each costs 6 % of bytes per CPU-second: one is within the guard, two are not.
    let world = |c: &Cell| {
        let n = c.flow.len() as i32;
        [1.3_f64.powi(n), 0.94_f64.powi(n), 1.0, 0.0]
    };
    let candidates = (0..3).map(|i| candidate(&format!("k{i}"), "on", i)).collect();
    let run = drive(candidates, LadderRules::default(), noisy(world));
    assert_eq!(run.findings.final_cell.flow.len(), 1);
    assert!(run.step("k1").reason.contains("against the start"), "{}", run.step("k1").reason);
}

#[test]
fn placebos_come_first_and_last_and_toggle_as_candidates_do() {
    let placebos = vec![candidate("early", "same", 0), candidate("late", "same", 0)];
    let candidates = vec![candidate("a", "on", 1), candidate("b", "on", 2)];
    let rules = LadderRules { placebos, ..LadderRules::default() };
    let run = drive(candidates, rules, worth(|_| 1.0));
    assert_eq!(run.order(), ["early", "a", "b", "late"]);
    assert!(run.step("late").placebo && !run.step("late").kept && run.findings.void.is_none());
    let toggled = |knob: &str| run.pairs.iter().any(|p| p.step.contains(knob) && p.incumbent != p.candidate);
    assert!(toggled("placebo early") && toggled("placebo late"));
}

#[test]
fn a_kept_placebo_voids_the_run_loudly() {
    // In this world toggling itself favours the candidate's arm, which a change to an equivalent value shows.
    let rules = LadderRules { placebos: vec![candidate("early", "same", 0)], ..LadderRules::default() };
    let run = drive(Vec::new(), rules, worth(|c| if c.flow.is_empty() { 1.0 } else { 1.3 }));
    assert!(run.findings.void.as_deref().is_some_and(|v| v.contains("placebo")));
    assert!(run.noted("VOID"));
}

#[test]
fn skips_failures_and_no_room_are_distinguished() {
    let skip = |knob: &str, cannot_matter| Candidate {
        skip: Some("veth has no rings".into()),
        cannot_matter,
        ..candidate(knob, "on", 1)
    };
    let mut candidates = vec![skip("rings", false), skip("pause", true), candidate(BROKEN, "on", 1)];
    candidates.extend((0..60).map(|i| candidate(&format!("k{i}"), "on", 10 + i)));
    let rules = LadderRules { budget: Nanos::secs(120), ..LadderRules::default() };
    let run = drive(candidates, rules, worth(|_| 1.0));
    assert_eq!(run.step("rings").answer, StepAnswer::Skipped);
    assert_eq!(run.step("pause").answer, StepAnswer::NotTried);
    assert_eq!((run.step(BROKEN).answer, run.step(BROKEN).blocks), (StepAnswer::Skipped, 0));
    assert_eq!(run.step("k59").answer, StepAnswer::NotTried);
    assert!(run.step("k59").reason.contains("budget"));
    assert_eq!(run.findings.steps.len(), 63);
    assert!(run.used <= Nanos::secs(120));
    let finals = run.pairs.iter().filter(|p| p.step == "final").count();
    assert!(finals >= 12, "{finals}: a quarter of the budget is for the final check");
}

#[test]
fn a_block_that_stands_out_is_discarded_and_reported() {
    let mut world = worth(|c| if on(c, "k") { 1.5 } else { 1.0 });
    let run = drive(vec![candidate("k", "on", 2)], LadderRules::default(), |trial| TrialFigures {
        steal: if trial.at == 6 { 0.1 } else { 0.0 },
        ..world(trial)
    });
    assert_eq!((run.step("k").answer, run.step("k").discarded), (StepAnswer::Helps, 1));
    assert!(run.step("k").reason.contains("with the 1 blocks that were left out"), "{:?}", run.step("k"));
    assert!(run.noted("steal 10.0 %"));
}

#[test]
fn where_neighbours_always_take_a_third_steps_are_still_decided() {
    let world = |c: &Cell| if on(c, "k") { [1.5, 1.5, 1.0, 0.3] } else { [1.0, 1.0, 1.0, 0.3] };
    let run = drive(vec![candidate("k", "on", 1)], LadderRules::default(), noisy(world));
    let step = run.step("k");
    assert_eq!((step.answer, step.discarded), (StepAnswer::Helps, 0));
    assert!(run.noted("Neighbours take about 30 % of this machine's processor time: steps need"));
}

#[test]
fn one_knob_is_measured_until_it_is_decided() {
    let rules = LadderRules { budget: Nanos::secs(1_200), ..LadderRules::default() };
    let run = drive(vec![candidate("k", "on", 1)], rules, worth(|_| 1.0));
    assert_eq!(run.step("k").answer, StepAnswer::NoEffect);
}

#[test]
fn a_stopped_run_says_so_and_keeps_its_results() {
    let mut ladder = Ladder::new(Cell::default(), vec![candidate("k", "on", 1)], LadderRules::default());
    assert!(matches!(ladder.next(Nanos(0)), LadderAction::Measure(_)));
    ladder.stop();
    let mut decided = Vec::new();
    let findings = loop {
        match ladder.next(BLOCK) {
            LadderAction::Decided(line) => decided.push(line.summary),
            LadderAction::Note(_) => {}
            LadderAction::Measure(_) | LadderAction::Watch(_) => panic!("a stopped ladder measures nothing"),
            LadderAction::Finished(findings) => break findings,
        }
    };
    assert_eq!(decided[0].answer, StepAnswer::Undecided);
    assert!(findings.void.is_some_and(|v| v.contains("stopped")));
    assert_eq!(findings.gain.rate, None);
}

#[test]
fn orders_are_balanced_and_asking_twice_changes_nothing() {
    let run = drive(vec![candidate("k", "on", 1)], LadderRules::default(), worth(|_| 1.0));
    for blocks in run.pairs.chunk_by(|x, y| x.step == y.step) {
        for two in blocks.chunks_exact(2) {
            assert_ne!(two[0].candidate_first, two[1].candidate_first);
        }
    }
    let mut ladder = Ladder::new(Cell::default(), vec![candidate("k", "on", 1)], LadderRules::default());
    let (LadderAction::Measure(x), LadderAction::Measure(y)) = (ladder.next(Nanos(0)), ladder.next(Nanos(5)))
    else {
        panic!("a block is wanted")
    };
    assert_eq!(x, y);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 32, ..Default::default() })]

    /// Whatever the candidates are worth, the run ends in its budget, every candidate has a line, and the final
    /// setting is the start with what is reported as kept.
    #[test]
    fn any_run_ends_in_its_budget_and_says_what_it_did(
        worths in proptest::collection::vec(0.5..2.0f64, 0..20),
        budget in 40u64..400,
        seed in proptest::prelude::any::<u64>(),
    ) {
        let candidates: Vec<Candidate> =
            (0..worths.len()).map(|i| interacting(&format!("k{i}"), i as u32, &["k1", "k3"])).collect();
        let world = |c: &Cell| {
            let at = |(i, w): (usize, &f64)| if on(c, &format!("k{i}")) { *w } else { 1.0 };
            worths.iter().enumerate().map(at).product()
        };
        let rules = LadderRules { budget: Nanos::secs(budget), seed, ..LadderRules::default() };
        let run = drive(candidates.clone(), rules, worth(world));
        proptest::prop_assert!(run.used <= Nanos::secs(budget));
        let mut cell = Cell::default();
        for (i, candidate) in candidates.iter().enumerate() {
            let step = run.step(&format!("k{i}"));
            proptest::prop_assert!(!step.kept || step.answer == StepAnswer::Helps);
            if step.kept {
                cell = cell.with(&candidate.change);
            }
        }
        proptest::prop_assert_eq!(cell, run.findings.final_cell);
        let blocks: BTreeSet<_> = run.pairs.iter().map(|p| (p.step.clone(), p.block)).collect();
        proptest::prop_assert_eq!(blocks.len(), run.pairs.len(), "no two blocks share a name");
    }
}
