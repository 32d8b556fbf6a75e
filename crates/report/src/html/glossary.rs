//! The words of the report, one line each.

use maud::{Markup, html};

const TERMS: [(&str, &str); 14] = [
    ("Rate", "payload that arrived at the receiver, per second (goodput)"),
    (
        "Bytes per CPU-second",
        "payload for one second of one core, over both hosts; the cost figure, higher is better",
    ),
    ("Idle round trip", "median time for one byte to go and come back while nothing else is sent"),
    ("Knob", "one setting that can be read, written, read back and put back"),
    ("Cell", "one configuration of both hosts and of the flow"),
    ("Trial", "one short measurement of a cell"),
    ("Block", "four trials of two cells in a random order of ABBA or BAAB, so that drift strikes both alike"),
    ("Step", "the question whether one change is kept; it brings its prerequisites along"),
    ("Incumbent, candidate", "the setting that stands, and the same with the change"),
    (
        "Ratio and interval",
        "candidate over incumbent, and the range that holds the true ratio, valid at whatever moment the step stopped",
    ),
    ("Least effect", "2 %: what is proven to be smaller is of no use"),
    ("Placebo", "a step that writes a setting and changes nothing; what it shows is noise"),
    ("Left out", "what would be lost without the step at the end, by fresh trials"),
    (
        "Discarded",
        "a block thrown away because the hypervisor took processor time, judged without looking at its result",
    ),
];

/// The glossary.
pub(super) fn section() -> Markup {
    html! {
        section id="glossary" {
            h2 { "Words" }
            dl class="pairs" { @for (term, meaning) in TERMS { dt { (term) } dd { (meaning) } } }
        }
    }
}
