//! Recorded data: a report of each kind except grids. tests/records/README.md describes the data.

use std::path::Path;

use landspeed_record::{CompareReport, ExplainReport, Header, Line, MeasureReport, Record, TuneSummary};
use landspeed_report::{Document, compare, copy, explain, measure, tune};
use serde_json::Value;

/// A kind of report: the recorded data, and the function that makes the document.
#[derive(Clone)]
pub(crate) struct ReportKind {
    pub(crate) name: &'static str,
    /// The recorded document; for a record, its lines.
    pub(crate) json: Value,
    /// Returns the document, or `None` if a changed value is not of this kind.
    pub(crate) report: fn(&Value) -> Option<Document>,
}

impl ReportKind {
    fn of(name: &'static str, report: fn(&Value) -> Option<Document>) -> Self {
        ReportKind { name, json: json(name), report }
    }

    pub(crate) fn document(&self) -> Document {
        (self.report)(&self.json).expect("a report of its kind")
    }
}

pub(crate) fn all() -> Vec<ReportKind> {
    fn measured(json: &Value) -> Option<Document> {
        Some(measure(&of::<MeasureReport>(json)?))
    }
    fn explained(json: &Value) -> Option<Document> {
        Some(explain(&of::<ExplainReport>(json)?))
    }
    fn tuned(json: &Value) -> Option<Document> {
        let record = record(json)?;
        Some(tune(&summary(&record)?, &record, "last"))
    }
    fn studied(json: &Value) -> Option<Document> {
        let record = record(json)?;
        Some(compare(&study(&record)?, &record))
    }
    fn copied(json: &Value) -> Option<Document> {
        let record = record(json)?;
        Some(copy(&landspeed_analysis::copy_report(&record, "/data/copy.jsonl").ok()?, &record))
    }
    let mut kinds: Vec<ReportKind> =
        ["stream", "sweep", "pingpong", "connect"].map(|name| ReportKind::of(name, measured)).into();
    kinds.extend(["explain", "sizes", "flow"].map(|name| ReportKind::of(name, explained)));
    kinds.push(ReportKind::of("tune", tuned));
    kinds.extend(["compare", "streams"].map(|name| ReportKind::of(name, studied)));
    // No copy has been recorded yet. Its report is tested as soon as the file is there.
    let copies = Some("copy").filter(|name| Path::new(&format!("{}.jsonl", path(name))).exists());
    kinds.extend(copies.map(|name| ReportKind::of(name, copied)));
    kinds
}

/// Returns the path of recorded data, without what its name ends with.
fn path(name: &str) -> String {
    format!("{}/../../tests/records/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn json(name: &str) -> Value {
    let path = path(name);
    match std::fs::read_to_string(format!("{path}.jsonl")) {
        Ok(text) => text.lines().map(|line| serde_json::from_str::<Value>(line).expect(name)).collect(),
        Err(_) => serde_json::from_slice(&std::fs::read(format!("{path}.json")).expect(name)).expect(name),
    }
}

fn of<T: serde::de::DeserializeOwned>(json: &Value) -> Option<T> {
    serde_json::from_value(json.clone()).ok()
}

fn record(json: &Value) -> Option<Record> {
    let mut lines: Vec<Line> = of(json)?;
    let first = (!lines.is_empty()).then(|| lines.remove(0));
    let header = if let Some(Line::Header(header)) = first { header } else { Header::default() };
    Some(Record { header, lines, ..Record::default() })
}

fn summary(record: &Record) -> Option<TuneSummary> {
    landspeed_analysis::summary(record, "/data/tune.jsonl").ok()
}

fn study(record: &Record) -> Option<CompareReport> {
    landspeed_analysis::compare(record, "/data/compare.jsonl").ok()
}

pub(crate) fn explained() -> ExplainReport {
    of(&json("explain")).expect("an explanation")
}

pub(crate) fn tuned() -> (TuneSummary, Record) {
    let record = record(&json("tune")).expect("a record");
    (summary(&record).expect("a tuning run"), record)
}

pub(crate) fn studied() -> (CompareReport, Record) {
    let record = record(&json("compare")).expect("a record");
    (study(&record).expect("a study"), record)
}
