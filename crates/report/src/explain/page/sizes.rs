//! Cost over sizes on the page: the answers, a chart a sweep, the lines, and every figure behind them.

use landspeed_record::ExplainReport;
use maud::{Markup, html};

use super::super::chart;
use super::super::sizes::{self, Sweep, WHOLE};
use super::super::words::percent;

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
                @for answer in &report.answers { (answered(sizes::answer(answer))) }
                @for (index, sweep) in sweeps.iter().enumerate() {
                    h3 { (sweep.title) }
                    @if let Some(drawn) = chart::sizes(index, sweep) { (drawn) }
                    (lines(sweep, true))
                    (classes(sweep))
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

/// Lines of what is no part of another layer, or of the parts.
fn lines(sweep: &Sweep<'_>, whole: bool) -> Markup {
    let shown = sweep.lines.iter().filter(|(name, _)| WHOLE.contains(&name.as_str()) == whole);
    html! {
        div class="scroll" tabindex="0" role="group" aria-label={ (sweep.title) ", lines" } {
            table class="figures fit" {
                thead { tr { th scope="col" { "Layer" } @for name in ["ns/message", "ns/byte", "first cut, ns", "ns/further packet", "residual"] { th scope="col" class="number" { (name) } } } }
                tbody {
                    @for (layer, line) in shown {
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

/// Lines of the classes of processor time, which a few hundred samples a size make rough.
fn classes(sweep: &Sweep<'_>) -> Markup {
    html! {
        @if sweep.lines.iter().any(|(name, _)| !WHOLE.contains(&name.as_str())) {
            details class="rest" { summary { "By class of processor time, as sampled" } (lines(sweep, false)) }
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
