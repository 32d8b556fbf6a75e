//! Cost over sizes on the page: the answers, a chart a sweep, the lines, and every figure behind them.

use landspeed_record::ExplainReport;
use maud::{Markup, html};

use super::super::sizes::{self, Sweep};
use super::super::words::percent;
use super::super::{chart, sizes as prepared};

/// A line that leaves more than this unexplained is no line.
const POOR: f64 = 0.15;

pub(super) fn section(report: &ExplainReport) -> Markup {
    let sweeps = sizes::sweeps(report);
    html! {
        @if !sweeps.is_empty() {
            section id="sizes" {
                h2 { "Per packet and per byte" }
                p {
                    "Cost over message sizes, fitted as a time per message and a time per byte; where a message is cut, a time once for that and a time for each packet after the first. "
                    "The link's is the time between arrivals at the receiver: what the slowest part lets through. "
                    "The residual is what such a line leaves unexplained, as a share of the mean cost."
                }
                @for answer in &report.answers { (answered(prepared::answer(answer))) }
                @for (index, sweep) in sweeps.iter().enumerate() {
                    h3 { (sweep.title) }
                    @if let Some(drawn) = chart::sizes(index, sweep) { (drawn) }
                    (lines(sweep))
                    (points(sweep))
                }
                ul class="asides" { @for note in sizes::notes(report) { li { (note) } } }
            }
        }
    }
}

fn answered((question, lines): (String, Vec<String>)) -> Markup {
    html! {
        h3 { (question) }
        ul class="evidence" { @for line in &lines { li { (line) } } }
    }
}

fn lines(sweep: &Sweep<'_>) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label={ (sweep.title) ", lines" } {
            table class="figures fit" {
                thead { tr { th scope="col" { "Layer" } @for name in ["ns/message", "ns/byte", "first cut, ns", "ns/further packet", "residual"] { th scope="col" class="number" { (name) } } } }
                tbody {
                    @for (layer, line) in &sweep.lines {
                        @let poor = line.residual > POOR;
                        tr {
                            th scope="row" { (layer) }
                            @for term in &sizes::terms(line, sweep.cut) { td class="number" { (term) } }
                            td class={ "number" @if poor { " poor" } } { (percent(line.residual)) @if poor { " (no line)" } }
                        }
                    }
                }
            }
        }
    }
}

fn points(sweep: &Sweep<'_>) -> Markup {
    let (headers, rows) = sweep.table();
    html! {
        @if !rows.is_empty() {
            details class="rest" {
                summary { "Every size: nanoseconds a message, median (least–most)" }
                div class="scroll" tabindex="0" role="group" aria-label={ (sweep.title) ", sizes" } {
                    table class="figures" {
                        thead { tr { @for header in &headers { th scope="col" class="number" { (header) } } } }
                        tbody { @for row in &rows { tr { @for cell in row { td class="number" { (cell) } } } } }
                    }
                }
            }
        }
    }
}
