//! Tests of a ladder that gets verdicts on what holds the path back: when it requests one, which candidates it tries
//! first, and what a verdict does not change.

use landspeed_analysis::{Ladder, LadderAction, LadderRules, Metric};
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{Candidate, Cell, PathRate, Settings, Verdict, VerdictLine};
use serde_json::{Value, json};

use crate::drive::{LOOK, SimulatedRun, candidate, drive_advised, on, worth};

/// Returns the worth of a cell.
type CellWorth = fn(&Cell) -> f64;
/// A knob, a value and the expected ratio.
type NamedRemedy = (&'static str, &'static str, Option<f64>);
/// A cause, its share of time and its remedies.
type NamedFinding = (&'static str, f64, Vec<NamedRemedy>);
/// Returns the findings for a cell.
type FindingsJudge = fn(&Cell) -> Vec<NamedFinding>;

fn drive(
    candidates: Vec<Candidate>,
    rules: LadderRules,
    world: CellWorth,
    judge: FindingsJudge,
) -> SimulatedRun {
    drive_advised(candidates, rules, worth(world), |cell| verdict(&judge(cell)))
}

fn verdict(findings: &[NamedFinding]) -> Verdict {
    let remedy =
        |(knob, value, ratio): &NamedRemedy| json!({ "knob": knob, "value": value, "expected_ratio": ratio });
    let finding = |(cause, weight, remedies): &NamedFinding| {
        let remedies: Vec<Value> = remedies.iter().map(remedy).collect();
        json!({ "cause": cause, "summary": "", "confidence": 0.9, "weight": weight, "evidence": [], "try": remedies })
    };
    let findings: Vec<Value> = findings.iter().map(finding).collect();
    serde_json::from_value(json!({ "findings": findings })).expect("a verdict")
}

fn four() -> Vec<Candidate> {
    [("mtu", 10), ("window", 20), ("tso", 30), ("gro", 40)]
        .map(|(knob, rank)| candidate(knob, "on", rank))
        .into()
}

fn rules() -> LadderRules {
    LadderRules { watch_time: Some(LOOK), ..LadderRules::default() }
}

/// TSO is worth 2, and GRO 1.3 once TSO is on.
fn world(cell: &Cell) -> f64 {
    match (on(cell, "tso"), on(cell, "gro")) {
        (true, true) => 2.6,
        (true, false) => 2.0,
        _ => 1.0,
    }
}

#[test]
fn the_verdict_is_tried_first_and_renewed_after_each_kept_step() {
    let judge: FindingsJudge = |cell| match cell.flow.contains_key("tso") {
        false => vec![("offloads-off", 0.5, vec![("tso", "on", Some(2.2)), ("gro", "on", None)])],
        true => vec![("softirq-core", 0.3, vec![("gro", "on", Some(1.4))])],
    };
    let run = drive(four(), rules(), world, judge);
    assert_eq!(run.order(), ["tso", "gro", "mtu", "window"]);
    let kept: Vec<bool> = ["tso", "gro", "mtu", "window"].iter().map(|knob| run.step(knob).kept).collect();
    assert_eq!(kept, [true, true, false, false]);
    assert_eq!(run.watched.len(), 3, "at the start and after two kept steps");
    assert!(run.watched[0].flow.is_empty() && run.watched[2].flow.len() == 2);
    let said = run.step("tso").advised.expect("it was advised");
    assert_eq!((said.verdict, said.weight, said.expected_ratio), (0, 0.5, Some(2.2)));
    let said = run.step("gro").advised.expect("it was advised");
    assert_eq!((said.verdict, said.expected_ratio), (1, Some(1.4)), "by the verdict at that time");
    assert_eq!(run.step("mtu").advised, None);
}

#[test]
fn a_wrong_verdict_costs_time_and_keeps_nothing() {
    let judge: FindingsJudge = |_| vec![("receive-buffer", 0.9, vec![("window", "on", Some(9.0))])];
    let run = drive(four(), rules(), world, judge);
    assert_eq!(run.order()[0], "window");
    assert!(!run.step("window").kept && run.step("tso").kept && run.step("gro").kept);
    let plain = drive(four(), LadderRules::default(), world, judge);
    assert_eq!(
        plain.order(),
        ["mtu", "window", "tso", "gro"],
        "without looking the order is the literature's"
    );
    assert!(plain.watched.is_empty() && plain.findings.steps.iter().all(|step| step.advised.is_none()));
    assert_eq!(plain.findings.final_cell, run.findings.final_cell);
}

#[test]
fn a_value_that_is_set_already_passes_its_expectation_on() {
    let judge: FindingsJudge = |_| {
        let fixed = ("rcvbuf", "0", Some(3.0));
        vec![("receive-buffer", 0.6, vec![("", "", None), fixed, ("window", "", None), ("tso", "on", None)])]
    };
    let mut ladder = Ladder::new(
        Cell { flow: Settings::from([("rcvbuf".into(), "0".into())]), ..Cell::default() },
        four(),
        rules(),
    );
    let LadderAction::Watch(cell) = ladder.next(Nanos(0)) else { panic!("it looks first") };
    let line = VerdictLine { verdict: verdict(&judge(&cell)), ..VerdictLine::default() };
    ladder.advise(&line);
    let LadderAction::Measure(pair) = ladder.next(LOOK) else { panic!("a block") };
    assert!(pair.step.contains("window=on"), "{}", pair.step);
    ladder.stop();
    let findings = loop {
        if let LadderAction::Finished(findings) = ladder.next(LOOK) {
            break findings;
        }
    };
    let expected = |knob: &str| {
        let step = findings.steps.iter().find(|step| step.knob == knob).expect("reported");
        step.advised.and_then(|advised| advised.expected_ratio)
    };
    assert_eq!((expected("window"), expected("tso")), (Some(3.0), None));
}

#[test]
fn looking_keeps_to_its_share_of_the_budget() {
    // There is room for two verdicts; three steps are worth keeping.
    let all_help: CellWorth = |cell| 1.5_f64.powi(cell.flow.len() as i32);
    let judge: FindingsJudge =
        |_| vec![("offloads-off", 0.5, vec![("gro", "on", None), ("tso", "on", None)])];
    let rules = LadderRules { watch_share: 0.02, ..rules() };
    let run = drive(four(), rules, all_help, judge);
    assert_eq!(run.watched.len(), 2, "{:?}", run.notes);
    assert!(run.notes.iter().any(|note| note.contains("2 % of the budget")), "{:?}", run.notes);
    let tried = run.findings.steps.iter().filter(|step| step.blocks > 0).count();
    assert!(tried >= 3, "the rest follows the literature");
}

#[test]
fn there_is_no_look_without_a_step_to_follow() {
    let judge: FindingsJudge = |_| Vec::new();
    assert!(drive(Vec::new(), rules(), world, judge).watched.is_empty());
    let one = drive(vec![candidate("tso", "on", 1)], rules(), world, judge);
    assert_eq!(one.watched.len(), 1, "nothing waits once it was kept");
    let short = LadderRules { budget: Nanos::secs(12), ..rules() };
    assert!(drive(four(), short, world, judge).watched.is_empty());
}

/// A path that is the limit itself: what a verdict names is tried, the rest is left out, and the run ends.
#[test]
fn a_path_that_carries_no_more_ends_the_search_for_rate() {
    let limited = |cell: &Cell| Verdict {
        path_rate: Some(PathRate {
            rate_bps: BitRate(191e6),
            proof: vec!["it queues".into()],
            ..PathRate::default()
        }),
        ..verdict(&[("bufferbloat", 0.9, if on(cell, "gro") { vec![] } else { vec![("gro", "on", None)] })])
    };
    let measured = |run: &SimulatedRun| run.findings.steps.iter().filter(|step| step.blocks > 0).count();
    let run = drive_advised(four(), rules(), worth(|_| 1.0), limited);
    assert_eq!(measured(&run), 1);
    assert!(run.step("gro").blocks > 0 && run.noted("no host setting can raise it"));
    for knob in ["tso", "mtu", "window"] {
        assert_eq!(run.step(knob).reason, landspeed_analysis::PATH_LIMITS);
    }
    let costs = LadderRules { goal: Metric::Cost, ..rules() };
    assert_eq!(measured(&drive_advised(four(), costs, worth(|_| 1.0), limited)), 4, "cost can still be won");
}
