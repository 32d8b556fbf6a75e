//! A report as a document. Schemas: docs/reference.

use serde::Serialize;

/// `report` as one JSON document over several lines, without a line break at the end.
pub fn json(report: &impl Serialize) -> String {
    serde_json::to_string_pretty(report).expect("a report has string keys only")
}
