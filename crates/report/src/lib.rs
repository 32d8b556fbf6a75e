//! What a person sees of a run: live on a terminal, and as a report.
//!
//! A report is a [`Document`], which is put together once ([`tune`], [`explain`], [`compare`], [`measure`], [`diff`],
//! [`record_run`]) and printed as text, as one HTML page or as CSV; [`json`] writes the data behind it. Input is plain data
//! of `landspeed-record`; this crate imports no plug-in, so a saved record can be shown anywhere. A record may come from a
//! stranger: no text in a document holds what a terminal acts on, and maud escapes what goes into HTML.

mod block;
mod chart;
mod compare;
mod diff;
mod expected;
mod explain;
mod glossary;
mod grid;
pub mod live;
mod measure;
mod observed;
mod outcome;
mod output;
mod record_run;
mod records;
mod safe;
mod tune;
mod wan;
mod words;

pub use block::{Detail, Document, csv, table};
pub use compare::{about, compare, compare_progress};
pub use diff::{DiffReport, DiffRow, diff};
pub use explain::explain;
pub use grid::grid;
pub use measure::measure;
pub use output::Output;
pub use record_run::record_run;
pub use records::{RecordRow, RecordState, RecordsReport, came_out, gain_is_proven, records};
pub(crate) use safe::remarks;
pub use safe::safe;
pub use tune::tune;
pub use words::{LEAST_EFFECT, duration, quoted};

/// `report` as one JSON document over several lines, without a line break at the end. Schemas: docs/reference.
pub fn json(report: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(report).expect("a report has string keys only")
}
