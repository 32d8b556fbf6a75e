//! The head of the page, its figures, and how to run it again.

use landspeed_record::{Estimate, Figures, Gain, Record, TuneSummary};
use maud::{Markup, html};

use crate::words::{self, Primary};
use crate::{chart, safe};

/// "12.3× the rate".
pub(super) fn title(summary: &TuneSummary) -> String {
    let primary = Primary::of(&summary.goal);
    match primary.of_gain(&summary.gain) {
        Some(e) => format!("{}× the {}", words::number(e.ratio), primary.phrase()),
        None => "A run without final figures".to_owned(),
    }
}

pub(super) fn header(summary: &TuneSummary) -> Markup {
    let measured = words::measured(summary).len();
    html! {
        header {
            p class="eyebrow" { "landspeed · tuning report" }
            h1 { (title(summary)) }
            p class="lead" { (lead(summary)) }
            ul class="facts" {
                li { (safe(&summary.topology)) }
                li { "for " (safe(&summary.goal)) }
                li { "from " (safe(&summary.baseline)) }
                li { (measured) " steps measured, " (words::kept(summary)) }
                li { (words::duration(summary.took_ns)) }
                li { time { (safe(&summary.started)) } }
            }
            @if let Some(void) = &summary.void {
                p class="notice bad" role="alert" { strong { "✗ Void. " } (safe(void)) }
            }
            @for doubt in &summary.doubts {
                p class="notice bad" { strong { "In doubt. " } (safe(doubt)) }
            }
            (restored(summary))
        }
    }
}

fn lead(summary: &TuneSummary) -> String {
    let [first, second, _] = Primary::of(&summary.goal).order();
    let said = |p: Primary, e: &Estimate| {
        format!("{}× the {} {}", words::number(e.ratio), p.phrase(), words::interval(e))
    };
    let parts: Vec<String> =
        [first, second].iter().filter_map(|p| p.of_gain(&summary.gain).map(|e| said(*p, &e))).collect();
    match parts.as_slice() {
        [] => "The run ended before its final check.".to_owned(),
        parts => format!("Final setting over start, fresh interleaved trials: {}.", parts.join(", ")),
    }
}

fn restored(summary: &TuneSummary) -> Markup {
    let (class, mark, text) = if summary.restored {
        ("notice good", "✓ ", "Everything put back: every value reads back as it was before the run.")
    } else {
        ("notice bad", "✗ ", "Not everything was put back: run “landspeed undo” on the hosts.")
    };
    html! {
        div class=(class) {
            p { (mark) (text) }
            @if !summary.restored_notes.is_empty() {
                // What went wrong is shown at once; what went well is there for who asks.
                details open[!summary.restored] {
                    summary { (summary.restored_notes.len()) " lines on what was done" }
                    ul { @for note in &summary.restored_notes { li { (safe(note)) } } }
                }
            }
        }
    }
}

/// The three figures, start and final.
pub(super) fn figures(summary: &TuneSummary) -> Markup {
    let order = Primary::of(&summary.goal).order();
    html! {
        section class="cards" aria-label="Figures at start and end" {
            @for (index, figure) in order.into_iter().enumerate() {
                @let (from, to) = pair(figure, &summary.start, &summary.final_);
                div class={ "card" @if index == 0 { " primary" } } {
                    h2 { (card_name(figure)) }
                    p class="ratio" { (ratio(figure.of_gain(&summary.gain))) }
                    p class="from-to" {
                        span class="from" { (from) }
                        span class="arrow" aria-label="to" { " → " }
                        span class="to" { (to) }
                    }
                }
            }
        }
        @if let Some((start, last)) = words::loaded(summary) {
            p class="against" {
                "Round trip while the stream runs: " (start) " at the start, " strong { (last) } " at the end."
            }
        }
        @if let Some(gain) = &summary.against { (against(gain)) }
        @if let Some(found) = &summary.confirmation {
            p class=(if found.holds { "notice good" } else { "notice bad" }) {
                (if found.holds { "✓ " } else { "✗ " }) (words::confirmation(found, Primary::of(&summary.goal))) "."
            }
        }
    }
}

fn card_name(figure: Primary) -> &'static str {
    match figure {
        Primary::Rate => "Rate (goodput)",
        Primary::Cost => "Payload for processor time",
        Primary::Latency => "Idle round trip",
    }
}

/// Start and final in one unit, so that they compare at a glance; a dash where one was not measured.
fn pair(figure: Primary, start: &Figures, last: &Figures) -> (String, String) {
    let value = |f: &Figures| match figure {
        Primary::Rate => f.rate_bps.0,
        Primary::Cost => f.bytes_per_cpu_s.0,
        Primary::Latency => f.latency_ns.0 as f64,
    };
    let known = |f: &Figures| Some(value(f)).filter(|v| v.is_finite() && *v > 0.0);
    let (per, name) = chart::unit_of(figure, known(start).into_iter().chain(known(last)).fold(0.0, f64::max));
    let said = |f: &Figures| known(f).map_or_else(|| "–".to_owned(), |v| words::number(v / per));
    (said(start), format!("{} {}", said(last), name.replace(" per ", "/")))
}

fn ratio(e: Option<Estimate>) -> Markup {
    html! {
        @match e {
            Some(e) => { strong { (words::number(e.ratio)) "×" } " " span class="interval" { (words::interval(&e)) } },
            None => { span class="interval" { "not measured" } },
        }
    }
}

fn against(gain: &Gain) -> Markup {
    html! {
        p class="against" {
            "Against the setting given with " code { "--against" } ", in the same run: "
            @for (index, figure) in [Primary::Rate, Primary::Cost, Primary::Latency].into_iter().enumerate() {
                @if let Some(e) = figure.of_gain(gain) {
                    @if index > 0 { ", " }
                    (figure.phrase()) " " (ratio(Some(e)))
                }
            }
            "."
        }
    }
}

/// Command, seed, record, and how to keep or take back.
pub(super) fn reproduce(summary: &TuneSummary, record: &Record) -> Markup {
    let path = words::quoted(&summary.record);
    let commands = [
        ("Run it again", safe(&summary.command)),
        ("Show this record", format!("landspeed show {path}")),
        ("Make the setting last", format!("landspeed persist {path}")),
    ];
    html! {
        section id="reproduce" {
            h2 { "How to reproduce" }
            dl class="commands" {
                @for (what, command) in &commands { dt { (what) } dd { pre tabindex="0" { code { (command) } } } }
            }
            dl class="pairs" {
                dt { "Record" } dd { code { (safe(&summary.record)) } }
                dt { "Seed of the orders of trials" } dd { (record.header.seed) }
                dt { "Budget" } dd { (words::duration(record.header.budget_ns)) }
                dt { "landspeed" } dd { (safe(&summary.landspeed)) }
                dt { "Record format" } dd { (record.header.format) }
                @if record.cut_off { dt { "Note" } dd { "The record's last line is cut off: the run died while writing it." } }
            }
        }
    }
}
