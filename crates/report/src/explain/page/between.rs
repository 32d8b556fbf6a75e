//! What is between the hosts: flows held against the window model, and a link in user space.

use landspeed_record::ExplainReport;
use maud::{Markup, html};

use super::super::rules::{Checked, RuleRow};
use crate::wan;

/// The window model against what was seen of the busiest flows.
pub(super) fn model(flows: &[Checked]) -> Markup {
    html! {
        @if !flows.is_empty() {
            h3 { "What the window model says of it" }
            p {
                "The model of Feng et al. (SC'03, section 3.5.1) with today's rules of Linux: each rule is fed with what was seen "
                "one stage before it, and held against what was seen then."
            }
            @for flow in flows { (rules(flow)) }
        }
    }
}

fn rules(flow: &Checked) -> Markup {
    let rows: Vec<_> = flow.rows.iter().map(|row| (row.name, cells(row), !row.holds)).collect();
    stacked("The window model", &flow.flow, &["Rule", "the model says", "seen", "from"], &rows)
}

fn cells(row: &RuleRow) -> Vec<String> {
    let verdict = if row.holds { "" } else { " (does not hold)" };
    vec![row.predicted.clone(), format!("{}{verdict}", row.seen), row.told.clone()]
}

/// The wide-area link: what it did by direction, and whether it can be believed.
pub(super) fn link(report: &ExplainReport) -> Markup {
    let Some(wan) = &report.wan else { return html! {} };
    let cells = wan::rows(wan);
    let rows: Vec<_> = cells.iter().map(|row| (row[0].as_str(), row[1..].to_vec(), false)).collect();
    html! {
        section id="wan" {
            h2 { "The link between the hosts" }
            @for (index, line) in wan::verdict(wan).iter().enumerate() {
                p class=[(index == 0 && !wan.unfit.is_empty()).then_some("poor")] { (micros(line)) }
            }
            (stacked("The link by direction", &wan::title(wan), &wan::HEADERS, &rows))
            p { (wan::shared(wan)) }
        }
    }
}

/// A table whose rows are cards on a phone: (name, cells, whether to mark it).
fn stacked(label: &str, caption: &str, headers: &[&str], rows: &[(&str, Vec<String>, bool)]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label=(label) {
            table class="stacked" role="table" {
                caption { (caption) }
                thead role="rowgroup" { tr role="row" { @for name in headers { th scope="col" role="columnheader" { (name) } } } }
                tbody role="rowgroup" {
                    @for (name, cells, marked) in rows {
                        tr role="row" class=[marked.then_some("poor")] {
                            th scope="row" role="rowheader" { (name) }
                            @for (header, cell) in headers.iter().skip(1).zip(cells) { td role="cell" data-label=(header) { (micros(cell)) } }
                        }
                    }
                }
            }
        }
    }
}

fn micros(text: &str) -> String {
    text.replace(" us", " µs")
}
