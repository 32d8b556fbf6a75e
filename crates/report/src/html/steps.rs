//! All steps as tables, measured or not, and the settings at start and end.

use landspeed_record::{Estimate, Settings, StepSummary, TuneSummary};
use maud::{Markup, html};

use crate::safe;
use crate::words::{self, Kind, Primary};

/// The table of steps and the list of those that were not measured.
pub(super) fn section(summary: &TuneSummary) -> Markup {
    let order = Primary::of(&summary.goal).order();
    let tried: Vec<&StepSummary> =
        summary.steps.iter().filter(|s| !matches!(Kind::of(s), Kind::Skipped | Kind::NotTried)).collect();
    html! {
        section id="steps" {
            h2 { "All steps" }
            @if !tried.is_empty() { (table(&tried, order)) }
            (unmeasured(summary))
        }
    }
}

fn table(tried: &[&StepSummary], order: [Primary; 3]) -> Markup {
    // Explicit roles: a table that is laid out as cards on a phone is still read aloud as a table.
    html! {
        div class="scroll" {
            table class="steps stacked" role="table" {
                caption { "Ratios of candidate over incumbent with their intervals; above one is more, for the round trip slower. "
                    "“Left out” is the final setting over the final setting without the step." }
                thead role="rowgroup" {
                    tr role="row" {
                        th scope="col" role="columnheader" { "Step" }
                        th scope="col" role="columnheader" { "Answer" }
                        @for figure in order { th scope="col" role="columnheader" class="number" { (heading(figure)) } }
                        th scope="col" role="columnheader" class="number" { "Left out" }
                        th scope="col" role="columnheader" class="number" { "Blocks" }
                        th scope="col" role="columnheader" { "Why" }
                    }
                }
                tbody role="rowgroup" {
                    @for step in tried { (row(step, order)) }
                }
            }
        }
    }
}

fn heading(figure: Primary) -> &'static str {
    match figure {
        Primary::Rate => "Rate",
        Primary::Cost => "Bytes per CPU-s",
        Primary::Latency => "Round trip",
    }
}

fn row(step: &StepSummary, order: [Primary; 3]) -> Markup {
    let kind = Kind::of(step);
    html! {
        tr role="row" class=(kind.class()) {
            th scope="row" role="rowheader" {
                code { (words::setting(step)) }
                @if !step.from.is_empty() { " " span class="quiet" { "from " (safe(&step.from)) } }
                @if !step.with.is_empty() { " " span class="quiet" { "with " (safe(&step.with.join(", "))) } }
                @if step.reopened { " " span class="quiet" { "(tried again)" } }
            }
            td role="cell" data-label="Answer" { span class="answer" { span aria-hidden="true" { (kind.symbol()) " " } (kind.brief()) } }
            @for figure in order {
                td role="cell" class="number" data-label=(heading(figure)) { (estimate(figure.of_step(step))) }
            }
            td role="cell" class="number" data-label="Left out" { (estimate(step.left_out.filter(words::plausible))) }
            td role="cell" class="number" data-label="Blocks" {
                span {
                    (step.blocks)
                    @if step.discarded > 0 { " " span class="interval" { (step.discarded) " discarded" } }
                }
            }
            td role="cell" class="why" data-label="Why" { (safe(&step.reason)) }
        }
    }
}

pub(super) fn estimate(e: Option<Estimate>) -> Markup {
    html! {
        @match e {
            Some(e) => { span class="estimate" { (words::number(e.ratio)) "× " span class="interval" { (words::interval(&e)) } } },
            None => "–",
        }
    }
}

fn unmeasured(summary: &TuneSummary) -> Markup {
    let groups = words::unmeasured(summary);
    html! {
        @for (kind, heading) in [(Kind::Skipped, "Skipped: cannot be turned here"), (Kind::NotTried, "Not tried: no room or no point")] {
            @if groups.iter().any(|(k, ..)| *k == kind) {
                h3 { (heading) }
                dl class="reasons" {
                    @for (_, reason, names) in groups.iter().filter(|(k, ..)| *k == kind) {
                        dt { (reason) }
                        dd { @for name in names { code { (name) } " " } }
                    }
                }
            }
        }
    }
}

/// A setting that the run changed: where, knob, start, final.
struct Changed<'a> {
    place: &'static str,
    knob: &'a str,
    before: &'a str,
    value: &'a str,
}

/// What differs between two settings of one place.
fn differing<'a>(place: &'static str, from: &'a Settings, to: &'a Settings) -> Vec<Changed<'a>> {
    let before = |knob: &String| from.get(knob).map_or("", String::as_str);
    to.iter()
        .filter(|(knob, value)| before(knob) != value.as_str())
        .map(|(knob, value)| Changed { place, knob, before: before(knob), value })
        .collect()
}

/// Settings that differ between start and end, those that changed alike on both hosts once.
pub(super) fn changed(summary: &TuneSummary) -> Markup {
    let (start, last) = (&summary.start_cell, &summary.final_cell);
    let mut rows = differing("host A", &start.a, &last.a);
    for other in differing("host B", &start.b, &last.b) {
        let alike =
            |r: &&mut Changed<'_>| (r.knob, r.before, r.value) == (other.knob, other.before, other.value);
        match rows.iter_mut().find(alike) {
            Some(row) => row.place = "both hosts",
            None => rows.push(other),
        }
    }
    rows.extend(differing("flow", &start.flow, &last.flow));
    html! {
        @if !rows.is_empty() {
            section id="setting" {
                h2 { "The setting that won" }
                div class="scroll" { (changed_table(&rows)) }
            }
        }
    }
}

fn changed_table(rows: &[Changed<'_>]) -> Markup {
    html! {
        table {
            caption { "What differs between the first and the last setting. All of it was put back after the run unless the head of this page says otherwise." }
            thead { tr { th scope="col" { "Knob" } th scope="col" { "Where" } th scope="col" { "Start" } th scope="col" { "Final" } } }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { code { (safe(row.knob)) } }
                        td { (row.place) }
                        td { (safe(row.before)) }
                        td { strong { (safe(row.value)) } }
                    }
                }
            }
        }
    }
}
