//! What a person sees of a run: live on a terminal, as text, as JSON, and as one HTML page.
//!
//! Input is plain data of `landspeed-record`; this crate imports no noun, so a saved record can be shown
//! anywhere. A record may come from a stranger: whatever is shown of it goes through [`safe`], and into
//! HTML through maud's escaping on top.

mod chart;
mod compare;
mod diff;
mod expected;
mod explain;
pub mod html;
mod json;
mod kind;
pub mod live;
pub mod measure;
mod output;
mod record_run;
mod safe;
mod table;
pub mod text;
mod wan;
mod words;

pub use compare::{compare_html, compare_json, compare_progress, compare_text};
pub use diff::{DiffReport, DiffRow, diff_json, diff_text};
pub use explain::{Detail, explain_html, explain_json, explain_text};
pub use json::summary_json;
pub use output::Output;
pub use record_run::{record_run_json, record_run_text};
pub use safe::safe;
pub use table::table;
pub use words::LEAST_EFFECT;
