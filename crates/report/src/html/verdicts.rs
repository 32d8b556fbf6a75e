//! What held the path back on the way, and what came of it.

use landspeed_record::{Advised, Line, Record, StepSummary, TuneSummary, VerdictLine};
use maud::{Markup, html};

use super::steps::estimate;
use crate::expected::{advised, because, expected, sums, weighed};
use crate::safe;
use crate::words::{self, Kind, Primary};

/// Causes of a verdict that are shown.
const SHOWN: usize = 4;

/// The verdicts of the run and the steps that they brought forward; nothing where the run looked at nothing.
pub(super) fn section(summary: &TuneSummary, record: &Record) -> Markup {
    let verdicts: Vec<&VerdictLine> = record
        .lines
        .iter()
        .filter_map(|line| match line {
            Line::Verdict(line) => Some(&**line),
            _ => None,
        })
        .collect();
    let steps = advised(summary);
    html! {
        @if let Some(of) = &summary.expectations {
            section id="verdicts" {
                h2 { "What held it back on the way" }
                p {
                    "Before the first step and after each kept one a stream was watched for what holds it back, and what would "
                    "relieve that was tried first. It changes the order alone: each step is judged like any other."
                }
                @if !verdicts.is_empty() { div class="scroll" { (looks(&verdicts, summary)) } }
                @if !steps.is_empty() { h3 { "Expected and measured" } div class="scroll" { (outcomes(&steps)) } }
                p { (sums(of)) "." }
            }
        }
    }
}

fn looks(verdicts: &[&VerdictLine], summary: &TuneSummary) -> Markup {
    html! {
        table {
            caption { "What explain found, first cause first; a share is that of the flow's time that the cause costs." }
            thead { tr { th scope="col" { "At" } th scope="col" class="number" { "Rate" } th scope="col" { "Held back by" } } }
            tbody {
                @for line in verdicts {
                    tr {
                        th scope="row" { (moment(line, summary)) }
                        td class="number" { (line.verdict.goodput_bps) }
                        td {
                            @for (index, finding) in line.verdict.findings.iter().take(SHOWN).enumerate() {
                                @if index > 0 { "; " }
                                span title=(safe(&finding.summary)) { (weighed(finding.cause, finding.weight)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// "the start", or the kept step after which the run looked.
fn moment(line: &VerdictLine, summary: &TuneSummary) -> Markup {
    let step = summary.steps.iter().find(|step| step.id == line.after);
    html! {
        @match step {
            Some(step) => { "after " code { (words::setting(step)) } },
            None => "the start",
        }
    }
}

fn outcomes(steps: &[(&StepSummary, &Advised)]) -> Markup {
    html! {
        table class="steps" {
            caption { "Steps that a verdict brought forward: the rate that it expected, candidate over incumbent, and the one that was measured." }
            thead {
                tr {
                    th scope="col" { "Step" }
                    th scope="col" { "Because of" }
                    th scope="col" class="number" { "Expected" }
                    th scope="col" class="number" { "Measured" }
                    th scope="col" { "Answer" }
                }
            }
            tbody { @for (step, said) in steps { (outcome(step, said)) } }
        }
    }
}

fn outcome(step: &StepSummary, said: &Advised) -> Markup {
    let kind = Kind::of(step);
    html! {
        tr class=(kind.class()) {
            th scope="row" { code { (words::setting(step)) } }
            td { (because(said)) }
            td class="number" { @match expected(said) { Some(ratio) => { (words::number(ratio)) "×" }, None => "–" } }
            td class="number" { (estimate(Primary::Rate.of_step(step))) }
            td { span class="answer" { span aria-hidden="true" { (kind.symbol()) " " } (kind.brief()) } }
        }
    }
}
