//! The tables of the page.

use landspeed_record::ExplainReport;
use maud::{Markup, html};

use super::super::hops::Counts;
use super::super::parts::{self, Row};
use super::super::words;

/// What happened to packets, host by host.
pub(super) fn counts(counts: &Counts) -> Markup {
    let shown = |count: &Option<u64>| count.map_or_else(|| "–".to_owned(), words::grouped);
    html! {
        h3 { "Which way packets took" }
        div class="scroll" tabindex="0" role="group" aria-label="Packets by path" {
            table class="figures" {
                thead { tr { th scope="col" { "Packets" } @for host in &counts.hosts { th scope="col" class="number" { (host) } } } }
                tbody {
                    @for (name, row) in &counts.rows {
                        tr { th scope="row" { (name) } @for count in row { td class="number" { (shown(count)) } } }
                    }
                }
            }
        }
    }
}

/// What each part can do, host beside host.
pub(super) fn parts(report: &ExplainReport) -> Option<Markup> {
    let rows = parts::limits(report);
    (!rows.is_empty()).then(|| beside(report, &rows, "Part", "Limits of the hosts"))
}

/// What the hosts are and how they were.
pub(super) fn hosts(report: &ExplainReport) -> Markup {
    let rows = parts::facts(report);
    html! { @if !rows.is_empty() { section id="hosts" { h2 { "The hosts" } (beside(report, &rows, "Fact", "Facts of the hosts")) } } }
}

fn beside(report: &ExplainReport, rows: &[Row], what: &str, label: &str) -> Markup {
    let names: Vec<String> = report.hosts.iter().enumerate().map(|(i, h)| words::host(&h.name, i)).collect();
    let shown = |value: &str| if value.is_empty() { "–".to_owned() } else { value.replace(" us", " µs") };
    html! {
        div class="scroll" tabindex="0" role="group" aria-label=(label) {
            table class="stacked" role="table" {
                thead role="rowgroup" { tr role="row" { th scope="col" role="columnheader" { (what) } @for name in &names { th scope="col" role="columnheader" { (name) } } } }
                tbody role="rowgroup" {
                    @for row in rows {
                        tr role="row" {
                            th scope="row" role="rowheader" { (row.name) }
                            @if alike(row) {
                                td role="cell" colspan=(names.len()) data-label="both hosts" { (shown(&row.values[0])) }
                            } @else {
                                @for (name, value) in names.iter().zip(&row.values) { td role="cell" data-label=(name) { (shown(value)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Whether a row of two hosts says the same of both.
fn alike(row: &Row) -> bool {
    row.values.len() == 2 && row.values[0] == row.values[1]
}

/// What could not be seen or judged, and what was not looked at.
pub(super) fn unseen(report: &ExplainReport) -> Markup {
    let (lines, absent) = (parts::unseen(report), parts::absent(report));
    html! {
        section id="unseen" {
            h2 { "What could not be seen or judged" }
            @if lines.is_empty() && absent.is_empty() { p class="absent" { "Everything that landspeed looks for could be seen." } }
            dl class="pairs" {
                @for (place, line) in &lines { dt { (place) } dd { (line) } }
                @if !absent.is_empty() { dt { "not measured" } dd { (absent.join(", ")) } }
            }
        }
    }
}
