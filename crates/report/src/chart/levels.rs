//! The chart of a measured figure by step: the median of the incumbent as a line, and that of each candidate as a
//! point.

use landspeed_analysis::Metric;
use landspeed_record::{Record, TuneSummary};
use landspeed_stats::median;
use maud::{Markup, html};

use super::frame::short;
use super::lines::{ChartAxis, ChartPoint, ChartSeries, ChartSize, LineChart, MarkerShape};
use super::scale::{label, unit_in};
use super::trials::by_step;
use crate::words::{self, StepOutcome};

const SIZE: ChartSize = ChartSize { width: 912.0, names: 100.0, bottom: 220.0 };
/// Number of steps above which only the kept ones are named.
const NAMED: usize = 45;

/// Draws the chart. Returns `None` if the record has no trials of a measured step.
pub(crate) fn level(figure: Metric, summary: &TuneSummary, record: &Record) -> Option<Markup> {
    let steps = words::measured(summary);
    let trials = by_step(record, figure);
    let medians = |id: &str| {
        let [incumbent, candidate] = trials.get(id)?;
        Some((median(incumbent)?, median(candidate)?))
    };
    let medians: Vec<Option<(f64, f64)>> = steps.iter().map(|(step, _)| medians(&step.id)).collect();
    let (start, last) = (figure.of_figures(&summary.start), figure.of_figures(&summary.final_));
    let levels = medians.iter().flatten().flat_map(|(a, b)| [*a, *b]);
    let (per, unit) = unit_in(figure, levels.chain(start).chain(last).fold(0.0, f64::max), summary);
    let marks: Vec<ChartPoint> = steps
        .iter()
        .zip(&medians)
        .enumerate()
        .filter_map(|(index, ((step, _), medians))| {
            let (before, with) = (*medians)?;
            let (before, with, outcome) = (before / per, with / per, StepOutcome::of(step));
            let (setting, what) = (words::step_words(step), outcome.labels().word);
            let tooltip = format!(
                "{}. {setting}: {} {unit} before, {} with it, {what}",
                index + 1,
                label(before),
                label(with)
            );
            let at = (index as f64 + 1.5, with);
            Some(ChartPoint { at, tooltip, ends: Some((before, with)), outcome: Some(outcome) })
        })
        .collect();
    if marks.is_empty() {
        return None;
    }
    // The start, the steps in order, and the final all have the width of one slot.
    let slots = steps.len() + 2;
    let levels = [start].into_iter().chain(medians.iter().map(|m| m.map(|m| m.0))).chain([last, last]);
    let line = levels.enumerate().filter_map(|(at, level)| Some((at as f64, level? / per))).collect();
    let end = |name: &str, at: usize, value: Option<f64>| {
        let value = value? / per;
        Some(ChartPoint {
            at: (at as f64 + 0.5, value),
            tooltip: format!("{name}: {} {unit}", label(value)),
            ..ChartPoint::default()
        })
    };
    let names = steps.iter().enumerate().filter_map(|(index, (step, _))| {
        let is_named = steps.len() <= NAMED || StepOutcome::of(step).is_kept();
        is_named.then(|| (index as f64 + 1.5, format!("{} {}", index + 1, short(&words::setting(step), 18))))
    });
    let ends = [(0.5, "start".to_owned()), (slots as f64 - 0.5, "final".to_owned())];
    let axis = format!("{}, {unit}", figure.row().axis);
    LineChart {
        name: format!("level-{}", figure.row().short),
        title: if figure == Metric::Cost { "Processor cost against step" } else { "Rate against step" },
        description: format!("Median of {axis}, of incumbent and candidate over {} steps.", steps.len()),
        caption: html! {},
        size: SIZE,
        x: ChartAxis {
            ticks: names.chain(ends).collect(),
            is_slanted: true,
            ..ChartAxis::from_zero("step, in the order tried")
        },
        y: ChartAxis::from_zero(&axis),
        series: vec![ChartSeries {
            name: "incumbent".to_owned(),
            class: "series".to_owned(),
            line,
            is_level: true,
            mark: MarkerShape::Round,
            points: end("start", 0, start)
                .into_iter()
                .chain(marks)
                .chain(end("final", slots - 1, last))
                .collect(),
            ..ChartSeries::default()
        }],
        uprights: Vec::new(),
        events: Vec::new(),
    }
    .figure()
}
