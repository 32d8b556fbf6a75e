//! The report of `landspeed explain`: as text for a terminal, as one page, and as JSON.
//!
//! All forms tell the same in the same order: what holds the path back, with its evidence and what to
//! try; where the processor time goes; where packets wait; what the window did, and what the window model
//! says of it; what each part could do at most; and what could not be seen. What is shown is picked and
//! checked once, in `cost`, `flame`, `hops`, `window`, `rules` and `stairs`; `text`, `page` and `chart` only
//! draw it. A report may come from a stranger: figures that no measurement could give are left out, words go
//! through [`crate::safe`].

mod chart;
mod cost;
mod flame;
mod hops;
mod page;
mod parts;
mod rules;
mod sizes;
mod stairs;
mod text;
mod window;
mod words;

use landspeed_record::ExplainReport;

pub use page::explain_html;
pub use text::{Detail, explain_text};
pub(crate) use words::cause as cause_words;

/// The report as one JSON document over several lines, without a line break at the end. Schema:
/// docs/reference/explain.md.
pub fn explain_json(report: &ExplainReport) -> String {
    serde_json::to_string_pretty(report).expect("a report has string keys only")
}
