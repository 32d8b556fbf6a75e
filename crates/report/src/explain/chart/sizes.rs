//! Cost of a message over its size: what was measured, and the lines that fit.

use landspeed_analysis::fit::{BOTH, HOST_A, HOST_B, LINK};
use landspeed_record::{LayerCost, SizePoint};
use landspeed_units::Bytes;
use maud::{Markup, html};

use super::super::sizes::Sweep;
use super::super::words::nanos;
use crate::chart::frame::{Frame, Shape, line, n, text, x_axis, y_axis};
use crate::chart::scale::{Scale, unit_of};
use crate::words::Primary;

const WIDTH: f64 = 912.0;
const LEFT: f64 = 56.0;
/// Leaves room for the names of the lines at their ends.
const RIGHT: f64 = 790.0;
const TOP: f64 = 42.0;
const BOTTOM: f64 = 330.0;
const HEIGHT: f64 = 382.0;
/// Least distance between two names.
const APART: f64 = 20.0;
/// Places along a line, beside the two at each step.
const PLACES: u32 = 96;
/// Figures outside of this, in nanoseconds, come from no measurement.
const SANE: std::ops::RangeInclusive<f64> = 1e-3..=1e12;

/// Layers that are drawn, with the class of their colour.
const DRAWN: [(&str, &str); 4] = [(HOST_A, "of-a"), (HOST_B, "of-b"), (BOTH, "of-both"), (LINK, "of-link")];

/// A layer as it is drawn.
struct Series<'a> {
    name: &'static str,
    class: &'static str,
    points: Vec<(&'a SizePoint, LayerCost)>,
    /// The fitted line: (bytes, nanoseconds).
    line: Vec<(f64, f64)>,
}

impl<'a> Series<'a> {
    fn of(sweep: &Sweep<'a>, (name, class): (&'static str, &'static str)) -> Option<Self> {
        let sane = |cost: &LayerCost| SANE.contains(&cost.median_ns);
        let cost = |point: &&'a SizePoint| Some((*point, *point.layers.get(name)?));
        let points: Vec<_> = sweep.points.iter().filter_map(cost).filter(|(_, cost)| sane(cost)).collect();
        let fitted = sweep.line(name);
        let line = fitted.map(|line| {
            let at = |size: Bytes| (size.0 as f64, line.at(size, sweep.fragments(size)));
            places(sweep).into_iter().map(at).filter(|(_, ns)| SANE.contains(ns)).collect()
        });
        (points.len() > 1).then(|| Series { name, class, points, line: line.unwrap_or_default() })
    }

    /// Where its name goes, before others are in the way.
    fn end(&self) -> f64 {
        self.points.last().map_or(1.0, |(_, cost)| cost.median_ns)
    }
}

/// Sizes at which a line is computed: alike on a logarithmic axis, and both sides of each step.
fn places(sweep: &Sweep<'_>) -> Vec<Bytes> {
    let ends = (sweep.points.first(), sweep.points.last());
    let (Some(first), Some(last)) = ends else { return Vec::new() };
    let (low, high) = (first.size_bytes.0 as f64, last.size_bytes.0 as f64);
    let even =
        (0..=PLACES).map(|i| (low * (high / low).powf(f64::from(i) / f64::from(PLACES))).round() as u64);
    let steps = sweep.steps.iter().flat_map(|step| [step.0, step.0.saturating_add(1)]);
    let mut all: Vec<u64> = even.chain(steps).filter(|size| (low..=high).contains(&(*size as f64))).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(Bytes).collect()
}

