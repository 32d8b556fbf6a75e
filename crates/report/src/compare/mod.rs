//! The report of `landspeed compare`: as text for a terminal, as one page, and as JSON; and a line for each run while a
//! study goes on.
//!
//! All forms tell the same in the same order: whether the study stands, what it says in words, the paper's two tables (with
//! the paper's own values where these may stand beside ours), which differences are real, what else was asked, and the
//! paper's findings. What is shown is picked and worded once, in `words`, `tables` and `runs`; `text`, `page` and `chart`
//! only draw it. A record may come from a stranger: figures that no measurement could give are left out, words go through
//! [`crate::safe`].

mod chart;
mod matrix;
mod page;
mod progress;
mod runs;
mod tables;
mod text;
mod words;

use landspeed_record::CompareReport;

pub use page::compare_html;
pub use progress::compare_progress;
pub use text::compare_text;

/// The report as one JSON document over several lines, without a line break at the end. Schema:
/// docs/reference/compare.md.
pub fn compare_json(report: &CompareReport) -> String {
    serde_json::to_string_pretty(report).expect("a report has string keys only")
}
