//! The head of the page, its figures, the runs that do not count, and how to run it again.

use landspeed_record::{CompareReport, ContestFigures, Record};
use landspeed_units::BitRate;
use maud::{Markup, html};

use super::super::{runs, words};
use crate::safe;

pub(super) fn header(report: &CompareReport) -> Markup {
    html! {
        header {
            p class="eyebrow" { "landspeed · comparison" }
            h1 { (words::headline(report)) }
            @if let Some(void) = &report.void {
                p class="notice bad" role="alert" { strong { "✗ This study does not stand. " } (safe(void)) }
            }
            p class="lead" { (words::conclusions(report).join(" ")) }
            ul class="facts" {
                @for fact in words::setting(report) { li { (fact) } }
                @if !report.started.is_empty() { li { time { (safe(&report.started)) } } }
            }
        }
    }
}

/// The best of each figure at a glance.
pub(super) fn figures(report: &CompareReport) -> Markup {
    let counted: Vec<&ContestFigures> = report.protocols.iter().filter(|p| p.runs > 0).collect();
    let cards = [
        card("Highest throughput", &counted, |p| Some(-p.mean_bps.0), |rate| BitRate(-rate).to_string()),
        card("Smallest S (steadiest)", &counted, |p| p.stability, words::hundredths),
        card("Least deviation of the RTT", &counted, |p| p.rtt_sd_s, |s| format!("{} ms", words::ms(s))),
    ];
    html! {
        @if counted.len() > 1 {
            section class="cards" aria-label="Best figures" { @for card in &cards { (card) } }
            p class="under quiet" { "By the figure alone; which differences are real is below." }
        }
    }
}

/// Who has the least of a figure.
fn card(
    what: &str,
    protocols: &[&ContestFigures],
    of: fn(&ContestFigures) -> Option<f64>,
    say: impl Fn(f64) -> String,
) -> Markup {
    let figures = protocols.iter().filter_map(|p| Some((p, words::sane(of(p))?)));
    let best = figures.min_by(|a, b| a.1.total_cmp(&b.1));
    html! {
        div class="card" {
            h2 { (what) }
            p class="ratio" { strong { (best.map_or_else(|| words::UNKNOWN.to_owned(), |(p, _)| words::name(&p.protocol))) } }
            p class="from-to quiet" { (best.map(|(_, value)| say(value)).unwrap_or_default()) }
        }
    }
}

/// Runs that do not count and how late the link was.
pub(super) fn runs(report: &CompareReport, record: &Record) -> Markup {
    let invalid = runs::invalid(record);
    let lateness = runs::lateness(record);
    html! {
        section id="runs" {
            h2 { "The runs" }
            p {
                (report.runs) " of " (report.runs_planned) " runs were made"
                @if report.invalid_runs > 0 { ", " (report.invalid_runs) " of them do not count and are in no figure" } @else { ", and all of them count" }
                "."
            }
            @if let Some((links, p99, worst)) = lateness {
                p { "The link, landspeed's own, was told to be the path above. In the " (links) " runs over it that count, 99 % of the frames of a direction were at most "
                    (micros(&p99.to_string())) " late, and the worst " (micros(&worst.to_string())) "." }
            }
            @if !invalid.is_empty() {
                details class="rest" open[invalid.len() <= 6] {
                    summary { (invalid.len()) " runs that do not count, and why" }
                    ul { @for (which, why) in invalid.iter().take(200) { li { strong { (which) } ": " (why.join("; ")) } } }
                }
            }
            @if !report.notes.is_empty() { ul class="asides" { @for note in &report.notes { li { (safe(note)) } } } }
        }
    }
}

fn micros(text: &str) -> String {
    text.replace(" us", " µs")
}

/// Command, seed, record.
pub(super) fn reproduce(report: &CompareReport, record: &Record) -> Markup {
    let path = report.record.as_ref().map(|path| crate::words::quoted(path));
    html! {
        section id="reproduce" {
            h2 { "How to reproduce" }
            dl class="commands" {
                dt { "Run it again" } dd { pre tabindex="0" { code { (safe(&report.command)) } } }
                @if let Some(path) = &path { dt { "Show this record" } dd { pre tabindex="0" { code { "landspeed show " (path) } } } }
            }
            dl class="pairs" {
                dt { "Seed of orders and entry times" } dd { (report.study.seed) }
                dt { "Time between samples" } dd { (report.study.sample_ns) }
                @if report.took_ns.0 > 0 { dt { "Took" } dd { (crate::words::duration(report.took_ns)) } }
                dt { "landspeed" } dd { (safe(&report.landspeed)) }
                dt { "Format of record and document" } dd { (record.header.format) ", " (report.format) }
            }
        }
    }
}
