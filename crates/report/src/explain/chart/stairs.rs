//! The staircase of limits: what each part could carry, and where the flow stands (SC'03, section 3.5.2).

use landspeed_units::BitRate;
use maud::{Markup, html};

use super::super::stairs::{Stair, Stairs};
use crate::chart::frame::{Frame, Shape, short};
use crate::chart::rows::{at, ground, place, span};
use crate::chart::scale::{Scale, unit_of};
use crate::words::{Primary, number};

/// Longest name and longest way of measuring that fit beside the bars.
const NAME: usize = 34;
const HOW: usize = 42;

pub(crate) fn stairs(stairs: &Stairs) -> Markup {
    let values = || stairs.steps.iter().map(|s| s.rate).chain(stairs.flow);
    let (per, unit) = unit_of(Primary::Rate, values().fold(0.0, f64::max));
    let in_unit = values().map(|v| v / per);
    let scale =
        if stairs.wide() { Scale::log(in_unit, 0.0, 1.0) } else { Scale::from_zero(in_unit, 0.0, 1.0) };
    let frame = Frame {
        name: "limits",
        title: "The staircase of limits",
        description: description(stairs),
        caption: caption(stairs),
        shape: Shape::Rows(stairs.steps.len()),
        points: stairs.steps.len(),
    };
    let axis = format!("{unit}{}", if stairs.wide() { " (log scale)" } else { "" });
    let flow = stairs.flow.map(|rate| (rate, scale.at(rate / per)));
    let inside = html! {
        (ground(&scale, &axis, &html! {
            @if let Some((rate, x)) = flow {
                rect class="flow upright" style=(at(x)) {}
                g class="at" style=(at(x)) { text class="flow-name" text-anchor=(anchor(x)) y="-10" { "the flow: " (BitRate(rate)) } }
            }
        }))
        @for (index, step) in stairs.steps.iter().enumerate() { (row(index, step, scale.at(step.rate / per), stairs.wide())) }
    };
    frame.figure(&inside)
}

/// Text at the edge of the plot stays within it.
fn anchor(x: f64) -> &'static str {
    match x {
        x if x < 0.2 => "start",
        x if x > 0.8 => "end",
        _ => "middle",
    }
}

/// A logarithmic axis has no zero, so nothing on it may look like an amount: a dot on a thin line.
fn row(index: usize, step: &Stair, x: f64, dotted: bool) -> Markup {
    let over = step.over.map(|over| format!("{}×", number(over))).unwrap_or_default();
    html! {
        g class={ "row stair" @if step.ceiling { " ceiling" } } style=(place(index)) {
            title { (step.name) ": " (BitRate(step.rate)) ", " (step.how) }
            rect class="hit" width="100%" {}
            text class="name" x="0" y="16" { (short(&step.name, NAME)) }
            text class="how" x="0" y="31" { (short(&step.how, HOW)) }
            text class="value" text-anchor="end" x="100%" y="22" { (BitRate(step.rate)) @if !over.is_empty() { tspan class="over" dx="8" { (over) } } }
            g class="in-row" {
                @if dotted {
                    rect class="stem" style=(span(0.0, x)) y="17" height="2" {}
                    circle class="tip" style=(at(x)) cy="18" r="5" {}
                } @else {
                    rect class="step" style=(span(0.0, x)) y="9" height="18" {}
                }
            }
        }
    }
}

fn description(stairs: &Stairs) -> String {
    let steps: Vec<String> = stairs.steps.iter().map(|s| format!("{} {}", s.name, BitRate(s.rate))).collect();
    let flow = stairs.flow.map(|f| format!(" The flow moves {}.", BitRate(f))).unwrap_or_default();
    format!("{}.{flow}", steps.join(", "))
}

fn caption(stairs: &Stairs) -> Markup {
    html! {
        p {
            "What each part could carry at most, highest first"
            @if stairs.flow.is_some() { "; behind each rate, how many times the flow's own that is" }
            "."
            @if let Some(step) = stairs.ceiling() {
                " The first ceiling above the flow is " strong { (step.name) }
                @if let Some(over) = step.over { ": were it the only limit, the flow could be " (number(over)) "× as fast" }
                "."
            }
        }
    }
}
