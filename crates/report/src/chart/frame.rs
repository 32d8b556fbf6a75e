//! The parts that all charts share: a figure with a title, a description, a caption and axes.

use maud::{Markup, html};

use super::scale::{Scale, label};

/// Width in units of the drawing above which it takes the page's whole width, and scrolls on a phone.
const WIDE: f64 = 800.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ChartShape {
    /// A drawing of this width and height that scales as a whole.
    Fixed(f64, f64),
    /// This number of rows. Horizontal positions are percentages, and the style sheet sets the height of a row. A phone
    /// can therefore show the names above the bars, with text of the usual size.
    Rows(usize),
}

#[derive(Debug)]
pub(crate) struct ChartFrame<'a> {
    /// Value of `data-chart`, and prefix of the ids.
    pub(crate) name: &'a str,
    /// Short title, which is read aloud first.
    pub(crate) title: &'a str,
    pub(crate) description: String,
    /// What to notice in the chart, printed below it.
    pub(crate) caption: Markup,
    pub(crate) shape: ChartShape,
    pub(crate) points: usize,
}

impl ChartFrame<'_> {
    /// Returns an HTML figure with the drawing `inside`. A drawing that is too wide for a screen scrolls within its own
    /// box.
    pub(crate) fn figure(&self, inside: &Markup) -> Markup {
        let (title, desc) = (format!("{}-title", self.name), format!("{}-desc", self.name));
        let (view, class, style) = match self.shape {
            ChartShape::Fixed(width, height) => {
                let class = if width > WIDE { "drawing wide" } else { "drawing" };
                (Some(format!("0 0 {} {}", n(width), n(height))), class, None)
            }
            ChartShape::Rows(rows) => (None, "rows", Some(format!("--n:{rows}"))),
        };
        html! {
            figure class="chart" {
                div class="scroll" tabindex="0" role="group" aria-label=(self.title) {
                    svg class={ (class) " " (self.name) } role="img" aria-labelledby={ (title) " " (desc) }
                        data-chart=(self.name) data-points=(self.points) viewBox=[view] style=[style] {
                        title id=(title) { (self.title) }
                        desc id=(desc) { (self.description) }
                        (inside)
                    }
                }
                figcaption { (self.caption) }
            }
        }
    }
}

/// Formats a coordinate with at most one decimal.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

pub(crate) fn line(class: &str, x1: f64, y1: f64, x2: f64, y2: f64) -> Markup {
    html! { line class=(class) x1=(n(x1)) y1=(n(y1)) x2=(n(x2)) y2=(n(y2)) {} }
}

/// Returns text that starts (`start`), ends (`end`) or is centred (`middle`) at a position.
pub(crate) fn text(class: &str, anchor: &str, x: f64, y: f64, words: &str) -> Markup {
    html! { text class=(class) text-anchor=(anchor) x=(n(x)) y=(n(y)) { (words) } }
}

/// Draws the rules of a vertical axis from `left` to `right`, with labels left of them.
pub(crate) fn y_axis(scale: &Scale, ticks: &[f64], left: f64, right: f64) -> Markup {
    html! {
        @for &tick in ticks {
            (line("grid", left, scale.at(tick), right, scale.at(tick)))
            (text("tick", "end", left - 8.0, scale.at(tick) + 4.0, &label(tick)))
        }
    }
}

pub(crate) fn short(words: &str, limit: usize) -> String {
    if words.chars().count() <= limit {
        return words.to_owned();
    }
    words.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}
