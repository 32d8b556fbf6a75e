//! What the paper found, and whether it shows here.

use landspeed_record::{CompareReport, PaperFinding};
use maud::{Markup, html};

use super::super::words;
use crate::safe;

pub(super) fn section(report: &CompareReport) -> Markup {
    let (told, untold): (Vec<_>, Vec<_>) = report.findings.iter().partition(|f| f.reproduces.is_some());
    let shown = told.iter().filter(|finding| finding.reproduces == Some(true)).count();
    html! {
        @if !report.findings.is_empty() {
            section id="findings" {
                h2 { "What the paper found" }
                p {
                    (shown) " of its findings show here, " (told.len() - shown) " do not, and " (untold.len())
                    " this study cannot tell. A finding shows where the margin by which it holds, over all repeats, lies above zero (95 % interval)."
                }
                ul class="findings" { @for finding in told { (row(finding)) } }
                @if !untold.is_empty() {
                    details class="rest" {
                        summary { (untold.len()) " that this study cannot tell, and why" }
                        ul class="findings" { @for finding in untold { (row(finding)) } }
                    }
                }
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
