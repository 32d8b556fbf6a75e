//! The summary as a document. Schema: docs/reference/summary.md.

use landspeed_record::TuneSummary;

/// `summary` as one JSON document over several lines, without a line break at the end.
pub fn summary_json(summary: &TuneSummary) -> String {
    serde_json::to_string_pretty(summary).expect("a summary has string keys only")
}
