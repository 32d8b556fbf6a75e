//! The chart of the ladder: the ratio of each measured step with its interval.

use landspeed_analysis::Metric;
use landspeed_record::{Estimate, StepSummary, TuneSummary};
use maud::{Markup, html};

use super::frame::{ChartFrame, ChartShape};
use super::marker::{legend, marker};
use super::rows::{at, ground, name, place, span};
use super::scale::Scale;
use crate::words::{self, LEAST_EFFECT, StepOutcome};

pub(crate) fn ladder(summary: &TuneSummary) -> Option<Markup> {
    let steps = words::measured(summary);
    if steps.is_empty() {
        return None;
    }
    let primary = Metric::of_goal(&summary.goal);
    let values = steps.iter().flat_map(|(_, e)| [e.low, e.high]).chain([0.9, 1.1]);
    // The ends are clamped, because one very wide interval would reduce all others to a dot.
    let scale = Scale::log(values.map(|v| v.clamp(1.0 / 64.0, 64.0)), 0.0, 1.0);
    let frame = ChartFrame {
        name: "ladder",
        title: "The ladder: what each step did",
        description: description(&steps, primary),
        caption: caption(&steps, &scale),
        shape: ChartShape::Rows(steps.len()),
        points: steps.len(),
    };
    let axis = format!("{}, candidate over incumbent (ratio, log scale)", primary.row().axis);
    let inside = html! {
        text class="side head" x="0" y="28" { "step" }
        text class="side head" text-anchor="end" x="100%" y="28" { "ratio [interval]" }
        (ground(&scale, &axis, &behind(&scale, primary)))
        @for (index, (step, e)) in steps.iter().enumerate() { (row(index, step, e, &scale)) }
    };
    Some(frame.figure(&inside))
}

/// Draws the band of effects that are too small to matter, and the line of no change.
fn behind(scale: &Scale, primary: Metric) -> Markup {
    let (low, high) = (scale.at(1.0 / (1.0 + LEAST_EFFECT)), scale.at(1.0 + LEAST_EFFECT));
    let (left, right) =
        if primary.row().less_is_better { ("← faster", "slower →") } else { ("← worse", "better →") };
    let one = at(scale.at(1.0));
    html! {
        rect class="band upright" style=(span(low, high)) { title { "Least effect of interest: within 2 % of no change" } }
        rect class="one upright" style=(one) {}
        g class="at" style=(one) {
            text class="side" text-anchor="end" x="-12" y="-10" { (left) }
            text class="side" text-anchor="start" x="12" y="-10" { (right) }
        }
    }
}

fn row(index: usize, step: &StepSummary, e: &Estimate, scale: &Scale) -> Markup {
    let outcome = StepOutcome::of(step);
    let (low, high) = (scale.at(e.low), scale.at(e.high));
    let tooltip = format!(
        "{}. {}: {}, {}. {}",
        index + 1,
        words::step_words(step),
        words::estimate(e),
        outcome.labels().word,
        crate::safe(&step.reason)
    );
    html! {
        g class={ "row point " (outcome.labels().class) } style=(place(index)) data-step=(crate::safe(&step.id)) data-answer=(outcome.labels().class) {
            title { (tooltip) }
            rect class="hit" width="100%" {}
            (name(index + 1, step))
            text class="value" text-anchor="end" x="100%" y="17.5" { (words::number(e.ratio)) "× " (words::interval(e)) }
            g class="in-row" {
                rect class="whisker" style=(span(low, high)) y="12.5" height="2" {}
                (end(scale, e.low, "M6 8.5l-6 5 6 5z"))
                (end(scale, e.high, "M-6 8.5l6 5-6 5z"))
                g class="at" style=(at(scale.at(e.ratio))) { (marker(outcome, 0.0, 13.5)) }
            }
        }
    }
}

/// Draws the end of an interval, or an arrow if the end is outside the plot.
fn end(scale: &Scale, value: f64, arrow: &str) -> Markup {
    let place = at(scale.at(value));
    html! {
        @if scale.holds(value) { rect class="cap" style=(place) y="9.5" height="8" {} }
        @else { g class="at" style=(place) { path class="arrow" d=(arrow) {} } }
    }
}

fn caption(steps: &[(&StepSummary, Estimate)], scale: &Scale) -> Markup {
    let is_beyond = steps.iter().any(|(_, e)| !scale.holds(e.low) || !scale.holds(e.high));
    let present: Vec<StepOutcome> = StepOutcome::MEASURED
        .into_iter()
        .filter(|outcome| steps.iter().any(|(s, _)| StepOutcome::of(s) == *outcome))
        .collect();
    html! {
        (legend(&present))
        p {
            "Each row is one step in the order in which it was tried: how many times as much the setting with the change gives "
            "as the one without, measured in turns. The bar is the range in which the true ratio lies. In the shaded band an effect "
            "is too small to matter (2 %): only a step whose whole bar lies beyond it is kept. Placebos switch between two "
            "values that do the same: they show the noise."
            @if is_beyond { " An arrow: the bar goes on beyond the plot." }
        }
    }
}

fn description(steps: &[(&StepSummary, Estimate)], primary: Metric) -> String {
    let kept: Vec<String> = steps
        .iter()
        .filter(|(step, _)| StepOutcome::of(step).is_kept())
        .map(|(step, e)| {
            let doubt =
                if StepOutcome::of(step) == StepOutcome::Unconfirmed { " (not confirmed)" } else { "" };
            format!("{} {}{doubt}", words::setting(step), words::times(e.ratio))
        })
        .collect();
    format!(
        "{} measured steps by their ratio of {}. Kept: {}.",
        steps.len(),
        primary.row().name,
        kept.join(", ")
    )
}
