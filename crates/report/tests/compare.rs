//! The forms of a study that need no browser: text, page source, and the document.

#[path = "support/markup.rs"]
mod markup;
#[path = "support/studied.rs"]
mod studied;

use std::collections::BTreeSet;

use landspeed_analysis::compare;
use landspeed_record::{CompareReport, Line, Record};
use landspeed_report::{Output, compare_html, compare_json, compare_progress, compare_text};
use landspeed_units::Nanos;
use proptest::prelude::*;
use serde_json::Value;

const PLAIN: Output = Output { terminal: false, width: 100, color: false };

fn judged(record: &Record) -> CompareReport {
    compare(record, "/data/study.jsonl").expect("a study")
}

#[test]
fn a_scaled_study_of_ten() {
    let shown = compare_text(&judged(&studied::record()), Output { width: 120, ..PLAIN });
    assert!(!shown.contains("  paper"), "scaled figures stand beside the paper's values:\n{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn a_study_of_full_size_beside_the_papers_values() {
    let report = judged(&studied::full_size());
    insta::assert_snapshot!(compare_text(&report, PLAIN));
    let page = compare_html(&report, &studied::full_size());
    let first = page.split_once("paper</th>").expect("a row of the paper's").1;
    assert!(first.starts_with("<td class=\"number\">248</td>"), "Reno's 248 Mb/s: {}", &first[..60]);
    assert!(!compare_html(&judged(&studied::record()), &studied::record()).contains("paper</th>"));
}

#[test]
fn what_does_not_stand_says_so_first() {
    let mut record = studied::record();
    record.lines.truncate(20);
    let report = judged(&record);
    let shown = compare_text(&report, PLAIN);
    assert!(shown.starts_with("VOID: this study does not stand: it is unfinished"), "{shown}");
    let page = compare_html(&report, &record);
    let (before, _) = page.split_once("class=\"lead\"").expect("a lead");
    assert!(before.contains("This study does not stand."));
}

#[test]
fn an_empty_report_is_still_a_report() {
    let empty = Record { header: landspeed_record::Header::default(), lines: vec![], cut_off: true };
    let report = CompareReport::default();
    assert!(compare_text(&report, PLAIN).contains("No run of this study counts"));
    let page = compare_html(&report, &empty);
    assert!(page.contains("No run of this study counts"));
    markup::check_figures(&page);
}

#[test]
fn lines_keep_to_the_width_of_the_terminal() {
    for width in [100, 120, 160] {
        let shown = compare_text(&judged(&studied::record()), Output { width, ..PLAIN });
        let longest = shown.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
        assert!(longest.chars().count() <= usize::from(width), "{longest}");
    }
}

#[test]
fn the_document_reads_back_as_it_was() {
    let report = judged(&studied::record());
    let back: CompareReport = serde_json::from_str(&compare_json(&report)).expect("a study");
    let value = |report: &CompareReport| serde_json::to_value(report).expect("a study is JSON");
    assert!(alike(&value(&back), &value(&report)), "{}", compare_json(&back));
}

/// The last digit of a quotient may be read back as its neighbour.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
            (a - b).abs() <= 1e-12 * a.abs()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| alike(value, other)))
        }
        _ => one == other,
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = compare_html(&judged(&studied::record()), &studied::record());
    for foreign in ["http://", "https://", "<script", "@import", "url(", " src=", "//cdn"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("default-src 'none'") && page.len() < 1_500_000, "{} bytes", page.len());
}

/// Fields whose strings are words of the format: another one is no study at all.
const WORDS: [&str; 4] = ["line", "engine", "question", "carrier"];

/// Puts `text` in the place of every string that may be any, alike, so that runs still belong to their contests.
fn forge(value: &mut Value, key: &str, text: &str) {
    match value {
        Value::String(old) if !WORDS.contains(&key) => *old += text,
        Value::Array(items) => items.iter_mut().for_each(|item| forge(item, key, text)),
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| forge(value, key, text)),
        _ => {}
    }
}

/// Puts extremes in the place of every number that may be any.
fn overflow(value: &mut Value, key: &str, (float, whole): (f64, u64)) {
    match value {
        Value::Number(n) if n.is_f64() => *value = Value::from(float),
        Value::Number(_)
            if key != "mtu_bytes"
                && ["_ns", "_bytes", "retransmits"].iter().any(|end| key.ends_with(end)) =>
        {
            *value = Value::from(whole);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| overflow(item, key, (float, whole))),
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| overflow(value, key, (float, whole))),
        _ => {}
    }
}

/// A record of which every line was changed.
fn changed(record: &Record, change: impl Fn(&mut Value)) -> Record {
    let line = |line: &Line| {
        let mut value = serde_json::to_value(line).expect("a line is JSON");
        change(&mut value);
        serde_json::from_value(value).expect("still a line")
    };
    Record { lines: record.lines.iter().map(line).collect(), ..record.clone() }
}

fn check_hostile(record: &Record) -> (String, String) {
    let report = judged(record);
    let (page, text) =
        (compare_html(&report, record), compare_text(&report, Output { color: true, ..PLAIN }));
    markup::check_figures(&page);
    markup::check_terminal(&text);
    for line in &record.lines {
        if let Line::Run(run) = line {
            markup::check_terminal(&compare_progress(run, &report.study, 1, Nanos(u64::MAX)));
        }
    }
    (page, text)
}

#[test]
fn a_hostile_record_is_shown_and_not_obeyed() {
    let honest = studied::record();
    let own = compare_html(&judged(&honest), &honest);
    for text in [
        "\u{1b}]0;own\u{7}<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}".to_owned(),
        "]]></style></svg></title><svg onload=alert(1)> style=\"x:url(//evil)\" {{}} --x:9;".to_owned(),
        "W".repeat(5000),
    ] {
        let forged = changed(&honest, |line| forge(line, "", &text));
        markup::check_within(&check_hostile(&forged).0, &own);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_figure_of_a_record_breaks_a_chart(float in any::<f64>(), whole in any::<u64>()) {
        let float = if float.is_finite() { float } else { f64::MAX };
        check_hostile(&changed(&studied::full_size(), |line| overflow(line, "", (float, whole))));
    }
}

/// Names of all fields of `value`.
fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.insert(key.clone());
            fields(value, into);
        }),
        Value::Array(items) => items.iter().for_each(|item| fields(item, into)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_document_is_in_its_reference() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/compare.md");
    let reference = std::fs::read_to_string(file).expect("docs/reference/compare.md");
    let mut report = judged(&studied::record());
    report.streams.push(landspeed_record::CpuByStreams::default());
    report.paper.push(landspeed_record::PaperValue::default());
    let mut names = BTreeSet::new();
    fields(&serde_json::to_value(&report).expect("a study is JSON"), &mut names);
    assert!(names.len() > 80, "{names:?}");
    let missing: Vec<&String> =
        names.iter().filter(|name| !reference.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/reference/compare.md: {missing:?}");
    let version = format!("format {}", landspeed_record::COMPARE_FORMAT);
    assert!(reference.contains(&version), "docs/reference/compare.md is not about {version}");
}
