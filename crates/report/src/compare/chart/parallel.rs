//! The trade-offs: a line a protocol over parallel axes, best at the top of each (RFC 5166 asks for them side by side).

use landspeed_record::{CompareReport, ContestFigures};
use maud::{Markup, html};

use super::super::words;
use super::axes::{BOTTOM, Laid, TOP, laid};
use crate::chart::frame::{Frame, Shape, line, n, text};

const WIDTH: f64 = 912.0;
const HEIGHT: f64 = 430.0;
/// Least distance between two names.
const APART: f64 = 17.0;
/// Protocols that are drawn, at most; tints and dashes by which they are told apart.
const DRAWN: usize = 16;
const TINTS: usize = 8;

/// The chart, or nothing where fewer than two protocols have figures.
pub(crate) fn parallel(report: &CompareReport) -> Option<Markup> {
    let protocols: Vec<&ContestFigures> =
        report.protocols.iter().filter(|p| p.runs > 0).take(DRAWN).collect();
    let axes = laid(&protocols);
    if protocols.len() < 2 || axes.len() < 2 {
        return None;
    }
    let titles: Vec<&str> = axes.iter().map(|laid| laid.axis.title).collect();
    let frame = Frame {
        name: "trade-offs",
        title: "The trade-offs, best at the top",
        description: format!("{} protocols over the axes {}.", protocols.len(), titles.join(", ")),
        caption: html! { p { "The best figure of the study is at the top of each axis and the worst at its bottom, whatever lies between "
        "them: an axis says who is better and not how much it matters. A line has a gap where a protocol has no such figure; \"not in time\" is a protocol whose flows mostly did not come to their fair share." } },
        shape: Shape::Fixed(WIDTH, HEIGHT),
        points: protocols.len(),
    };
    Some(frame.figure(&html! {
        @for laid in &axes { (axis(laid)) }
        (lines(&protocols, &axes))
    }))
}

fn axis(laid: &Laid) -> Markup {
    let say = laid.axis.say;
    html! {
        (line("upright-axis", (laid.x, TOP), (laid.x, BOTTOM)))
        (text("name", "middle", (laid.x, TOP - 46.0), laid.axis.title))
        (text("tick", "middle", (laid.x, TOP - 30.0), laid.axis.unit))
        (text("tick", "middle", (laid.x, TOP - 10.0), &say(laid.best)))
        @if laid.reach < 1.0 {
            (text("tick", "start", (laid.x + 7.0, laid.y(laid.reach) + 4.0), &say(laid.worst)))
            (text("tick", "middle", (laid.x, BOTTOM + 18.0), "not in time"))
        } @else {
            (text("tick", "middle", (laid.x, BOTTOM + 18.0), &say(laid.worst)))
        }
    }
}

fn lines(protocols: &[&ContestFigures], axes: &[Laid]) -> Markup {
    let ends = |laid: Option<&Laid>| -> Vec<Option<f64>> {
        let places: Vec<Option<f64>> =
            protocols.iter().map(|p| laid.and_then(|laid| laid.at(p)).map(|at| at.1)).collect();
        apart(&places)
    };
    let (left, right) = (ends(axes.first()), ends(axes.last()));
    html! {
        @for (index, protocol) in protocols.iter().enumerate() {
            @let name = words::name(&protocol.protocol);
            g class={ "protocol tint-" (index % TINTS) @if index >= TINTS { " dashed" } } {
                path class="line" d=(path(protocol, axes)) { title { (name) } }
                @for (x, y) in axes.iter().filter_map(|laid| laid.at(protocol)) {
                    circle class="dot" cx=(n(x)) cy=(n(y)) r="3.2" { title { (name) } }
                }
                (named(&name, axes.first().and_then(|laid| laid.at(protocol)), left[index], -1.0))
                (named(&name, axes.last().and_then(|laid| laid.at(protocol)), right[index], 1.0))
            }
        }
    }
}

/// A name beside an axis, led to its place on it; `side` is -1 to the left and 1 to the right.
fn named(name: &str, at: Option<(f64, f64)>, y: Option<f64>, side: f64) -> Markup {
    html! {
        @if let Some(((x, from), y)) = at.zip(y) {
            (line("leader", (x + side * 5.0, from), (x + side * 20.0, y)))
            (text("series-name", if side < 0.0 { "end" } else { "start" }, (x + side * 24.0, y + 4.0), name))
        }
    }
}

/// From axis to axis, with a gap where a figure is missing.
fn path(protocol: &ContestFigures, axes: &[Laid]) -> String {
    let mut path = String::new();
    let mut is_down = false;
    for laid in axes {
        let place = laid.at(protocol);
        if let Some((x, y)) = place {
            path += &format!("{}{} {}", if is_down { "L" } else { "M" }, n(x), n(y));
        }
        is_down = place.is_some();
    }
    path
}

/// Places of names: as near to the ends of their lines as can be without one on another (least squares, by pooling those
/// that would lie on each other).
fn apart(places: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        places.iter().enumerate().filter_map(|(i, y)| Some((i, (*y)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    // Less their distances, places need only not fall: (mean, how many).
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (rank, (_, y)) in order.iter().enumerate() {
        let mut pool = (y - APART * rank as f64, 1);
        while let Some(&(mean, n)) = pools.last().filter(|last| last.0 > pool.0) {
            pool = ((mean * n as f64 + pool.0 * pool.1 as f64) / (n + pool.1) as f64, n + pool.1);
            pools.pop();
        }
        pools.push(pool);
    }
    let lowest = BOTTOM + 8.0 - APART * order.len().saturating_sub(1) as f64;
    let levels =
        pools.into_iter().flat_map(|(mean, n)| std::iter::repeat_n(mean.min(lowest).max(TOP - 6.0), n));
    let mut found = vec![None; places.len()];
    for (rank, ((index, _), level)) in order.into_iter().zip(levels).enumerate() {
        found[index] = Some(level + APART * rank as f64);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lie_on_each_other() {
        let places: Vec<Option<f64>> = (0..10).map(|n| (n != 4).then_some(BOTTOM)).collect();
        let found = apart(&places);
        let mut all: Vec<f64> = found.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
        assert!(
            found[4].is_none() && all.windows(2).all(|pair| pair[1] - pair[0] >= APART - 1e-9),
            "{all:?}"
        );
        assert!(all.last().is_some_and(|last| *last <= BOTTOM + 9.0), "{all:?}");
    }
}
