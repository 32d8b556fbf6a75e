//! The output of a run for people: its progress, live on a terminal, and its results, as a report.
//!
//! A report is a [`Document`]. It is built once (by [`tune`], [`explain`], [`compare`], [`measure`], [`copy()`], [`diff`],
//! [`record_run`] and others) and printed as text, as an HTML page, as Markdown or as CSV. [`json`] prints the data
//! behind a report. The input is plain data of `landspeed-record`. This crate imports no plug-in, so a saved record can
//! be shown anywhere. A record may come from a stranger, so a document escapes its text for terminals, and maud escapes
//! it for HTML. `glossary.txt` holds the words that a page explains, in one section for each kind of page.

// For all modules of this crate.
#[macro_use(lines_of)]
extern crate landspeed_record;

mod block;
mod chart;
mod compare;
mod conditions;
mod copy;
mod diff;
mod expected;
mod explain;
mod gauges;
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

pub use block::{CsvTable, DetailLevel, Document, csv, markdown_table, table};
pub use compare::{about, compare, compare_progress};
pub use copy::{
    choice_lines, condition_lines, copy, copy_progress_line, encrypted_words, entry_name, held_lines,
    host_setting_lines, host_setting_words, loss_words, resent_words,
};
pub use diff::{DiffReport, DiffRow, diff};
pub use explain::explain;
pub use gauges::{Gauge, Labels, labels, open_metrics};
pub use grid::{gate, grid, occasions};
pub use measure::measure;
pub use output::OutputCapabilities;
pub use record_run::{RECORD_RUN_CLAIMS, record_run};
pub use records::{
    ListedResult, RecordRow, RecordState, RecordsReport, copy_result, gain_is_proven, grid_result, records,
    study_result, tune_result,
};
pub use safe::safe;
pub use tune::tune;
pub use words::{counted, duration, estimate, quoted, quoted_hosts, split_words};

/// Returns `report` as an indented JSON document, without a line break at the end. The schemas are in docs/reference.
pub fn json(report: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(report).expect("a report has string keys only")
}
