//! The charts with what is said around them.

use landspeed_record::{CostClass, CostFigure, ExplainReport};
use maud::{Markup, html};

use super::super::cost::{HostCost, present};
use super::super::rules;
use super::super::stairs::Stairs;
use super::super::words::{nanos, percent};
use super::super::{chart, flame, hops, window};
use super::{between, tables};

/// Symbols without a rule that are listed; there may be thousands.
const LISTED: usize = 200;

pub(super) fn cost(hosts: &[HostCost<'_>]) -> Markup {
    html! {
        @if !hosts.is_empty() {
            section id="cost" {
                h2 { "Where the processor time goes" }
                (chart::cost(hosts))
                (figures(hosts))
                @for host in hosts { (rest(host)) }
                (asides(hosts))
            }
        }
    }
}

/// Every figure behind the bars.
fn figures(hosts: &[HostCost<'_>]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label="Cost by layer, table" {
            table class="figures" {
                caption { "Per byte of payload and per packet on the link, nanoseconds of processor time." }
                thead {
                    tr { th scope="col" rowspan="2" { "Layer" } @for host in hosts { th class="first" scope="colgroup" colspan="3" { (host.name) } } }
                    tr { @for _ in hosts { th scope="col" class="number first" { "share" } th scope="col" class="number" { "ns/byte" } th scope="col" class="number" { "ns/packet" } } }
                }
                tbody {
                    @for class in present(hosts) {
                        tr { (layer(class)) @for host in hosts { (cells(host.of_class(class).map(|c| c.figure))) } }
                    }
                    tr class="total" { th scope="row" { "all" } @for host in hosts { (cells(Some(host.sum(|_| true)))) } }
                    tr { th scope="row" { "stolen (apart)" } @for host in hosts { td class="number first" { (host.steal().map_or_else(|| "–".to_owned(), percent)) } td {} td {} } }
                }
            }
        }
    }
}

fn layer(class: CostClass) -> Markup {
    html! { th scope="row" { span class={ "swatch c-" (class.name()) } {} (class.name()) } }
}

fn cells(figure: Option<CostFigure>) -> Markup {
    html! {
        @match figure {
            None => { td class="number first" { "–" } td class="number" { "–" } td class="number" { "–" } },
            Some(f) => { td class="number first" { (percent(f.share)) } td class="number" { (nanos(f.ns_per_byte)) } td class="number" { (nanos(f.ns_per_packet)) } },
        }
    }
}

/// What no rule knows, by symbol.
fn rest(host: &HostCost<'_>) -> Markup {
    let symbols = host.unclassified();
    html! {
        @if let Some(share) = host.classified() {
            details class="rest" {
                summary { (host.name) ": a rule knows " (percent(share)) " of the samples in kernel code" @if !symbols.is_empty() { "; the rest by symbol" } }
                @if !symbols.is_empty() {
                    ul class="symbols" { @for (symbol, share) in symbols.iter().take(LISTED) { li { code { (symbol) } " " (percent(*share)) } } }
                    @if symbols.len() > LISTED { p { (symbols.len() - LISTED) " more are in the JSON document." } }
                }
            }
        }
    }
}

/// What the samples are and what a reader must know of them; what holds for all hosts is said once.
fn asides(hosts: &[HostCost<'_>]) -> Markup {
    let mut lines: Vec<(String, String)> = Vec::new();
    for host in hosts {
        let notes = host.profile.iter().flat_map(|p| &p.notes).map(|note| crate::safe(note));
        for line in host.source().into_iter().chain(notes) {
            match lines.iter_mut().find(|(_, known)| *known == line) {
                Some((names, _)) => *names = format!("{names}, {}", host.name),
                None => lines.push((host.name.clone(), line)),
            }
        }
    }
    html! { ul class="asides" { @for (names, line) in &lines { li { (names) ": " (line) } } } }
}

pub(super) fn flames(hosts: &[HostCost<'_>]) -> Markup {
    let graphs: Vec<_> =
        hosts.iter().filter_map(|host| Some((&host.name, flame::flame(host.profile?)?))).collect();
    html! {
        @if !graphs.is_empty() {
            section id="flames" {
                h2 { "Down to the function" }
                @for (index, (name, graph)) in graphs.iter().enumerate() { h3 { (name) } (chart::flame(index, name, graph)) }
            }
        }
    }
}

pub(super) fn hops(report: &ExplainReport) -> Markup {
    let rows = hops::rows(report);
    let counts = hops::counts(report);
    html! {
        @if !rows.is_empty() || !counts.rows.is_empty() {
            section id="hops" {
                h2 { "Where packets wait" }
                @if !rows.is_empty() { (chart::hops(&rows)) }
                @if !counts.rows.is_empty() { (tables::counts(&counts)) }
                ul class="asides" { @for line in hops::traced(report) { li { (line) } } }
            }
        }
    }
}

pub(super) fn window(report: &ExplainReport) -> Markup {
    html! {
        @if let Some(window) = window::window(report) {
            section id="windows" {
                h2 { "The window" }
                (chart::window(&window))
                (between::model(&rules::checked(report)))
            }
        }
    }
}

pub(super) fn limits(report: &ExplainReport, stairs: Option<&Stairs>) -> Markup {
    let parts = tables::parts(report);
    html! {
        @if stairs.is_some() || parts.is_some() {
            section id="limits" {
                h2 { "What each part could do" }
                @if let Some(stairs) = stairs { (chart::stairs(stairs)) }
                @if let Some(parts) = parts { h3 { "All that was measured" } (parts) }
            }
        }
    }
}
