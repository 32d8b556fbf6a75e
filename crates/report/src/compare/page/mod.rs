//! The study as one self-contained page: no request leaves it, no script runs in it.

mod courses;
mod findings;
mod head;
mod sheets;

use landspeed_record::{CompareReport, Record};
use maud::html;

use super::runs;
use crate::html as pages;

/// What only this page has; the rest of the look is the tuning report's.
const STYLE: &str = include_str!("compare.css");

/// The study as one HTML document that needs nothing else, whether it stands and its conclusion first. `record` is what the
/// report was computed from: the drawings over time are of its runs. Everything from either is escaped, and a part that was
/// not studied is not there.
pub fn compare_html(report: &CompareReport, record: &Record) -> String {
    let courses = runs::courses(report, record);
    let body = html! {
        (head::header(report))
        (head::figures(report))
        (sheets::rankings(report))
        (sheets::paper_tables(report))
        (sheets::trade_offs(report))
        (courses::section(report, &courses))
        (sheets::meetings(report))
        (sheets::round_trips(report))
        (sheets::short_flows(report))
        (sheets::streams(report))
        (findings::section(report))
        (head::runs(report, record))
        (head::reproduce(report, record))
        (pages::glossary::compared())
    };
    let title = format!("{} – landspeed", super::words::headline(report));
    pages::document(&title, &report.landspeed, &[STYLE], &body)
}
