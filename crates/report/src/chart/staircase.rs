//! Rate and cost against step.

use landspeed_record::{Figures, Record, TuneSummary};
use landspeed_stats::median;
use maud::{Markup, html};

use super::frame::{Frame, Shape, line, n, short, text, y_axis};
use super::marker::marker;
use super::scale::{Scale, label, unit_of};
use super::trials::by_step;
use crate::words::{self, Kind, Primary};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 884.0;
const PANEL: f64 = 170.0;
const GAP: f64 = 52.0;
const TOP: f64 = 30.0;
/// Room for the slanted names of the steps.
const FOOT: f64 = 132.0;
/// Above this many steps only the kept ones are named.
const NAMED: usize = 45;

struct Slot {
    number: usize,
    name: String,
    kind: Kind,
    /// (incumbent, candidate) medians of rate and of cost.
    medians: [Option<(f64, f64)>; 2],
}

/// The chart, or nothing where the record has no trials of a measured step.
pub(crate) fn staircase(summary: &TuneSummary, record: &Record) -> Option<Markup> {
    let slots = slots(summary, record);
    if slots.iter().all(|slot| slot.medians == [None, None]) {
        return None;
    }
    let frame = Frame {
        name: "staircase",
        title: "Rate and cost against step",
        description: format!(
            "Median rate and bytes per CPU-second of incumbent and candidate over {} steps.",
            slots.len()
        ),
        caption: html! {
            p {
                "The line is the incumbent's median at each step, from that step's own trials; a mark is the candidate's. "
                "Where a candidate is kept, the line climbs to it. Level stretches that wander show the machine's drift, "
                "which is why decisions use paired ratios and never these levels."
            }
        },
        shape: Shape::Fixed(WIDTH, TOP + 2.0 * PANEL + GAP + FOOT),
        points: slots.len(),
    };
    let place = |index: usize| {
        let share = (index as f64 + 0.5) / (slots.len() as f64 + 2.0);
        LEFT + share * (RIGHT - LEFT)
    };
    let below = TOP + PANEL + GAP;
    let inside = html! {
        (panel(Primary::Rate, &slots, (&summary.start, &summary.final_), TOP, &place))
        (panel(Primary::Cost, &slots, (&summary.start, &summary.final_), below, &place))
        (names(&slots, below + PANEL, &place))
    };
    Some(frame.figure(&inside))
}

fn slots(summary: &TuneSummary, record: &Record) -> Vec<Slot> {
    let figures = [Primary::Rate, Primary::Cost].map(|figure| by_step(record, figure));
    let slot = |(index, (step, _)): (usize, (&landspeed_record::StepSummary, _))| Slot {
        number: index + 1,
        name: words::setting(step),
        kind: Kind::of(step),
        medians: [0, 1].map(|i| {
            let arms = figures[i].get(step.id.as_str())?;
            Some((median(&arms.incumbent)?, median(&arms.candidate)?))
        }),
    };
    words::measured(summary).into_iter().enumerate().map(slot).collect()
}

type Place<'a> = &'a dyn Fn(usize) -> f64;

fn panel(figure: Primary, slots: &[Slot], ends: (&Figures, &Figures), top: f64, place: Place<'_>) -> Markup {
    let which = usize::from(figure == Primary::Cost);
    let end = |f: &Figures| {
        Some(if which == 0 { f.rate_bps.0 } else { f.bytes_per_cpu_s.0 })
            .filter(|v| *v > 0.0 && v.is_finite())
    };
    let (start, last) = (end(ends.0), end(ends.1));
    let medians = slots.iter().filter_map(|slot| slot.medians[which]).flat_map(|(a, b)| [a, b]);
    let all: Vec<f64> = medians.chain(start).chain(last).collect();
    let (per, name) = unit_of(figure, all.iter().copied().fold(0.0, f64::max));
    let scale = Scale::from_zero(all.iter().map(|v| v / per), top + PANEL, top);
    let at = |v: f64| scale.at(v / per);
    let heading = format!("{}, {name}", figure.axis());
    html! {
        (text("axis", "start", (0.0, top - 14.0), &heading))
        (y_axis(&scale, &scale.ticks(4), (LEFT, RIGHT)))
        path class="stairs" d=(stairs(slots, which, start, last, &at, place)) {}
        @for (index, slot) in slots.iter().enumerate() {
            @if let Some((incumbent, candidate)) = slot.medians[which] {
                g class=(slot.kind.class()) {
                    title { (format!("{}. {}: {} {name} before, {} with it, {}", slot.number, slot.name, label(incumbent / per), label(candidate / per), slot.kind.word())) }
                    (line("whisker", (place(index + 1), at(incumbent)), (place(index + 1), at(candidate))))
                    (marker(slot.kind, (place(index + 1), at(candidate))))
                }
            }
        }
        @for (value, index) in [(start, 0), (last, slots.len() + 1)] {
            @if let Some(v) = value { (end_mark(place(index), at(v), v / per)) }
        }
    }
}

fn end_mark(x: f64, y: f64, value: f64) -> Markup {
    html! {
        circle class="end" cx=(n(x)) cy=(n(y)) r="4" {}
        (text("end-value", "middle", (x, y - 10.0), &words::number(value)))
    }
}

/// The incumbent's way: level within a slot, upright between two.
fn stairs(
    slots: &[Slot],
    which: usize,
    start: Option<f64>,
    last: Option<f64>,
    at: &dyn Fn(f64) -> f64,
    place: Place<'_>,
) -> String {
    let half = (place(1) - place(0)) / 2.0;
    let levels = std::iter::once(start)
        .chain(slots.iter().map(|slot| slot.medians[which].map(|(incumbent, _)| incumbent)))
        .chain([last]);
    let mut path = String::new();
    for (index, level) in levels.enumerate() {
        let Some(level) = level else { continue };
        let (from, y) = (n(place(index) - half), n(at(level)));
        path += &if path.is_empty() { format!("M{from} {y}") } else { format!("H{from}V{y}") };
        path += &format!("H{}", n(place(index) + half));
    }
    path
}

fn names(slots: &[Slot], bottom: f64, place: Place<'_>) -> Markup {
    let y = bottom + 14.0;
    let slanted = |x: f64| format!("rotate(-45 {} {})", n(x), n(y));
    html! {
        @for (index, name) in [(0, "start"), (slots.len() + 1, "final")] {
            text class="step-name strong" text-anchor="end" x=(n(place(index) + 4.0)) y=(n(y)) transform=(slanted(place(index) + 4.0)) { (name) }
        }
        @for (index, slot) in slots.iter().enumerate() {
            @if slots.len() <= NAMED || slot.kind.is_kept() {
                @let x = place(index + 1) + 4.0;
                text class={ "step-name " (slot.kind.class()) } text-anchor="end" x=(n(x)) y=(n(y)) transform=(slanted(x)) {
                    (slot.number) " " (short(&slot.name, 18))
                }
            }
        }
    }
}
