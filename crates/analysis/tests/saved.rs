//! A saved record gives the summary that the run gave, and two records can be compared.

use landspeed_analysis::{Action, BlockResult, Findings, Ladder, Rules, diff, summary};
use landspeed_record::{
    Arm, Candidate, Cell, EndpointOutcome, Figures, Header, Line, Record, Settings, Trial,
};
use landspeed_units::{BitRate, BytesPerCpuSecond, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn trial_line(step: &str, (block, position): (u32, u32), arm: Arm, cell: &Cell, figures: Figures) -> Line {
    Line::Trial(Box::new(Trial {
        step: step.into(),
        block,
        position,
        arm,
        at_ns: Nanos(0),
        cell: cell.clone(),
        a: EndpointOutcome::default(),
        b: EndpointOutcome::default(),
        figures,
    }))
}

/// A run with one useful candidate, recorded as the driver does, and what it found.
fn recorded(worth: f64, seed: u64) -> (Record, Findings) {
    let flow = Settings::from([("tso".to_owned(), "on".to_owned())]);
    let change = Cell { flow, ..Cell::default() };
    let candidate = Candidate { knob: "tso".into(), value: "on".into(), change, ..Candidate::default() };
    let rules = Rules { budget: Nanos::secs(100), seed, ..Rules::default() };
    let mut ladder = Ladder::new(Cell::default(), vec![candidate.clone()], rules);
    let mut lines = vec![Line::Plan { start: Cell::default(), candidates: vec![candidate] }];
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut used = Nanos(0);
    loop {
        match ladder.next(used) {
            Action::Measure(pair) => {
                used += Nanos::millis(1_600);
                let mut figures = Vec::new();
                for (position, arm) in pair.arms().into_iter().enumerate() {
                    let cell = pair.cell(arm);
                    let rate = 1e9 * if cell.flow.is_empty() { 1.0 } else { worth };
                    let noise = 1.0 + 0.04 * (dice.random::<f64>() - 0.5);
                    let seen = Figures {
                        rate_bps: BitRate(rate * noise),
                        bytes_per_cpu_s: BytesPerCpuSecond(rate / 20.0 * noise),
                        latency_ns: Nanos(50_000),
                        steal: if dice.random::<f64>() < 0.01 { 0.5 } else { 0.0 },
                        ..Figures::default()
                    };
                    lines.push(trial_line(&pair.step, (pair.block, position as u32), arm, cell, seen));
                    figures.push(seen);
                }
                let (step, candidate_first) = (pair.step.clone(), pair.candidate_first);
                ladder.observe(BlockResult {
                    step,
                    figures,
                    candidate_first,
                    took: Nanos::millis(1_600),
                    remarks: Vec::new(),
                });
            }
            Action::Decided(line) => lines.push(Line::Step(line)),
            Action::Watch(_) => {}
            Action::Note(text) => lines.push(Line::Note { text }),
            Action::Finished(findings) => {
                let header = Header { goal: "rate".into(), kind: "tune".into(), ..Header::default() };
                return (Record { header, lines, cut_off: false }, *findings);
            }
        }
    }
}

#[test]
fn a_saved_record_gives_the_same_figures() {
    let (record, findings) = recorded(2.0, 5);
    let summary = summary(&record, "run.jsonl").unwrap();
    assert_eq!(
        (summary.gain, summary.start, summary.final_),
        (findings.gain, findings.start, findings.final_)
    );
    assert_eq!(summary.steps, findings.steps);
    assert_eq!(summary.final_cell, findings.final_cell);
    assert!(summary.void.is_some(), "no summary line: the run ended before it was done");
    assert!(!summary.restored);
}

#[test]
fn verdicts_of_a_record_are_counted_and_an_older_one_has_none() {
    let (mut record, _) = recorded(2.0, 5);
    assert_eq!(summary(&record, "old.jsonl").unwrap().expectations, None);
    record.lines.insert(1, Line::Verdict(Box::default()));
    let expectations = summary(&record, "run.jsonl").unwrap().expectations.unwrap();
    assert_eq!((expectations.verdicts, expectations.advised, expectations.others), (1, 0, 1));
}

#[test]
fn a_record_without_a_plan_is_no_tuning_run() {
    let record = Record {
        header: Header { kind: "measure".into(), ..Header::default() },
        lines: Vec::new(),
        cut_off: false,
    };
    let why = summary(&record, "x.jsonl").unwrap_err().to_string();
    assert!(why.contains("x.jsonl") && why.contains("measure"), "{why}");
}

#[test]
fn two_records_differ_where_they_do() {
    let (a, _) = recorded(2.0, 5);
    let (same, _) = recorded(2.0, 6);
    let (better, _) = recorded(3.0, 7);
    let equal = diff(&a, &same);
    assert!(equal.final_.rate.is_some_and(|e| e.low < 1.01 && e.high > 0.99), "{:?}", equal.final_);
    assert!(equal.steps.iter().all(|s| !s.differs) && equal.settings.is_empty());
    let faster = diff(&a, &better);
    assert!(faster.start.rate.is_some_and(|e| e.low < 1.01 && e.high > 0.99));
    assert!(faster.final_.rate.is_some_and(|e| e.low > 1.45 && e.high < 1.55));
    assert!(faster.steps[0].differs);
}
