//! The ladder: each measured step's ratio with its interval.

use landspeed_record::{Estimate, StepSummary, TuneSummary};
use maud::{Markup, html};

use super::frame::{Frame, line, n, short, text, x_axis};
use super::marker::{legend, marker};
use super::scale::Scale;
use crate::words::{self, Kind, LEAST_EFFECT, Primary};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 268.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 46.0;
const ROW: f64 = 27.0;

/// The chart, or nothing where no step was measured.
pub(crate) fn ladder(summary: &TuneSummary) -> Option<Markup> {
    let steps = words::measured(summary);
    if steps.is_empty() {
        return None;
    }
    let primary = Primary::of(&summary.goal);
    let bottom = TOP + ROW * steps.len() as f64;
    let values = steps.iter().flat_map(|(_, e)| [e.low, e.high]).chain([0.9, 1.1]);
    // A single hopeless interval must not squeeze all others to a dot.
    let scale = Scale::log(values.map(|v| v.clamp(1.0 / 64.0, 64.0)), LEFT, RIGHT);
    let frame = Frame {
        name: "ladder",
        title: "The ladder: what each step did",
        description: description(&steps, primary),
        caption: caption(&steps),
        width: WIDTH,
        height: bottom + 48.0,
        points: steps.len(),
    };
    let axis = format!("{}, candidate over incumbent (ratio, log scale)", primary.phrase());
    let inside = html! {
        (ground(&scale, bottom, primary))
        (text("axis", "middle", (f64::midpoint(LEFT, RIGHT), bottom + 38.0), &axis))
        @for (index, (step, e)) in steps.iter().enumerate() {
            (row(index, step, e, &scale))
        }
    };
    Some(frame.figure(&inside))
}

/// The band of the least effect, the line of no change, and the axis.
fn ground(scale: &Scale, bottom: f64, primary: Primary) -> Markup {
    let (low, high) = (scale.at(1.0 / (1.0 + LEAST_EFFECT)), scale.at(1.0 + LEAST_EFFECT));
    let (left, right) = match primary {
        Primary::Latency => ("← faster", "slower →"),
        _ => ("← worse", "better →"),
    };
    html! {
        rect class="band" x=(n(low)) y=(n(TOP - 8.0)) width=(n(high - low)) height=(n(bottom - TOP + 8.0)) {
            title { "Least effect of interest: within 2 % of no change" }
        }
        (x_axis(scale, &scale.ticks(9), (TOP - 8.0, bottom)))
        (line("one", (scale.at(1.0), TOP - 8.0), (scale.at(1.0), bottom)))
        (text("side", "end", (scale.at(1.0) - 12.0, TOP - 18.0), left))
        (text("side", "start", (scale.at(1.0) + 12.0, TOP - 18.0), right))
        (text("side", "start", (0.0, TOP - 18.0), "step"))
        (text("side", "end", (WIDTH, TOP - 18.0), "ratio [95 % interval]"))
    }
}

fn row(index: usize, step: &StepSummary, e: &Estimate, scale: &Scale) -> Markup {
    let kind = Kind::of(step);
    let y = TOP + ROW * (index as f64 + 0.5);
    let (low, high) = (scale.at(e.low), scale.at(e.high));
    let name = words::step_words(step);
    let told = format!(
        "{}. {name}: {}, {}. {}",
        index + 1,
        words::estimate(e),
        kind.word(),
        crate::safe(&step.reason)
    );
    html! {
        g class={ "point " (kind.class()) } data-step=(crate::safe(&step.id)) data-answer=(kind.class()) {
            title { (told) }
            rect class="hit" x="0" y=(n(y - ROW / 2.0)) width=(n(WIDTH)) height=(n(ROW)) {}
            (text("ordinal", "end", (20.0, y + 4.0), &(index + 1).to_string()))
            (text("name", "start", (30.0, y + 4.0), &short(&name, 36)))
            (line("whisker", (low, y), (high, y)))
            (line("whisker cap", (low, y - 4.0), (low, y + 4.0)))
            (line("whisker cap", (high, y - 4.0), (high, y + 4.0)))
            (marker(kind, (scale.at(e.ratio), y)))
            (text("value", "end", (WIDTH, y + 4.0), &format!("{}× {}", words::number(e.ratio), words::interval(e))))
        }
    }
}

fn caption(steps: &[(&StepSummary, Estimate)]) -> Markup {
    let present: Vec<Kind> =
        Kind::MEASURED.into_iter().filter(|kind| steps.iter().any(|(s, _)| Kind::of(s) == *kind)).collect();
    html! {
        (legend(&present))
        p {
            "Each row is one step in the order in which it was tried: the ratio of candidate to incumbent over interleaved "
            "trials, with its interval. The shaded band is the least effect of interest (2 %). Only a step whose interval "
            "lies wholly beyond the band is kept. Placebos change nothing: they show the noise floor."
        }
    }
}

fn description(steps: &[(&StepSummary, Estimate)], primary: Primary) -> String {
    let kept: Vec<String> = steps
        .iter()
        .filter(|(step, _)| Kind::of(step) == Kind::Kept)
        .map(|(step, e)| format!("{} {}", words::setting(step), words::times(e.ratio)))
        .collect();
    format!(
        "{} measured steps by their ratio of {}. Kept: {}.",
        steps.len(),
        primary.phrase(),
        kept.join(", ")
    )
}
