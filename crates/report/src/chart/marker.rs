//! Markers that show a step's outcome by shape and by colour.

use maud::{Markup, html};

use super::frame::n;
use crate::words::StepOutcome;

/// Draws the marker of `outcome` at a position, about 10 units wide.
pub(crate) fn marker(outcome: StepOutcome, x: f64, y: f64) -> Markup {
    let class = format!("mark {}", outcome.labels().class);
    match outcome {
        StepOutcome::Kept => html! { circle class=(class) cx=(n(x)) cy=(n(y)) r="5" {} },
        StepOutcome::Unconfirmed => html! {
            circle class={ (class) " hollow" } cx=(n(x)) cy=(n(y)) r="5" {}
            circle class={ "dot " (outcome.labels().class) } cx=(n(x)) cy=(n(y)) r="2.2" {}
        },
        StepOutcome::Dropped => html! { circle class={ (class) " hollow" } cx=(n(x)) cy=(n(y)) r="4.5" {} },
        StepOutcome::Harms => polygon(&class, &[(x - 5.5, y - 4.5), (x + 5.5, y - 4.5), (x, y + 5.5)]),
        StepOutcome::NoEffect => {
            polygon(&format!("{class} hollow"), &[(x - 5.5, y), (x, y - 5.5), (x + 5.5, y), (x, y + 5.5)])
        }
        StepOutcome::Undecided => {
            html! { rect class={ (class) " hollow" } x=(n(x - 4.0)) y=(n(y - 4.0)) width="8" height="8" {} }
        }
        StepOutcome::Placebo | StepOutcome::Skipped | StepOutcome::NotTried => {
            let cross = format!("M{} {}l8 8m0-8l-8 8", n(x - 4.0), n(y - 4.0));
            html! { path class={ (class) " hollow" } d=(cross) {} }
        }
    }
}

fn polygon(class: &str, corners: &[(f64, f64)]) -> Markup {
    let points: Vec<String> = corners.iter().map(|(x, y)| format!("{},{}", n(*x), n(*y))).collect();
    html! { polygon class=(class) points=(points.join(" ")) {} }
}

pub(crate) fn legend(outcomes: &[StepOutcome]) -> Markup {
    html! {
        ul class="legend" {
            @for &outcome in outcomes {
                li {
                    svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { (marker(outcome, 8.0, 8.0)) }
                    (outcome.labels().word)
                }
            }
        }
    }
}
