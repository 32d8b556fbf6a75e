//! Every protocol over time, side by side.

use landspeed_record::CompareReport;
use maud::{Markup, html};

use super::super::chart;
use super::super::runs::Course;
use super::super::words;

/// A small drawing a protocol, on common axes.
pub(super) fn section(report: &CompareReport, courses: &[Course]) -> Markup {
    if courses.is_empty() {
        return html! {};
    }
    let ground = chart::Ground::of(&report.study, courses);
    let flows = courses.iter().map(|course| course.flows.len()).max().unwrap_or(0);
    html! {
        section id="courses" {
            h2 { "Over time" }
            p {
                "Of each protocol the repeat with the middle mean: goodput of its flows on top of each other (means over five samples and at least a second), beneath it the probe's round trip"
                @if courses.iter().any(|course| !course.queue.is_empty()) { " and the queue" }
                ", on one axis of time; upright lines are where a flow enters or leaves. All drawings share their scales."
            }
            ul class="legend" {
                @for flow in 0..flows.min(4) {
                    li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { rect class={ "flow flow-" (flow) } x="1" y="3" width="14" height="10" {} } "flow " (flow + 1) }
                }
                @if courses.iter().any(|course| !course.others.is_empty()) {
                    li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { path class="other" d="M0 8h16" {} } "all flows of another repeat" }
                }
            }
            div class="courses" {
                @for (index, course) in courses.iter().enumerate() {
                    div {
                        h3 { (course.name) " " span class="quiet" { (facts(report, index)) } }
                        (chart::course(index, course, &ground))
                    }
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
