//! Tests that content of a record, which may come from a stranger, is displayed and cannot control the display.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use landspeed_report::{DetailLevel, Document, OutputCapabilities};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use crate::markup;
use crate::recorded::{self, ReportKind};

const OUTPUT: OutputCapabilities =
    OutputCapabilities { terminal: true, color: true, ..OutputCapabilities::plain(100) };

/// Prints a report in all forms and returns its page. Panics if a terminal or a browser would act on its content.
fn check(document: &Document) -> String {
    for detail in [DetailLevel::Brief, DetailLevel::Full] {
        markup::check_terminal(&document.text(OUTPUT, detail));
        markup::check_terminal(
            &document.text(OutputCapabilities { color: false, terminal: false, ..OUTPUT }, detail),
        );
    }
    document.csv().iter().for_each(|table| markup::check_terminal(&table.text.replace('\r', "")));
    markup::check_terminal(&document.markdown(landspeed_report::DetailLevel::Full));
    let page = document.page();
    markup::check_figures(&page);
    page
}

/// Applies `change` to every scalar value, with the name of its field.
fn each(value: &mut Value, key: &str, change: &dyn Fn(&str, &mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, key, change)),
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| each(value, key, change)),
        value => change(key, value),
    }
}

/// A recorded document, and the names of its fields that may take any value. Other fields hold words of the format, or
/// counts that determine how much work a reader has.
struct OpenReport {
    kind: ReportKind,
    keys: BTreeSet<String>,
}

impl OpenReport {
    /// Returns all kinds, each with the fields that `change` can alter without making the document invalid.
    fn all(change: &dyn Fn(&str, &mut Value)) -> Vec<OpenReport> {
        let open = |kind: ReportKind| {
            let keys = RefCell::new(BTreeSet::new());
            each(&mut kind.json.clone(), "", &|key, _| _ = keys.borrow_mut().insert(key.to_owned()));
            let keys = keys.into_inner().into_iter();
            let honest = kind.document().page().len();
            let may = |key: &String| {
                let one = OpenReport { kind: kind.clone(), keys: BTreeSet::from([key.clone()]) };
                let json = one.json(change);
                // A field that stays as it is makes the page that there is. A malformed observation is ignored, which makes
                // the page much shorter.
                let makes_page = |document: Document| document.page().len() > honest / 10 * 9;
                json == kind.json || (kind.report)(&json).is_some_and(makes_page)
            };
            OpenReport { keys: keys.filter(may).collect(), kind }
        };
        recorded::all().into_iter().map(few).map(open).collect()
    }

    fn changed(&self, change: &dyn Fn(&str, &mut Value)) -> (Value, Option<Document>) {
        let json = self.json(change);
        let document = (self.kind.report)(&json);
        (json, document)
    }

    /// Returns the document's data after the change.
    fn json(&self, change: &dyn Fn(&str, &mut Value)) -> Value {
        let mut json = self.kind.json.clone();
        each(&mut json, "", &|key, value| {
            if self.keys.contains(key) {
                change(key, value);
            }
        });
        json
    }
}

/// Returns a kind whose record has at most six lines of each kind of line.
fn few(mut kind: ReportKind) -> ReportKind {
    if let Value::Array(lines) = &mut kind.json {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        lines.retain(|line| {
            let count = seen.entry(line["line"].to_string()).or_default();
            *count += 1;
            *count <= 6
        });
    }
    kind
}

/// Fields that are maps whose keys come from hosts.
const MAPS: [&str; 8] = ["cost", "counts", "features", "waiting_in", "layers", "snmp", "softnet", "figures"];

fn rename(value: &mut Value, key: &str, text: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, key, text)),
        Value::Object(map) => {
            map.iter_mut().for_each(|(key, value)| rename(value, key, text));
            if MAPS.contains(&key) && map.values().all(|value| !value.is_string()) {
                *map = std::mem::take(map).into_iter().map(|(name, v)| (name + text, v)).collect();
            }
        }
        _ => {}
    }
}

fn append(value: &mut Value, text: &str) {
    if let Value::String(old) = value {
        old.push_str(text);
    }
}

/// Panics if the forged report contains markup that the honest one does not.
fn check_forged(open: &OpenReport, text: &str) {
    let (forged, document) = open.changed(&|_, value| append(value, text));
    assert_ne!(forged, open.kind.json, "{}: no text was forged", open.kind.name);
    let mut renamed = forged;
    rename(&mut renamed, "", text);
    let document = (open.kind.report)(&renamed).or(document);
    let page = check(&document.expect("still a report"));
    // A renamed step has no trials, and the page has a paragraph for that. A reason where there was none is a warning.
    const OWN: &str = r#"<p class="absent"></p><p class="notice bad" role="alert"></p>"#;
    markup::check_within(&page, &(open.kind.document().page() + OWN));
}

/// Makes times and sizes implausibly large. Counts that determine a reader's work stay.
fn overflow(key: &str, value: &mut Value, (float, whole): (f64, u64)) {
    let ends = ["_ns", "_bytes", "samples", "lost", "bins", "sent", "retransmits"];
    match value {
        Value::Number(n) if n.is_f64() => *value = Value::from(float),
        Value::Number(_) if key != "mtu_bytes" && ends.iter().any(|end| key.ends_with(end)) => {
            *value = Value::from(whole);
        }
        _ => {}
    }
}

#[test]
fn no_page_needs_anything_from_elsewhere() {
    for kind in recorded::all() {
        let page = kind.document().page();
        for foreign in ["http://", "https://", "<script", "@import", "url(", " src=", "//cdn"] {
            assert!(!page.contains(foreign), "{}: {foreign}", kind.name);
        }
        assert!(page.contains("default-src 'none'") && page.len() < 1_500_000, "{} bytes", page.len());
    }
}

#[test]
fn no_text_of_a_record_reaches_a_reader_unescaped() {
    let open = OpenReport::all(&|_, value| append(value, "x"));
    open.iter().for_each(|open| _ = check(&open.kind.document()));
    for text in [
        "\u{1b}]0;own\u{7}<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}",
        "]]></style></svg></title><svg onload=alert(1)> style=\"x:url(//evil)\" {{}} --x:9;",
        &"W".repeat(5000),
    ] {
        open.iter().for_each(|open| check_forged(open, text));
    }
    let text = "[<>&\"'=/;:(){} a-z\u{1b}\u{7}\u{9b}\u{202e}\u{e0041}-]{1,60}";
    run(&text, |text| open.iter().for_each(|open| check_forged(open, &text)));
}

#[test]
fn no_figure_of_a_record_breaks_a_report() {
    let open = OpenReport::all(&|key, value| overflow(key, value, (f64::MAX, u64::MAX)));
    run(&(any::<f64>(), any::<u64>()), |(float, whole)| {
        let float = if float.is_finite() { float } else { f64::MAX };
        for open in &open {
            let (_, document) = open.changed(&|key, value| overflow(key, value, (float, whole)));
            check(&document.expect("still a report"));
        }
    });
}

fn run<S: Strategy>(values: &S, test: impl Fn(S::Value)) {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(8);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let result = TestRunner::new(config).run(values, |value| {
        test(value);
        Ok(())
    });
    result.unwrap_or_else(|why| panic!("{why}"));
}