/// The chart of the sweep with this number, or nothing where too few sizes were measured.
pub(crate) fn sizes(index: usize, sweep: &Sweep<'_>) -> Option<Markup> {
    let series: Vec<Series<'_>> = DRAWN.into_iter().filter_map(|layer| Series::of(sweep, layer)).collect();
    if series.is_empty() {
        return None;
    }
    let costs = || series.iter().flat_map(|s| &s.points);
    let (per, unit) = unit_of(Primary::Latency, costs().map(|(_, c)| c.median_ns).fold(0.0, f64::max));
    let x = Scale::log(costs().map(|(point, _)| point.size_bytes.0 as f64), LEFT, RIGHT);
    let y = Scale::log(costs().map(|(_, cost)| cost.median_ns / per), BOTTOM, TOP);
    let name = format!("sizes-{index}");
    let frame = Frame {
        name: &name,
        title: "What a message costs over its size",
        description: description(sweep, &series),
        caption: caption(sweep),
        shape: Shape::Fixed(WIDTH, HEIGHT),
        points: costs().count(),
    };
    let named = apart(&series.iter().map(|s| y.at(s.end() / per)).collect::<Vec<_>>());
    Some(frame.figure(&html! {
        (text("axis", "start", (0.0, TOP - 22.0), &format!("time a message, {unit} (log scale)")))
        @for step in sweep.steps.iter().take(24) { (line("size-step", (x.at(step.0 as f64), TOP), (x.at(step.0 as f64), BOTTOM))) }
        (x_axis(&x, &powers(&sweep.points), (TOP, BOTTOM)))
        (y_axis(&y, &y.ticks(7), (LEFT, RIGHT)))
        (text("axis", "middle", (f64::midpoint(LEFT, RIGHT), BOTTOM + 40.0), "message size, bytes (log scale)"))
        @for (series, at) in series.iter().zip(named) { (drawn(series, at, &|size, ns| (x.at(size), y.at(ns / per)))) }
    }))
}

fn drawn(series: &Series<'_>, named_at: f64, place: &dyn Fn(f64, f64) -> (f64, f64)) -> Markup {
    let path: Vec<String> = series
        .line
        .iter()
        .map(|&(size, ns)| place(size, ns))
        .map(|(x, y)| format!("{} {}", n(x), n(y)))
        .collect();
    html! {
        g class={ "series " (series.class) } {
            @if path.len() > 1 { path class="curve" d={ "M" (path.join("L")) } {} }
            @for (point, cost) in &series.points {
                @let size = point.size_bytes.0 as f64;
                @let (x, y) = place(size, cost.median_ns);
                @if SANE.contains(&cost.least_ns) && SANE.contains(&cost.most_ns) {
                    (line("whisker", (x, place(size, cost.least_ns).1), (x, place(size, cost.most_ns).1)))
                }
                circle class="dot" cx=(n(x)) cy=(n(y)) r="3" { title { (series.name) ", " (point.size_bytes) ": " (nanos(Some(cost.median_ns))) " ns" } }
            }
            (text("series-name", "start", (RIGHT + 10.0, named_at + 4.0), series.name))
        }
    }
}

/// Where names go: at the ends of their lines, but none on another.
fn apart(ends: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|a, b| ends[*a].total_cmp(&ends[*b]));
    let mut places = vec![0.0; ends.len()];
    let mut free = TOP;
    for (rank, index) in order.into_iter().enumerate() {
        let below = APART * (ends.len() - 1 - rank) as f64;
        places[index] = ends[index].max(free).min(BOTTOM - below);
        free = places[index] + APART;
    }
    places
}

/// Powers of four between the ends.
fn powers(points: &[&SizePoint]) -> Vec<f64> {
    let size = |point: Option<&&SizePoint>| point.map_or(1, |point| point.size_bytes.0);
    let (low, high) = (size(points.first()), size(points.last()));
    (0..32).map(|power| 2f64.powi(2 * power + 1)).filter(|v| (low as f64..=high as f64).contains(v)).collect()
}

fn description(sweep: &Sweep<'_>, series: &[Series<'_>]) -> String {
    let told = |s: &Series<'_>| {
        let ends = [s.points.first(), s.points.last()].into_iter().flatten();
        let ends: Vec<String> =
            ends.map(|(p, cost)| format!("{} ns at {}", nanos(Some(cost.median_ns)), p.size_bytes)).collect();
        format!("{} {}", s.name, ends.join(", "))
    };
    let all: Vec<String> = series.iter().map(told).collect();
    format!("{}: {}.", sweep.title, all.join("; "))
}

fn caption(sweep: &Sweep<'_>) -> Markup {
    html! {
        p {
            "Dots are medians over the trials, whiskers their extremes, lines what fits."
            @if !sweep.steps.is_empty() { " Behind each upright a message becomes one packet more." }
        }
    }
}
