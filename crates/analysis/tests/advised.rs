//! A ladder that is told what holds the path back: when it asks, what it tries first, and what stays as it was.

use landspeed_analysis::{Action, BlockResult, Findings, Ladder, Rules};
use landspeed_record::{Candidate, Cell, Figures, Settings, StepSummary, Verdict, VerdictLine};
use landspeed_units::{BitRate, BytesPerCpuSecond, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const BLOCK: Nanos = Nanos::millis(1_600);
const LOOK: Nanos = Nanos::millis(2_500);

/// What a cell is worth.
type World = fn(&Cell) -> f64;
/// Knob, value, expected ratio.
type Named = (&'static str, &'static str, Option<f64>);
/// Cause, share of time, remedies.
type Said = (&'static str, f64, Vec<Named>);
/// What is said of a cell.
type Judge = fn(&Cell) -> Vec<Said>;

struct Run {
    findings: Findings,
    watched: Vec<Cell>,
    notes: Vec<String>,
}

impl Run {
    /// Knobs in the order of their first blocks or answers.
    fn order(&self) -> Vec<&str> {
        self.findings.steps.iter().map(|step| step.knob.as_str()).collect()
    }

    fn step(&self, knob: &str) -> &StepSummary {
        self.findings.steps.iter().find(|step| step.knob == knob).expect("the step is reported")
    }
}

fn drive(candidates: Vec<Candidate>, rules: Rules, world: World, judge: Judge) -> Run {
    let mut ladder = Ladder::new(Cell::default(), candidates, rules);
    let mut dice = ChaCha8Rng::seed_from_u64(7);
    let mut trial = |cell: &Cell| Figures {
        rate_bps: BitRate(1e9 * world(cell) * (1.0 + 0.02 * (dice.random::<f64>() - 0.5))),
        bytes_per_cpu_s: BytesPerCpuSecond(1e8 * world(cell) * (1.0 + 0.02 * (dice.random::<f64>() - 0.5))),
        latency_ns: Nanos(50_000),
        ..Figures::default()
    };
    let (mut watched, mut notes, mut used) = (Vec::new(), Vec::new(), Nanos(0));
    for _ in 0..5_000 {
        match ladder.next(used) {
            Action::Watch(cell) => {
                used += LOOK;
                let verdict = verdict(&judge(&cell));
                let number = watched.len() as u32;
                ladder.advise(&VerdictLine { number, verdict, ..VerdictLine::default() });
                watched.push(*cell);
            }
            Action::Measure(pair) => {
                used += BLOCK;
                let figures = pair.arms().into_iter().map(|arm| trial(pair.cell(arm))).collect();
                ladder.observe(BlockResult {
                    step: pair.step,
                    figures,
                    candidate_first: pair.candidate_first,
                    took: BLOCK,
                    remarks: Vec::new(),
                });
            }
            Action::Decided(_) => {}
            Action::Note(text) => notes.push(text),
            Action::Finished(findings) => return Run { findings: *findings, watched, notes },
        }
    }
    panic!("the ladder does not end");
}

fn verdict(findings: &[Said]) -> Verdict {
    let findings: Vec<serde_json::Value> = findings
        .iter()
        .map(|(cause, weight, remedies)| {
            let remedies: Vec<serde_json::Value> = remedies
                .iter()
                .map(|(knob, value, ratio)| {
                    serde_json::json!({ "knob": knob, "value": value, "expected_ratio": ratio })
                })
                .collect();
            serde_json::json!({ "cause": cause, "summary": "", "confidence": 0.9, "weight": weight, "evidence": [],
                "try": remedies })
        })
        .collect();
    serde_json::from_value(serde_json::json!({ "findings": findings })).expect("a verdict")
}

fn candidate(knob: &str, rank: u32) -> Candidate {
    let flow = Settings::from([(knob.to_owned(), "on".to_owned())]);
    let change = Cell { flow, ..Cell::default() };
    Candidate { knob: knob.into(), value: "on".into(), change, rank, ..Candidate::default() }
}

fn four() -> Vec<Candidate> {
    vec![candidate("mtu", 10), candidate("window", 20), candidate("tso", 30), candidate("gro", 40)]
}

fn rules() -> Rules {
    Rules { watch_time: Some(LOOK), ..Rules::default() }
}

/// TSO is worth 2, GRO 1.3 once TSO is on.
fn world(cell: &Cell) -> f64 {
    let on = |knob: &str| cell.flow.contains_key(knob);
    let joined = if on("tso") && on("gro") { 1.3 } else { 1.0 };
    if on("tso") { 2.0 * joined } else { 1.0 }
}

#[test]
fn what_holds_the_path_back_is_tried_first_and_asked_again_after_each_kept_step() {
    let judge: Judge = |cell| match cell.flow.contains_key("tso") {
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
    assert_eq!((said.verdict, said.expected_ratio), (1, Some(1.4)), "by the verdict on what stood then");
    assert_eq!(run.step("mtu").advised, None);
}

#[test]
fn a_wrong_verdict_costs_time_and_keeps_nothing() {
    let judge: Judge = |_| vec![("receive-buffer", 0.9, vec![("window", "on", Some(9.0))])];
    let run = drive(four(), rules(), world, judge);
    assert_eq!(run.order()[0], "window");
    assert!(!run.step("window").kept && run.step("tso").kept && run.step("gro").kept);
    let plain = drive(four(), Rules::default(), world, judge);
    assert_eq!(
        plain.order(),
        ["mtu", "window", "tso", "gro"],
        "without looking the order is the literature's"
    );
    assert!(plain.watched.is_empty() && plain.findings.steps.iter().all(|step| step.advised.is_none()));
    assert_eq!(plain.findings.final_cell, run.findings.final_cell);
}

#[test]
fn what_stands_already_passes_its_expectation_on() {
    let judge: Judge = |_| {
        let fixed = ("rcvbuf", "0", Some(3.0));
        vec![("receive-buffer", 0.6, vec![("", "", None), fixed, ("window", "", None), ("tso", "on", None)])]
    };
    let mut ladder = Ladder::new(
        Cell { flow: Settings::from([("rcvbuf".into(), "0".into())]), ..Cell::default() },
        four(),
        rules(),
    );
    let Action::Watch(cell) = ladder.next(Nanos(0)) else { panic!("it looks first") };
    let line = VerdictLine { verdict: verdict(&judge(&cell)), ..VerdictLine::default() };
    ladder.advise(&line);
    let Action::Measure(pair) = ladder.next(LOOK) else { panic!("a block") };
    assert!(pair.step.contains("window=on"), "{}", pair.step);
    ladder.stop();
    let findings = loop {
        if let Action::Finished(findings) = ladder.next(LOOK) {
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
    // Room for two looks; three steps are worth keeping.
    let all_help: World = |cell| 1.5_f64.powi(cell.flow.len() as i32);
    let judge: Judge = |_| vec![("offloads-off", 0.5, vec![("gro", "on", None), ("tso", "on", None)])];
    let rules = Rules { watch_share: 0.02, ..rules() };
    let run = drive(four(), rules, all_help, judge);
    assert_eq!(run.watched.len(), 2, "{:?}", run.notes);
    assert!(run.notes.iter().any(|note| note.contains("2 % of the budget")), "{:?}", run.notes);
    let tried = run.findings.steps.iter().filter(|step| step.blocks > 0).count();
    assert!(tried >= 3, "the rest goes on by the literature");
}

#[test]
fn there_is_no_look_without_a_step_to_follow() {
    let judge: Judge = |_| Vec::new();
    assert!(drive(Vec::new(), rules(), world, judge).watched.is_empty());
    let one = drive(vec![candidate("tso", 1)], rules(), world, judge);
    assert_eq!(one.watched.len(), 1, "nothing waits once it was kept");
    let short = Rules { budget: Nanos::secs(12), ..rules() };
    assert!(drive(four(), short, world, judge).watched.is_empty());
}
