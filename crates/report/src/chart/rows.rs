//! The shared parts of charts with one row per step: the ladder and the trials.

use landspeed_record::StepSummary;
use maud::{Markup, html};

use super::frame::short;
use super::scale::{Scale, label};
use crate::words;

/// Number of characters of a setting's name that fit beside its value on a phone.
const PHONE: usize = 23;
/// Largest number of characters of a setting's name in a chart. The report's table shows the whole name.
const SETTING: usize = 30;
/// Number of characters of a setting with its prerequisites that fit on a wide screen.
const NAME: usize = 36;

/// Returns the style of an element at a horizontal position: 0 is the left end of the plot, 1 the right.
pub(super) fn at(share: f64) -> String {
    format!("--x:{share:.4}")
}

pub(super) fn span(low: f64, high: f64) -> String {
    format!("--x:{low:.4};--w:{:.4}", (high - low).max(0.0))
}

/// Draws the axis below all rows, a rule for each tick, and `behind` in the background.
pub(super) fn ground(scale: &Scale, title: &str, behind: &Markup) -> Markup {
    let ticks = scale.ticks(8);
    html! {
        g class="ground" {
            (behind)
            @for &tick in &ticks { rect class="grid upright" style=(at(scale.at(tick))) {} }
            g class="foot" {
                @for &tick in &ticks {
                    g class="at" style=(at(scale.at(tick))) { text class="tick" text-anchor="middle" y="17" { (label(tick)) } }
                }
                g class="at" style=(at(0.5)) { text class="axis" text-anchor="middle" y="39" { (title) } }
            }
        }
    }
}

/// Draws the number and the setting of a step at the left of a row. A phone shows only the first characters.
pub(super) fn name(number: usize, step: &StepSummary) -> Markup {
    let setting: Vec<char> = short(&words::setting(step), SETTING).chars().collect();
    let (first, more) = setting.split_at(setting.len().min(PHONE));
    let mut rest: String = words::step_words(step).chars().skip(setting.len()).collect();
    if step.placebo {
        rest += " placebo";
    }
    let room = NAME.saturating_sub(setting.len());
    html! {
        text class="ordinal" text-anchor="end" x="20" y="17.5" { (number) }
        text class="name" x="30" y="17.5" {
            (first.iter().collect::<String>())
            @if !more.is_empty() { tspan class="more" { (more.iter().collect::<String>()) } }
            @if !setting.ends_with(&['…']) && room > 6 { tspan class="with" { (short(&rest, room)) } }
        }
    }
}

/// Returns the style of a row, from whose index the style sheet computes its position.
pub(super) fn place(index: usize) -> String {
    format!("--i:{index}")
}
