//! The chart of a message's cost by its size: measured points, and the fitted lines.

use landspeed_analysis::fit::{BOTH, HOST_A, HOST_B, LINK};
use landspeed_record::units::Bytes;
use landspeed_record::{FigureUnit, LayerCost, SizePoint};
use maud::{Markup, html};

use super::super::sweep::SizeSweep;
use super::super::words::nanos;
use crate::chart::lines::{ChartAxis, ChartPoint, ChartSeries, ChartSize, LineChart, MarkerShape};
use crate::chart::scale::unit_of;

const SIZE: ChartSize = ChartSize { width: 912.0, names: 122.0, bottom: 330.0 };
/// Number of intervals between the sizes at which a line is computed. Each step adds two sizes.
const PLACES: u32 = 96;
const STEPS: usize = 24;
/// Range of plausible costs in nanoseconds. No measurement gives a cost outside it.
const SANE: std::ops::RangeInclusive<f64> = 1e-3..=1e12;

/// Layers that are drawn, with the classes of their colours.
const DRAWN: [(&str, &str); 4] = [(HOST_A, "of-a"), (HOST_B, "of-b"), (BOTH, "of-both"), (LINK, "of-link")];

/// Returns the series of a layer, in units of `per` nanoseconds, or `None` if fewer than two sizes were measured.
fn series(sweep: &SizeSweep<'_>, name: &str, class: &str, per: f64) -> Option<ChartSeries> {
    let sane = |ns: f64| Some(ns).filter(|ns| SANE.contains(ns));
    let point = |point: &&SizePoint| {
        let cost: &LayerCost = point.layers.get(name)?;
        let at = (point.size_bytes.0 as f64, sane(cost.median_ns)? / per);
        let ends = sane(cost.least_ns).zip(sane(cost.most_ns)).map(|(low, high)| (low / per, high / per));
        let tooltip = format!("{name}, {}: {} ns", point.size_bytes, nanos(Some(cost.median_ns)));
        Some(ChartPoint { at, ends, tooltip, outcome: None })
    };
    let points: Vec<ChartPoint> = sweep.points.iter().filter_map(point).collect();
    let line = sweep.line(name).map(|line| {
        let at = |size: Bytes| Some((size.0 as f64, sane(line.at(size, sweep.fragments(size)))? / per));
        places(sweep).into_iter().filter_map(at).collect()
    });
    (points.len() > 1).then(|| ChartSeries {
        name: name.to_owned(),
        class: format!("series {class}"),
        line: line.unwrap_or_default(),
        is_level: false,
        mark: MarkerShape::Round,
        points,
        ..ChartSeries::default()
    })
}

/// Returns the sizes at which a line is computed: evenly spaced on a logarithmic axis, and at both sides of each
/// step.
fn places(sweep: &SizeSweep<'_>) -> Vec<Bytes> {
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

pub(crate) fn sizes(index: usize, sweep: &SizeSweep<'_>) -> Option<Markup> {
    let costs =
        sweep.points.iter().flat_map(|point| DRAWN.iter().filter_map(|(name, _)| point.layers.get(*name)));
    let most = costs.map(|cost| cost.median_ns).filter(|ns| SANE.contains(ns)).fold(0.0, f64::max);
    let (per, unit) = unit_of(FigureUnit::Time, most);
    let drawn = DRAWN.into_iter().filter_map(|(name, class)| series(sweep, name, class, per));
    let series: Vec<ChartSeries> = drawn.collect();
    LineChart {
        name: format!("sizes-{index}"),
        title: "What a message costs over its size",
        description: description(sweep, &series),
        caption: caption(sweep),
        size: SIZE,
        x: ChartAxis::log("message size, bytes").at(powers(&sweep.points)),
        y: ChartAxis::log(&format!("time a message, {unit}")),
        series,
        uprights: sweep.steps.iter().take(STEPS).map(|step| step.0 as f64).collect(),
        events: Vec::new(),
    }
    .figure()
}

fn powers(points: &[&SizePoint]) -> Vec<f64> {
    let size = |point: Option<&&SizePoint>| point.map_or(1, |point| point.size_bytes.0);
    let (low, high) = (size(points.first()), size(points.last()));
    (0..32).map(|power| 2f64.powi(2 * power + 1)).filter(|v| (low as f64..=high as f64).contains(v)).collect()
}

fn description(sweep: &SizeSweep<'_>, series: &[ChartSeries]) -> String {
    let text = |s: &ChartSeries| {
        let ends: Vec<&str> =
            [s.points.first(), s.points.last()].into_iter().flatten().map(|p| p.tooltip.as_str()).collect();
        ends.join(", ")
    };
    let all: Vec<String> = series.iter().map(text).collect();
    format!("{}: {}.", sweep.title, all.join("; "))
}

fn caption(sweep: &SizeSweep<'_>) -> Markup {
    html! {
        p {
            "Dots are medians over the trials, whiskers their extremes, lines what fits."
            @if !sweep.steps.is_empty() { " Behind each upright a message becomes one packet more." }
        }
    }
}
