//! The explanation as one self-contained page: no request leaves it, no script runs in it.

mod between;
mod head;
mod sections;
mod sizes;
mod tables;
mod verdict;

use landspeed_record::ExplainReport;
use maud::html;

use super::{cost, stairs};
use crate::html as pages;

/// What only this page has; the rest of the look is the tuning report's.
const STYLE: &str = include_str!("explain.css");

/// The explanation as one HTML document that needs nothing else, the verdict first. Everything from the
/// report is escaped, and a part that was not measured says so.
pub fn explain_html(report: &ExplainReport) -> String {
    let costs = cost::hosts(report);
    let stairs = stairs::stairs(report);
    let body = html! {
        (head::header(report))
        (head::figures(report, &costs, stairs.as_ref()))
        (verdict::section(report))
        (sections::cost(&costs))
        (sections::flames(&costs))
        (sections::hops(report))
        (sections::window(report))
        (sections::limits(report, stairs.as_ref()))
        (between::link(report))
        (sizes::section(report))
        (tables::hosts(report))
        (tables::unseen(report))
        (head::reproduce(report))
        (pages::glossary::explained())
    };
    let title = format!("{} – landspeed", super::words::headline(report));
    pages::document(&title, &report.landspeed, &[STYLE], &body)
}
