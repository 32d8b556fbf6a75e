//! Charts of a study, in the manner of [`crate::chart`].

mod axes;
mod course;
mod parallel;

pub(super) use parallel::parallel;

use landspeed_record::CompareReport;
use maud::{Markup, html};

use super::runs::Course;
use super::words;

/// A small drawing a protocol, on common axes.
pub(super) fn courses(report: &CompareReport, courses: &[Course]) -> Markup {
    let ground = course::Ground::of(&report.study, courses);
    let flows = courses.iter().map(|course| course.flows.len()).max().unwrap_or(0);
    html! {
        ul class="legend" {
            @for flow in 0..flows.min(4) {
                li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { rect class={ "flow flow-" (flow) } x="1" y="3" width="14" height="10" {} } "flow " (flow + 1) }
            }
            @if courses.iter().any(|course| !course.others.is_empty()) {
                li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { path class="other" d="M0 8h16" {} } "all flows of another repeat" }
            }
        }
        div class="courses" {
            @for (index, of) in courses.iter().enumerate() {
                div {
                    h3 { (of.name) " " span class="quiet" { (facts(report, index)) } }
                    (course::course(index, of, &ground))
                }
            }
        }
    }
}

/// "402 Mb/s, S 0.28".
fn facts(report: &CompareReport, index: usize) -> String {
    let Some(p) = report.protocols.get(index).filter(|p| p.runs > 0) else { return String::new() };
    let stability = words::shown(p.stability, words::hundredths);
    format!("{}, S {stability}", p.mean_bps)
}
