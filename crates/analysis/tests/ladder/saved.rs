//! Tests that a saved record gives the summary that the run gave, and that two records can be compared.

use landspeed_analysis::{LadderFindings, LadderRules, diff, summary};
use landspeed_record::units::Nanos;
use landspeed_record::{Header, Line, Record, TrialFigures};

use crate::drive::{candidate, drive, on, worth};

/// Runs a ladder with one useful candidate, in which neighbours take half of a trial now and then.
fn recorded(useful: f64, seed: u64) -> (Record, LadderFindings) {
    let rules = LadderRules { budget: Nanos::secs(100), seed, ..LadderRules::default() };
    let mut world = worth(|cell| if on(cell, "tso") { useful } else { 1.0 });
    let run = drive(vec![candidate("tso", "on", 0)], rules, |trial| TrialFigures {
        steal: if (u64::from(trial.number) + seed).is_multiple_of(97) { 0.5 } else { 0.0 },
        ..world(trial)
    });
    (run.record, run.findings)
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
    let record =
        Record { header: Header { kind: "measure".into(), ..Header::default() }, ..Record::default() };
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
    let [before, after] = faster.final_.of.map(|means| means.rate.unwrap());
    assert!((after / before / faster.final_.rate.unwrap().ratio - 1.0).abs() < 1e-9, "{before} {after}");
    assert_eq!(faster.paths, None);
}

#[test]
fn two_records_of_different_paths_are_distinguished() {
    let (a, _) = recorded(2.0, 5);
    let mut b = a.clone();
    b.header.topology = "local dtn9".into();
    let paths = diff(&a, &b).paths.expect("different paths");
    assert!(paths[0] != paths[1] && paths[1].contains("local dtn9"), "{paths:?}");
    // The same names on other machines are another path too.
    let mut c = a.clone();
    for line in &mut c.lines {
        if let Line::Host { facts, .. } = line {
            facts.hostname = "elsewhere".into();
        }
    }
    let has_hosts = a.lines.iter().any(|line| matches!(line, Line::Host { .. }));
    assert_eq!(diff(&a, &c).paths.is_some(), has_hosts);
}
