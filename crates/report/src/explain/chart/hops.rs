//! Latency by hop: the histogram of each, with its percentiles.

use maud::{Markup, html};

use super::super::hops::HopRow;
use super::super::words;
use crate::chart::frame::{Frame, Shape, n};
use crate::chart::rows::{at, ground, place, span};
use crate::chart::scale::Scale;

/// Height of the highest bin of a row, and where rows stand.
const TALL: f64 = 22.0;
const FLOOR: f64 = 31.0;

/// The chart; `rows` is not empty.
pub(crate) fn hops(rows: &[HopRow]) -> Markup {
    let edges = rows.iter().flat_map(|row| row.bins.iter().flat_map(|b| [micros(b.0) / 2.0, micros(b.0)]));
    let scale = Scale::log(edges, 0.0, 1.0);
    let frame = Frame {
        name: "hops",
        title: "Where packets spend their time",
        description: description(rows),
        caption: caption(),
        shape: Shape::Rows(rows.len()),
        points: rows.len(),
    };
    let inside = html! {
        text class="side head" x="0" y="28" { "hop" }
        text class="side head" text-anchor="end" x="100%" y="28" { "p50 / p90 / p99" }
        (ground(&scale, "time on the hop, µs (log scale)", &html! {}))
        @for (index, row) in rows.iter().enumerate() { (drawn(index, row, &scale)) }
    };
    frame.figure(&inside)
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn drawn(index: usize, row: &HopRow, scale: &Scale) -> Markup {
    let most = row.bins.iter().map(|b| b.1).max().unwrap_or(1) as f64;
    html! {
        g class="row" style=(place(index)) data-hop=(words::hop(row.hop).0) {
            title { (format!("{}, {}: {} ({} packets)", row.host, words::hop(row.hop).1, row.told(), row.packets)) }
            rect class="hit" width="100%" {}
            text class="name" x="0" y="22" { (words::hop(row.hop).0) tspan class="of" dx="8" { (row.host) } }
            text class="value" text-anchor="end" x="100%" y="22" { (row.told()) }
            g class="in-row" {
                line class="rule" x1="0" x2="100%" y1=(n(FLOOR)) y2=(n(FLOOR)) {}
                @for &(edge, packets) in &row.bins {
                    @let high = (packets as f64 / most * TALL).max(1.0);
                    rect class="bin" style=(span(scale.at(micros(edge) / 2.0), scale.at(micros(edge)))) y=(n(FLOOR - high)) height=(n(high)) {}
                }
                @for (share, mark) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")] {
                    @if let Some(edge) = row.percentile(share) {
                        g class={ "at " (mark) } style=(at(scale.at(micros(edge)))) { (marked(mark)) }
                    }
                }
            }
        }
    }
}

/// Percentiles differ by shape: a dot, a ring, a bar.
fn marked(mark: &str) -> Markup {
    let floor = n(FLOOR);
    match mark {
        "p50" => html! { circle class="percentile" cy=(floor) r="4.5" {} },
        "p90" => html! { circle class="percentile hollow" cy=(floor) r="4" {} },
        _ => html! { rect class="percentile" x="-1.2" y=(n(FLOOR - 6.0)) width="2.4" height="12" {} },
    }
}

fn description(rows: &[HopRow]) -> String {
    let told = |row: &HopRow| format!("{} {}: {}.", row.host, words::hop(row.hop).0, row.told());
    format!("Percentiles 50, 90 and 99. {}", rows.iter().map(told).collect::<Vec<_>>().join(" "))
}

fn caption() -> Markup {
    let key = |mark: &'static str| {
        html! { svg class="hops-key" viewBox="-8 23 16 16" width="16" height="16" aria-hidden="true" { (marked(mark)) } }
    };
    html! {
        ul class="legend" { li { (key("p50")) "median" } li { (key("p90")) "90 %" } li { (key("p99")) "99 %" } }
        p {
            "How many packets took how long on each stretch of their way. Times are counted in powers of two and a percentile "
            "is the upper edge of its bin, so the true value is up to half of it lower. A percentile is shown where at "
            "least ten packets lie beyond it."
        }
    }
}
