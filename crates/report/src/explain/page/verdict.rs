//! Causes in order, each with its evidence and what to try.

use landspeed_record::{ExplainReport, Finding, Remedy};
use maud::{Markup, html};

use super::super::words::{self, sureness, unit, whole};
use crate::safe;

pub(super) fn section(report: &ExplainReport) -> Markup {
    let (first, next) = report.verdict.split_first().map_or((None, [].as_slice()), |(f, n)| (Some(f), n));
    html! {
        section id="verdict" {
            h2 { "Why, and what to try" }
            @match first {
                Some(first) => { (finding(1, first)) },
                None => { p class="absent" { "Nothing that was seen points to a cause, and no limit was reached." } },
            }
            @if !next.is_empty() {
                h3 { "Then, in this order" }
                @for (finding, rank) in next.iter().zip(2..) { (self::finding(rank, finding)) }
            }
        }
    }
}

fn finding(rank: usize, finding: &Finding) -> Markup {
    let kind = if finding.cause.is_limit() { "limit" } else { "fault" };
    html! {
        article class={ "finding " (kind) @if rank == 1 { " first" } } data-rank=(rank) {
            h3 { span class="rank" { (rank) } " " (words::capital(&words::titled(finding))) }
            (gauges(finding))
            // The first one's sentence leads the page.
            @if rank > 1 { p { (words::capital(&safe(&finding.summary))) } }
            div class="pair" { (evidence(&finding.evidence)) (remedies(&finding.remedies)) }
        }
    }
}

fn evidence(lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() {
            div {
                h4 { "What was seen" }
                ul class="evidence" { @for line in lines { li { (safe(line)) } } }
            }
        }
    }
}

/// How sure, and how much it costs.
fn gauges(finding: &Finding) -> Markup {
    let of = if finding.cause.is_limit() { "a limit, not a fault" } else { "a fault that can be mended" };
    html! {
        ul class="facts" {
            li { (of) }
            li { (meter(finding.confidence)) (sureness(finding.confidence)) ", " (whole(finding.confidence)) " sure" }
            @if let Some(toll) = words::toll(finding) { li { (meter(toll)) "costs about " (whole(toll)) " of its time or rate" } }
            @if let Some(allows) = words::allows(finding) { li { (allows) } }
        }
    }
}

fn meter(share: f64) -> Markup {
    html! {
        svg class="meter" viewBox="0 0 48 8" width="48" height="8" aria-hidden="true" {
            rect class="all" width="48" height="8" rx="4" {}
            rect class="part" width=(crate::chart::frame::n(unit(share) * 48.0)) height="8" rx="4" {}
        }
    }
}

fn remedies(remedies: &[Remedy]) -> Markup {
    html! {
        @if !remedies.is_empty() {
            div {
                h4 { "What to try" }
                ul class="remedies" { @for each in remedies { li { (remedy(each)) } } }
            }
        }
    }
}

fn remedy(remedy: &Remedy) -> Markup {
    html! {
        @if let Some(setting) = words::setting(remedy) { code { (setting) } " " }
        @if let Some(gain) = words::expected(remedy) { strong { (gain.replace('x', "×")) " expected" } " " }
        @if !remedy.what.is_empty() { span class="quiet" { (safe(&remedy.what)) } }
    }
}
