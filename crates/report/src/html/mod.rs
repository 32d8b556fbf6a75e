//! The report as one self-contained page: no request leaves it, no script runs in it.

pub(crate) mod glossary;
mod hosts;
mod overview;
mod steps;
mod verdicts;

use landspeed_record::{Record, TuneSummary};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart;
use crate::words;

const STYLE: &str = include_str!("page.css");

/// Nothing is loaded and nothing runs: the style sheet within is all there is.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The page of a tuning run: one HTML document that needs nothing else. Everything from the record is
/// escaped. Charts whose trials the record lacks are left out, with a line that says so.
pub fn page(summary: &TuneSummary, record: &Record) -> String {
    let title = format!("{} – landspeed", overview::title(summary));
    let body = html! {
        (overview::header(summary))
        (overview::figures(summary))
        (ladder(summary, record))
        (verdicts::section(summary, record))
        (staircase(summary, record))
        (curves(record))
        (steps::section(summary))
        (steps::changed(summary))
        (hosts::section(summary, record))
        (overview::reproduce(summary, record))
        (glossary::section())
    };
    document(&title, &summary.landspeed, &[], &body)
}

/// A page of the house around `body`, with its look and more `styles`. `version` is the landspeed that
/// made what is shown.
pub(crate) fn document(title: &str, version: &str, styles: &[&str], body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="generator" content={ "landspeed " (crate::safe(version)) };
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) @for style in styles { (PreEscaped(style)) } }
            }
            body { main { (body) } }
        }
    }
    .into_string()
}

fn ladder(summary: &TuneSummary, record: &Record) -> Markup {
    let placebos: Vec<String> = words::measured(summary)
        .iter()
        .filter(|(step, _)| step.placebo)
        .map(|(_, e)| format!("{}× {}", words::number(e.ratio), words::interval(e)))
        .collect();
    html! {
        section id="ladder" {
            h2 { "The ladder" }
            @if let Some(chart) = chart::ladder(summary) { (chart) } @else { p class="absent" { "No step was measured." } }
            @if !placebos.is_empty() {
                p { "Noise floor of this run: placebos, which toggle between two equivalent values, came out at " (placebos.join(" and ")) "." }
            }
            @if let Some(chart) = chart::strip(summary, record) {
                h3 { "Every trial behind it" }
                (chart)
            } @else {
                p class="absent" { "The record holds no trials of these steps, so they are not drawn one by one." }
            }
        }
    }
}

fn staircase(summary: &TuneSummary, record: &Record) -> Markup {
    html! {
        @if let Some(chart) = chart::staircase(summary, record) {
            section id="levels" { h2 { "What it carried, and at what cost" } (chart) }
        }
    }
}

fn curves(record: &Record) -> Markup {
    let charts: Vec<(&str, Markup)> = [
        ("Rate against write size", chart::sweep(record)),
        ("Latency", chart::latency_distribution(record)),
        ("Latency by message size", chart::latency_by_size(record)),
    ]
    .into_iter()
    .filter_map(|(name, chart)| Some((name, chart?)))
    .collect();
    html! {
        section id="curves" {
            h2 { "Start and final across sizes" }
            @if charts.is_empty() {
                p class="absent" { "The record holds no sweep and no ping-pong of the start and final settings." }
            }
            @for (name, chart) in &charts { h3 { (name) } (chart) }
        }
    }
}
