//! What the paper found, and whether it shows here.

use landspeed_record::{CompareReport, PaperFinding};
use maud::{Markup, html};

use super::super::words;
use crate::safe;

pub(super) fn section(report: &CompareReport) -> Markup {
    let count = |shows: Option<bool>| report.findings.iter().filter(|f| f.reproduces == shows).count();
    html! {
        @if !report.findings.is_empty() {
            section id="findings" {
                h2 { "What the paper found" }
                p {
                    (count(Some(true))) " of its findings show here, " (count(Some(false))) " do not, and "
                    (count(None)) " this study cannot tell. A finding shows where every repeat's margin taken together lies above zero (95 %)."
                }
                ul class="findings" { @for finding in &report.findings { (row(finding)) } }
            }
        }
    }
}

fn row(finding: &PaperFinding) -> Markup {
    let (sign, word) = words::shows(finding.reproduces);
    let class = match finding.reproduces {
        Some(true) => "shows",
        Some(false) => "shows-not",
        None => "untold",
    };
    html! {
        li class=(class) {
            p class="claim" { span class="sign" { (sign) " " (word) } " " (safe(&finding.claim)) }
            p class="seen" {
                (safe(&finding.evidence)) "."
                @if let Some(reason) = &finding.reason { " " em { "Likely: " (safe(reason)) "." } }
                " " span class="quiet" { (safe(&finding.place)) }
            }
        }
    }
}
