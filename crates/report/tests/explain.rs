//! The forms of an explanation that need no browser: text, page source, and the document.

#[path = "support/explained.rs"]
mod explained;
#[path = "support/markup.rs"]
mod markup;

use std::collections::BTreeSet;

use landspeed_record::{CostFigure, ExplainReport};
use landspeed_report::{Detail, Output, explain_html, explain_json, explain_text};
use proptest::prelude::*;
use serde_json::Value;

const PLAIN: Output = Output { terminal: false, width: 100, color: false };
const WATCHED: Output = Output { terminal: true, width: 100, color: false };

#[test]
fn brief_for_a_person_who_watches() {
    let shown = explain_text(&explained::sample(), WATCHED, Detail::Brief);
    insta::assert_snapshot!(shown);
    // Sizes are measured where they are asked for, and few paths are a link of landspeed's own.
    let usual = ExplainReport { per_packet: vec![], answers: vec![], wan: None, ..explained::sample() };
    let shown = explain_text(&usual, WATCHED, Detail::Brief);
    assert!(shown.lines().count() <= 60, "{} lines:\n{shown}", shown.lines().count());
}

#[test]
fn plain_where_nobody_watches() {
    let shown = explain_text(&explained::sample(), Output { width: 80, ..PLAIN }, Detail::Brief);
    assert!(!shown.contains(['█', '▏', '▁', '\u{1b}']), "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn everything_where_all_is_asked_for() {
    insta::assert_snapshot!(explain_text(&explained::sample(), WATCHED, Detail::Full));
}

#[test]
fn one_host_and_no_cost() {
    insta::assert_snapshot!(explain_text(&explained::minimal(), WATCHED, Detail::Brief));
    let page = explain_html(&explained::minimal());
    let (_, body) = page.split_once("<body>").expect("a body");
    let (body, _) = body.split_once("<section id=\"glossary\">").expect("a glossary");
    insta::assert_snapshot!("one_host_and_no_cost_page", body.replace("><", ">\n<"));
}

#[test]
fn lines_keep_to_the_width_of_the_terminal() {
    for width in [60, 80, 120, 160] {
        for report in [explained::sample(), explained::minimal()] {
            let shown = explain_text(&report, Output { width, ..WATCHED }, Detail::Full);
            let longest = shown.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
            // A row of a cost table has no more to give than its figures.
            assert!(longest.chars().count() <= usize::from(width).max(80), "{longest}");
        }
    }
}

#[test]
fn an_empty_report_is_still_a_report() {
    let empty = ExplainReport::default();
    assert!(explain_html(&empty).contains("could not be told"));
    assert!(explain_text(&empty, PLAIN, Detail::Full).contains("could not be told"));
}

#[test]
fn the_document_reads_back_as_it_was() {
    let mut report = explained::sample();
    // The last digit of a quotient may be read back as its neighbour.
    report.hosts.iter_mut().flat_map(|h| h.cost.values_mut()).for_each(|f| *f = CostFigure::default());
    let back: ExplainReport = serde_json::from_str(&explain_json(&report)).expect("an explanation");
    assert!(back == report, "{}", explain_json(&back));
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = explain_html(&explained::sample());
    for foreign in ["http://", "https://", "<script", "@import", "url(", " src=", "//cdn"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn figures_that_no_measurement_gives_are_not_drawn() {
    let mut report = explained::sample();
    for bad in [f64::NAN, f64::INFINITY, -1.0, 1e308] {
        report.goodput_bps.0 = bad;
        report.verdict[0].confidence = bad;
        report.verdict[0].remedies[0].expected_ratio = Some(bad);
        report.staircase[2].rate_bps.0 = bad;
        let figure = CostFigure { share: bad, ns_per_byte: Some(bad), ns_per_packet: Some(bad) };
        report.hosts[0].cost.insert("copy".into(), figure);
        markup::check_figures(&explain_html(&report));
        explain_text(&report, WATCHED, Detail::Full);
    }
}

/// Fields whose strings are words of the format: another one is no explanation at all.
const WORDS: [&str; 11] = [
    "class",
    "cause",
    "hop",
    "kernel",
    "protocol",
    "local",
    "remote",
    "cpu_accounting",
    "rule",
    "binding",
    "carrier",
];
/// Fields that are maps from names that hosts give.
const MAPS: [&str; 8] = ["cost", "counts", "features", "waiting_in", "layers", "snmp", "softnet", "figures"];

/// Puts `text` in the place of every string of `value` that may be any.
fn forge(value: &mut Value, key: &str, text: &str) {
    match value {
        Value::String(old) if !WORDS.contains(&key) || (key == "kernel" && old.contains('.')) => {
            *old = text.to_owned();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forge(item, key, text)),
        Value::Object(map) => {
            map.iter_mut().for_each(|(key, value)| forge(value, key, text));
            if MAPS.contains(&key) && !map.contains_key("event") {
                *map =
                    std::mem::take(map).into_iter().map(|(name, v)| (format!("{name}{text}"), v)).collect();
            }
        }
        _ => {}
    }
}

/// Puts extremes in the place of numbers that may be any.
fn overflow(value: &mut Value, key: &str, (float, whole): (f64, u64)) {
    match value {
        Value::Number(n) if n.is_f64() => *value = Value::from(float),
        Value::Number(_)
            if ["_ns", "_bytes", "samples", "lost", "bins", "sent"].iter().any(|end| key.ends_with(end)) =>
        {
            *value = Value::from(whole);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| overflow(item, key, (float, whole))),
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| overflow(value, key, (float, whole))),
        _ => {}
    }
}

fn document() -> Value {
    serde_json::to_value(explained::sample()).expect("an explanation is JSON")
}

/// Neither page nor terminal does anything that the honest sample's would not.
fn check_forged(text: &str) {
    let mut value = document();
    forge(&mut value, "", text);
    let report: ExplainReport = serde_json::from_value(value).expect("still an explanation");
    let (honest, forged) = (explain_html(&explained::sample()), explain_html(&report));
    markup::check_within(&forged, &honest);
    markup::check_figures(&forged);
    for output in [PLAIN, Output { color: true, ..WATCHED }] {
        markup::check_terminal(&explain_text(&report, output, Detail::Full));
    }
}

#[test]
fn a_hostile_report_is_shown_and_not_obeyed() {
    check_forged("\u{1b}]0;own\u{7}<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}");
    check_forged("]]></style></svg></title><svg onload=alert(1)> style=\"x:url(//evil)\" {{}} --x:9;");
    check_forged(&"W".repeat(5000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_a_report_reaches_a_reader_unescaped(text in "[<>&\"'=/;:(){} a-z\u{1b}\u{7}\u{9b}\u{202e}\u{e0041}-]{1,60}") {
        check_forged(&text);
    }

    #[test]
    fn no_figure_of_a_report_breaks_a_chart(float in any::<f64>(), whole in any::<u64>()) {
        let float = if float.is_finite() { float } else { f64::MAX };
        let mut value = document();
        overflow(&mut value, "", (float, whole));
        let report: ExplainReport = serde_json::from_value(value).expect("still an explanation");
        markup::check_figures(&explain_html(&report));
        markup::check_terminal(&explain_text(&report, WATCHED, Detail::Full));
    }
}

/// Names of all fields of `value`, those of maps (which are data) left out.
fn fields(value: &Value, key: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let data = MAPS.contains(&key) && !map.contains_key("event");
            for (key, value) in map {
                if !data {
                    into.insert(key.clone());
                }
                fields(value, key, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, key, into)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_document_is_in_its_reference() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).expect(name);
    let (reference, summary) = (read("explain.md"), read("summary.md"));
    let mut names = BTreeSet::new();
    fields(&document(), "", &mut names);
    assert!(names.len() > 120, "{names:?}");
    let told =
        |name: &&String| reference.contains(&format!("`{name}`")) || summary.contains(&format!("`{name}`"));
    let missing: Vec<&String> = names.iter().filter(|name| !told(name)).collect();
    assert!(missing.is_empty(), "not in docs/reference/explain.md: {missing:?}");
    let version = format!("format {}", landspeed_record::EXPLAIN_FORMAT);
    assert!(reference.contains(&version), "docs/reference/explain.md is not about {version}");
}
