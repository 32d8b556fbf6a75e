//! Tests that records read back as written, that the known parts of newer records are read, and that malformed records
//! are refused with a specific error.

use std::path::Path;

use landspeed_record::{
    Cause, Cell, Contest, CpuUsage, Finding, GridEndReason, Header, Line, RECORD_FORMAT, RecordReadError,
    RecordWriter, Side, StepLine, StepSummary, Study, TcpSample, Verdict, VerdictLine, decode, read,
};
use serde_json::Value;

fn header(format: u32) -> Line {
    Line::Header(Header { format, kind: "tune".into(), ..Header::default() })
}

#[test]
fn reads_back_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/run.jsonl");
    let mut writer = RecordWriter::create(&path).unwrap();
    let note = Line::Note { text: "block 3 discarded: steal 12 %".into() };
    writer.write(&header(RECORD_FORMAT)).unwrap();
    writer.write(&note).unwrap();
    let record = read(&path).unwrap();
    assert_eq!((record.header.kind.as_str(), record.lines), ("tune", vec![note]));
    assert!(RecordWriter::create(&path).is_err(), "an existing record is never overwritten");
}

#[test]
fn a_cut_off_last_line_is_noticed_and_the_rest_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    RecordWriter::create(&path).unwrap().write(&header(RECORD_FORMAT)).unwrap();
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(b"{\"line\":\"note\",\"te");
    std::fs::write(&path, text).unwrap();
    let record = read(&path).unwrap();
    assert!(record.cut_off && record.lines.is_empty());
}

#[test]
fn newer_lines_are_skipped_and_newer_formats_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    let mut text = serde_json::to_string(&header(RECORD_FORMAT)).unwrap();
    text.push_str("\n{\"line\":\"hologram\",\"x\":1}\n");
    std::fs::write(&path, &text).unwrap();
    assert_eq!(read(&path).unwrap().lines, vec![]);
    std::fs::write(&path, serde_json::to_string(&header(RECORD_FORMAT + 1)).unwrap()).unwrap();
    assert!(matches!(read(&path), Err(RecordReadError::TooNew { .. })));
    std::fs::write(&path, "PK\x03\x04 not json\n").unwrap();
    assert!(matches!(read(&path), Err(RecordReadError::NoHeader { .. })));
}

/// Returns lines of a record, each with the text of an enum's value in the line.
fn lines_with_enums() -> [(Line, &'static str); 6] {
    let finding = Finding {
        cause: Cause::RandomLoss,
        at: String::new(),
        summary: String::new(),
        confidence: 1.0,
        weight: 1.0,
        allows_bps: None,
        evidence: vec![],
        remedies: vec![],
    };
    let verdict = Verdict { findings: vec![finding], ..Verdict::default() };
    let verdict = VerdictLine { verdict, ..VerdictLine::default() };
    let (incumbent, candidate) = (Cell::default(), Cell::default());
    let step = StepLine { summary: StepSummary::default(), incumbent, candidate };
    let study = Study { contests: vec![Contest::default()], ..Study::default() };
    [
        (Line::Verdict(Box::new(verdict)), "random-loss"),
        (Line::Grid(Box::default()), "goodput_bps"),
        (Line::GridEnd(GridEndReason::Blocks), "blocks"),
        (Line::Step(Box::new(step)), "not-tried"),
        (Line::Study(Box::new(study)), "regions"),
        (Line::Host { side: Side::A, facts: Box::default() }, "a"),
    ]
}

#[test]
fn a_line_with_a_value_of_a_newer_landspeed_is_left_out_with_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    let text = |line: &Line| serde_json::to_string(line).unwrap();
    let written = |lines: &[String]| {
        let header = text(&header(RECORD_FORMAT));
        std::fs::write(&path, format!("{header}\n{}\n", lines.join("\n"))).unwrap();
        read(&path)
    };
    for (line, value) in lines_with_enums() {
        let known = text(&line);
        let newer = known.replacen(&format!(":\"{value}\""), ":\"hologram\"", 1);
        assert_ne!(known, newer, "no {value} in {known}");
        let record = written(&[newer, known]).unwrap();
        assert_eq!(record.lines, [line]);
        let why = &record.unread[0];
        assert!(record.unread.len() == 1 && why.starts_with("line 2 was not read: unknown "), "{why}");
        assert!(why.contains("hologram") && !why.contains("expected"), "{why}");
    }
    for broken in ["{\"line\":\"note\",", "[1]", "{\"text\":\"no tag\"}"] {
        assert!(matches!(written(&[broken.to_owned()]), Err(RecordReadError::Line { number: 2, .. })));
    }
}

/// Checks that everything in `old` with a value is in `new` too.
fn check_kept(old: &Value, new: &Value, at: &str) {
    match old {
        Value::Object(members) => {
            members.iter().for_each(|(name, old)| check_kept(old, &new[name], &format!("{at}.{name}")))
        }
        // An absent value is read in the same way.
        Value::Null => {}
        Value::Number(zero) if zero.as_f64() == Some(0.0) && new.is_null() => {}
        // A slow-start threshold that is not set yet: TCP_INFINITE_SSTHRESH.
        Value::Number(infinite) if infinite.as_u64() == Some(0x7fff_ffff) && new.is_null() => {}
        Value::Array(items) if items.is_empty() => {}
        Value::Array(items) => {
            assert_eq!(Some(items.len()), new.as_array().map(Vec::len), "{at}");
            items.iter().enumerate().for_each(|(i, old)| check_kept(old, &new[i], &format!("{at}[{i}]")));
        }
        _ => assert_eq!(old, new, "{at}"),
    }
}

/// The trial is from a version of landspeed in which each observation was a field.
#[test]
fn a_trial_of_an_older_record_loses_nothing() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/trial.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let old = text.lines().nth(1).unwrap();
    let Line::Trial(trial) = decode(old.as_bytes()).unwrap() else { panic!("{old}") };
    let seen = &trial.b.observed;
    assert_eq!((seen.get::<CpuUsage>().cores.len(), seen.get::<Vec<TcpSample>>().len()), (2, 4));
    let new = serde_json::to_value(Line::Trial(trial)).unwrap();
    check_kept(&serde_json::from_str(old).unwrap(), &new, "trial");
}
