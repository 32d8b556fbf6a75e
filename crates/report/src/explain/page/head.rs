//! The head of the page, its figures, and how to run it again.

use landspeed_record::{ExplainReport, Remedy};
use landspeed_units::BitRate;
use maud::{Markup, html};

use super::super::cost::HostCost;
use super::super::stairs::Stairs;
use super::super::words::{self, nanos};
use crate::safe;
use crate::wan::warning;
use crate::words::{estimate, number, plausible};

pub(super) fn header(report: &ExplainReport) -> Markup {
    html! {
        header {
            p class="eyebrow" { "landspeed · explanation" }
            h1 { (words::headline(report)) }
            @if let Some(warning) = warning(report.wan.as_ref()) { p class="poor" { (warning) } }
            @if let Some(lead) = words::lead(report) { p class="lead" { (lead) } }
            ul class="facts" {
                @for fact in [&report.topology, &report.watched].into_iter().filter(|f| !f.is_empty()) { li { (safe(fact)) } }
                li { time { (safe(&report.started)) } }
            }
        }
    }
}

/// Rate, ceiling and cost at a glance.
pub(super) fn figures(report: &ExplainReport, costs: &[HostCost<'_>], stairs: Option<&Stairs>) -> Markup {
    html! {
        section class="cards" aria-label="Figures" {
            (rate(report))
            (ceiling(stairs))
            (spent(costs))
        }
    }
}

fn card(primary: bool, name: &str, figure: &str, under: &str) -> Markup {
    html! {
        div class={ "card" @if primary { " primary" } } {
            h2 { (name) }
            p class="ratio" { strong { (figure) } }
            // A figure stays with its unit.
            p class="from-to quiet" { (under.replace(" Gb/s", "\u{a0}Gb/s").replace(" Mb/s", "\u{a0}Mb/s")) }
        }
    }
}

/// The flow's rate, and what the first thing to try should make of it.
fn rate(report: &ExplainReport) -> Markup {
    let rate = report.goodput_bps.0;
    if !(rate.is_finite() && rate > 0.0) {
        return card(true, "Rate now (goodput)", "–", "nothing was seen to move");
    }
    let first = report.verdict.first().and_then(|finding| {
        finding.remedies.iter().find_map(|r: &Remedy| r.expected_ratio.filter(|x| x.is_finite() && *x > 0.0))
    });
    let limit = report.verdict.first().is_some_and(|f| f.cause.is_limit());
    let under = first.map_or_else(
        || if limit { "nothing to mend was found" } else { "no gain can be promised" }.to_owned(),
        |ratio| format!("{}× expected: about {}", number(ratio), BitRate(rate * ratio)),
    );
    card(true, "Rate now (goodput)", &report.goodput_bps.to_string(), &under)
}

fn ceiling(stairs: Option<&Stairs>) -> Markup {
    match stairs.map(|s| (s, s.ceiling())) {
        None => card(false, "First ceiling above it", "–", "limits were not measured"),
        Some((_, None)) => {
            card(false, "First ceiling above it", "–", "no measured limit lies above the flow")
        }
        Some((_, Some(step))) => {
            let over = step.over.map(|over| format!("{}× the flow: ", number(over))).unwrap_or_default();
            let under = format!("{over}{}", step.name);
            card(false, "First ceiling above it", &BitRate(step.rate).to_string(), &under)
        }
    }
}

fn spent(costs: &[HostCost<'_>]) -> Markup {
    let known: Vec<(&str, f64)> =
        costs.iter().filter_map(|host| Some((host.name.as_str(), host.sum(|_| true).ns_per_byte?))).collect();
    if known.is_empty() {
        return card(false, "Processor time for a byte", "–", "not sampled");
    }
    let under: Vec<String> = known.iter().map(|(name, ns)| format!("{name} {}", nanos(Some(*ns)))).collect();
    let total = nanos(Some(known.iter().map(|(_, ns)| ns).sum()));
    card(false, "Processor time for a byte", &format!("{total} ns"), &under.join(", "))
}

/// Command, versions, what the tracer cost, and what a reader should know.
pub(super) fn reproduce(report: &ExplainReport) -> Markup {
    html! {
        section id="reproduce" {
            h2 { "How to reproduce" }
            dl class="commands" { dt { "Run it again" } dd { pre tabindex="0" { code { (safe(&report.command)) } } } }
            dl class="pairs" {
                dt { "landspeed" } dd { (safe(&report.landspeed)) }
                dt { "Format of the document" } dd { (report.format) }
                @if let Some(e) = report.tracer_effect.filter(plausible) {
                    dt { "Effect of the tracer" } dd { (estimate(&e).replacen('x', "×", 1)) " bytes per CPU-second with it over without, by interleaved trials" }
                }
            }
            @if !report.notes.is_empty() {
                h3 { "Notes" }
                ul { @for note in &report.notes { li { (safe(note)) } } }
            }
        }
    }
}
