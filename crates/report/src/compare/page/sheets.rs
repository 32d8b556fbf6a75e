//! Tables of the study, and the matrix of meetings.

use landspeed_record::CompareReport;
use maud::{Markup, html};

use super::super::matrix::{self, Matrix, Met};
use super::super::tables::{self, Sheet};
use super::super::{chart, words};
use crate::safe;

/// A table whose first column names the row.
fn table(label: &str, caption: &Markup, sheet: &Sheet) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label=(label) {
            table class="figures study" {
                caption { (caption) }
                thead { tr { @for (index, name) in sheet.headers.iter().enumerate() { th scope="col" class=[(index > 0).then_some("number")] { (name) } } } }
                tbody {
                    @for row in &sheet.rows {
                        tr class=[row.is_papers.then_some("papers")] {
                            th scope="row" { (row.name.trim_start()) }
                            @for cell in &row.cells { td class="number" { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// Tables 1 and 2 as the paper prints them, and the intervals behind them.
pub(super) fn paper_tables(report: &CompareReport) -> Markup {
    let beside = !report.paper.is_empty();
    html! {
        @if !report.protocols.is_empty() {
            section id="tables" {
                h2 { "The paper's two tables" }
                (table("Table 1", &html! {
                    "Over all regions, throughput in Mb/s, as Table 1 of Cottrell et al. (2005), and what was resent and how long a flow that enters a path in use needs to come to its fair share. "
                    @if beside { "Rows in grey are the paper's own." } @else { "The paper's own values are of another size or path and stand nowhere here." }
                }, &tables::overall(report)))
                (table("Table 2", &html! { "Stability (S, smaller is steadier) and fairness (F, 1 is fair) by region, as its Table 2." }, &tables::by_region(report)))
                @if report.study.independent_repeats() > 1 {
                    details class="rest" {
                        summary { "Over repeats, with the 95 % interval of each mean" }
                        (table("Over repeats", &html! { "A figure of each run, its mean over the runs that count, and half of the 95 % interval of that mean (Student's t)." }, &tables::intervals(report)))
                    }
                }
            }
        }
    }
}

/// Who is better by what, and which differences are real.
pub(super) fn rankings(report: &CompareReport) -> Markup {
    let notes = words::ranking_notes(report);
    html! {
        @if !report.rankings.is_empty() {
            section id="rankings" {
                h2 { "Who is better" }
                p { "Best first. Between two boxes some difference is real; within a box none can be called so (Student's test of the differences repeat by repeat, Holm's correction over all pairs of a row, 5 %)." }
                dl class="orders" {
                    @for ranking in &report.rankings {
                        dt { (safe(&ranking.by)) }
                        dd { @for group in words::groups(ranking) { span class="group" { (group) } } }
                    }
                }
                @if !notes.is_empty() { ul class="asides" { @for note in &notes { li { (note) } } } }
            }
        }
    }
}

pub(super) fn trade_offs(report: &CompareReport) -> Markup {
    html! {
        @if let Some(chart) = chart::parallel(report) { section id="trade-offs" { h2 { "The trade-offs" } (chart) } }
    }
}

/// All pairs that met.
pub(super) fn meetings(report: &CompareReport) -> Markup {
    let Some(matrix) = matrix::matrix(report) else { return html! {} };
    html! {
        section id="meetings" {
            h2 { "Two protocols on one path" }
            p { "The goodput of a flow of the row's protocol over that of the column's while all flows run. A filled cell is a difference that the repeats bear out; blue is the row's, amber the column's." }
            (cells(&matrix))
        }
    }
}

fn cells(matrix: &Matrix) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label="Meetings" {
            table class="matrix" {
                caption { "Row over column" }
                thead { tr { th scope="col" { "" } @for side in &matrix.sides { th scope="col" class="number" { (side) } } } }
                tbody {
                    @for (side, row) in matrix.sides.iter().zip(&matrix.cells) {
                        tr {
                            th scope="row" { (side) }
                            @for met in row {
                                @match met {
                                    Some(met) => { td class={ "number " (tone(*met)) } title=[told(*met)] { (matrix::share(met.ratio)) } },
                                    None => { td class="number" {} },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Ratios up to this are called even, then little, more and much.
const STEPS: [f64; 3] = [1.1, 2.0, 4.0];

/// How a cell is filled: by how far the shares are apart, where the interval does not hold an even share.
fn tone(met: Met) -> &'static str {
    const ROWS: [&str; 4] = ["even", "row-1", "row-2", "row-3"];
    const COLUMNS: [&str; 4] = ["even", "column-1", "column-2", "column-3"];
    if met.is_open() {
        return "open";
    }
    let apart = met.ratio.max(1.0 / met.ratio);
    let step = STEPS.iter().filter(|step| apart > **step).count();
    if met.ratio >= 1.0 { ROWS[step] } else { COLUMNS[step] }
}

fn told(met: Met) -> Option<String> {
    met.ends.map(|(low, high)| format!("95 % interval {} to {}", matrix::share(low), matrix::share(high)))
}

pub(super) fn round_trips(report: &CompareReport) -> Markup {
    html! {
        @if !report.round_trips.is_empty() {
            section id="round-trips" {
                h2 { "Two round trips on one path" }
                (table("Round trips", &html! { "Two flows of one protocol from start to end, of which one has the longer round trip. The bias is a where goodput goes as RTT to the power of -a: 0 is fair, 1 to 2 is what Lakshman and Madhow (1997) find for Reno." }, &tables::round_trips(report)))
            }
        }
    }
}

pub(super) fn short_flows(report: &CompareReport) -> Markup {
    let size = report.study.contests.iter().find_map(|contest| match contest.question {
        landspeed_record::Question::ShortFlows { size_bytes, .. } => Some(size_bytes),
        _ => None,
    });
    html! {
        @if !report.short_flows.is_empty() {
            section id="short-flows" {
                h2 { "Short flows beside a long one" }
                (table("Short flows", &html! {
                    "How long a short flow " @if let Some(size) = size { "of " (size) " " } "takes while a long one of the same protocol holds the path; those of all repeats together. A dash: fewer than ten flows lie beyond that percentile."
                }, &tables::short_flows(report)))
            }
        }
    }
}

pub(super) fn streams(report: &CompareReport) -> Markup {
    html! {
        @if !report.streams.is_empty() {
            section id="streams" {
                h2 { "What a bit costs by the number of streams" }
                (table("Streams", &html! { "Processor time of the sender against parallel streams, as the paper's Figures 6 and 7." }, &tables::streams(report)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_repeats_bear_out_is_filled() {
        let met = |ratio, ends| Met { ratio, ends };
        assert_eq!(tone(met(3.0, Some((0.9, 9.0)))), "open");
        assert_eq!(tone(met(3.0, Some((2.0, 4.0)))), "row-2");
        assert_eq!(tone(met(0.1, Some((0.05, 0.2)))), "column-3");
        assert_eq!(tone(met(1.05, Some((1.01, 1.09)))), "even");
        assert_eq!(tone(met(3.0, None)), "open", "one repeat bears out nothing");
    }
}
