//! Marks: what became of a step is told by shape and by colour.

use maud::{Markup, html};

use super::frame::n;
use crate::words::Kind;

/// The mark of `kind` at a place, of about 10 units.
pub(crate) fn marker(kind: Kind, (x, y): (f64, f64)) -> Markup {
    let class = format!("mark {}", kind.told().class);
    match kind {
        Kind::Kept => html! { circle class=(class) cx=(n(x)) cy=(n(y)) r="5" {} },
        Kind::Unconfirmed => html! {
            circle class={ (class) " hollow" } cx=(n(x)) cy=(n(y)) r="5" {}
            circle class={ "dot " (kind.told().class) } cx=(n(x)) cy=(n(y)) r="2.2" {}
        },
        Kind::Dropped => html! { circle class={ (class) " hollow" } cx=(n(x)) cy=(n(y)) r="4.5" {} },
        Kind::Harms => polygon(&class, &[(x - 5.5, y - 4.5), (x + 5.5, y - 4.5), (x, y + 5.5)]),
        Kind::NoEffect => {
            polygon(&format!("{class} hollow"), &[(x - 5.5, y), (x, y - 5.5), (x + 5.5, y), (x, y + 5.5)])
        }
        Kind::Undecided => {
            html! { rect class={ (class) " hollow" } x=(n(x - 4.0)) y=(n(y - 4.0)) width="8" height="8" {} }
        }
        Kind::Placebo | Kind::Skipped | Kind::NotTried => {
            let cross = format!("M{} {}l8 8m0-8l-8 8", n(x - 4.0), n(y - 4.0));
            html! { path class={ (class) " hollow" } d=(cross) {} }
        }
    }
}

fn polygon(class: &str, corners: &[(f64, f64)]) -> Markup {
    let points: Vec<String> = corners.iter().map(|(x, y)| format!("{},{}", n(*x), n(*y))).collect();
    html! { polygon class=(class) points=(points.join(" ")) {} }
}

pub(crate) fn legend(kinds: &[Kind]) -> Markup {
    html! {
        ul class="legend" {
            @for &kind in kinds {
                li {
                    svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { (marker(kind, (8.0, 8.0))) }
                    (kind.told().word)
                }
            }
        }
    }
}
