//! A flame graph without scripts: nested boxes that clip their own names.

use landspeed_record::CostClass;
use maud::{Markup, html};

use super::super::flame::{DEEPEST, FlameGraph, NARROWEST, PlacedFrame};
use super::super::words::{grouped, percent};
use crate::chart::frame::{ChartFrame, ChartShape, n, short};

/// Height of a level in pixels. The style sheet has the same value.
const LEVEL: f64 = 19.0;
/// Assumed width of the graph and of a letter in pixels, from which the part of a name that fits is computed.
const WIDTH: f64 = 900.0;
const LETTER: f64 = 6.4;

/// Draws the graph of one host; `index` makes its ids unique.
pub(crate) fn flame(index: usize, host: &str, flame: &FlameGraph) -> Markup {
    let name = format!("flame-{index}");
    let title = format!("Flame graph of {host}");
    let frame = ChartFrame {
        name: &name,
        title: &title,
        description: format!("{} functions by their share of the samples of {host}.", flame.frames.len()),
        caption: caption(flame),
        shape: ChartShape::Rows(flame.levels),
        points: flame.frames.len(),
    };
    frame.figure(&html! { @for placed in &flame.frames { (boxed(placed, flame.levels)) } })
}

fn boxed(frame: &PlacedFrame, levels: usize) -> Markup {
    let y = (levels - 1 - frame.level) as f64 * LEVEL;
    let letters = ((frame.share * WIDTH - 8.0) / LETTER) as usize;
    // Own time is at the right end of the frame, because callees start at its left.
    let mut end = 1.0;
    let own = frame.own.iter().rev().map(|(class, share)| {
        let wide = share / frame.share;
        end -= wide;
        (*class, end.max(0.0), wide)
    });
    // Time in callees has a pale colour of the layer in which the function itself spends most time.
    let kin = frame.own.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(class, _)| *class);
    html! {
        svg class="frame" x=(across(frame.from)) y=(n(y)) width=(across(frame.share)) height=(n(LEVEL - 1.0)) {
            title { (tooltip(frame)) }
            rect class={ "through" @if let Some(class) = kin { " c-" (class.name()) } } width="100%" height="100%" {}
            @for (class, from, wide) in own {
                rect class={ "own c-" (class.name()) } x=(across(from)) width=(across(wide)) height="100%" {}
            }
            @if letters >= 3 { text x="4" y="13" { (short(&frame.name, letters)) } }
        }
    }
}

fn across(share: f64) -> String {
    format!("{:.3}%", share * 100.0)
}

fn tooltip(frame: &PlacedFrame) -> String {
    let own: Vec<String> =
        frame.own.iter().map(|(class, share)| format!("{} {}", percent(*share), class.name())).collect();
    let of = if frame.kernel { " (kernel)" } else { "" };
    let own = if own.is_empty() { String::new() } else { format!("; of that in itself {}", own.join(", ")) };
    format!("{}{of}: {}{own}", frame.name, percent(frame.share))
}

fn caption(flame: &FlameGraph) -> Markup {
    let mut classes: Vec<CostClass> =
        flame.frames.iter().flat_map(|f| &f.own).map(|(class, _)| *class).collect();
    classes.sort_unstable();
    classes.dedup();
    html! {
        ul class="legend" {
            @for class in &classes {
                li { svg class={ "c-" (class.name()) } viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { rect class="own" x="1" y="1" width="14" height="14" {} } (class.name()) }
            }
        }
        p {
            "Width is processor time; a function lies on the one that called it. Full colour is time in the function itself, by "
            "layer, so that all of one colour together is that layer's share; pale or grey is time in what it calls. "
            "Functions with less than one in " (grouped((1.0 / NARROWEST) as u64)) " of the samples are not drawn, " (percent(flame.cut)) " in all."
            @if flame.missing > 0.0005 { " Stacks of another " (percent(flame.missing)) " of the samples are not in the report." }
            @if flame.too_deep { " Stacks are followed " (DEEPEST) " calls deep; the rest is drawn where they end." }
        }
    }
}
