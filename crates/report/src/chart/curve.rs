//! Charts that compare the start and the final configuration: goodput by write size, and round trips.

use landspeed_record::{FigureUnit, LatencyHistogram, Record};
use maud::{Markup, html};

use super::lines::{ChartAxis, ChartPoint, ChartSeries, ChartSize, LineChart, MarkerShape};
use super::scale::unit_of;
use super::trials;
use crate::words::number;

const SIZE: ChartSize = ChartSize { width: 660.0, names: 74.0, bottom: 300.0 };

struct CurveChart {
    name: &'static str,
    title: &'static str,
    caption: &'static str,
    /// Name of the vertical axis, without the unit.
    y: &'static str,
    x: ChartAxis,
    unit: FigureUnit,
    is_marked: bool,
}

type Points = Vec<(f64, f64)>;

impl CurveChart {
    fn draw(self, of: impl Fn(&str) -> Points) -> Option<Markup> {
        let ends = [
            ("start", of("curve-start"), MarkerShape::Square),
            ("final", of("curve-final"), MarkerShape::Round),
        ];
        let ends: Vec<_> = ends.into_iter().filter(|(_, points, _)| points.len() > 1).collect();
        let most = ends.iter().flat_map(|(_, points, _)| points).map(|p| p.1).fold(0.0, f64::max);
        let (per, unit) = match unit_of(self.unit, most) {
            // The unit is microseconds even if the tail reaches milliseconds, because most round trips are shorter.
            (_, "ms") if !self.is_marked => (1e3, "µs"),
            known => known,
        };
        let series = |(name, points, mark): &(&str, Points, MarkerShape)| {
            let line: Points = points.iter().map(|(x, y)| (*x, y / per)).collect();
            let point = |&at: &(f64, f64)| ChartPoint {
                at,
                tooltip: format!("{name}: {} {unit} at {} B", number(at.1), at.0),
                ..ChartPoint::default()
            };
            ChartSeries {
                name: (*name).to_owned(),
                class: format!("series {name}"),
                points: if self.is_marked { line.iter().map(point).collect() } else { Vec::new() },
                line,
                is_level: false,
                mark: *mark,
                ..ChartSeries::default()
            }
        };
        let series: Vec<ChartSeries> = ends.iter().map(series).collect();
        let names: Vec<&str> = series.iter().map(|s| s.name.as_str()).collect();
        let count: usize = series.iter().map(|s| s.line.len()).sum();
        LineChart {
            name: self.name.to_owned(),
            title: self.title,
            description: format!("{}, {count} points: {}.", self.title, names.join(" and ")),
            caption: html! { p { (self.caption) } },
            size: SIZE,
            x: self.x,
            y: ChartAxis::log(&format!("{}, {unit}", self.y)),
            series,
            uprights: Vec::new(),
            events: Vec::new(),
        }
        .figure()
    }
}

/// Returns a logarithmic axis of sizes with at most eight equally spaced ticks at powers of two.
fn sizes(title: &str, of: &impl Fn(&str) -> Points) -> ChartAxis {
    let all: Points = ["curve-start", "curve-final"].into_iter().flat_map(of).collect();
    let low = all.iter().map(|v| v.0).fold(f64::INFINITY, f64::min).max(1.0).log2().ceil() as i32;
    let high = all.iter().map(|v| v.0).fold(1.0, f64::max).log2().floor() as i32;
    let step = usize::try_from((high - low) / 8 + 1).unwrap_or(1).max(1);
    ChartAxis::log(title).at((low..=high).step_by(step).map(|e| 2f64.powi(e)))
}

/// Draws goodput against write size for the start and the final configuration. Returns `None` if fewer than two sizes
/// were measured.
pub(crate) fn sweep(record: &Record) -> Option<Markup> {
    let of = |step: &str| -> Points {
        trials::sweep(record, step).into_iter().map(|(size, rate)| (size.0 as f64, rate)).collect()
    };
    let caption = "A fixed count of writes of each size over one connection, timed at the receiver (the NTTCP procedure). Where \
                   the start lies low at every size, the path and not the write size held it back.";
    let (name, title, x) = ("sweep", "Rate against write size", sizes("write size, bytes", &of));
    CurveChart { name, title, caption, y: "rate", x, unit: FigureUnit::BitRate, is_marked: true }.draw(of)
}

/// Draws the round-trip time of the smallest message by percentile. Returns `None` if it was not measured.
pub(crate) fn latency_distribution(record: &Record) -> Option<Markup> {
    const PERCENTILES: [(f64, &str); 6] =
        [(0.0, "0"), (0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99")];
    let of = |step: &str| trials::latency(record, step).first().map(distribution).unwrap_or_default();
    let end = ["curve-start", "curve-final"].into_iter().flat_map(of).map(|p| p.0).fold(1.0, f64::max);
    // The axis counts nines: 0.9 is at one, 0.99 at two.
    let ticks = PERCENTILES.map(|(share, name)| (-(1.0 - share).log10(), name.to_owned()));
    let ticks = ticks.into_iter().filter(|(nines, _)| *nines <= end + 1e-9).collect();
    let x = ChartAxis { ticks, ..ChartAxis::from_zero("percentile of round trips (axis by nines)") };
    let caption = "Round trips of the smallest message on the otherwise idle path, one message at a time. To the right each \
                   decade is a rarer case; a line ends where fewer than ten samples lie beyond it.";
    let (name, title) = ("latency", "Round-trip time by percentile");
    CurveChart { name, title, caption, y: "round trip", x, unit: FigureUnit::Time, is_marked: false }.draw(of)
}

/// Returns (number of nines of a percentile, round trip in ns), in steps of 1/20 of a nine, up to the last percentile
/// that has enough samples.
fn distribution(histogram: &LatencyHistogram) -> Points {
    let steps = (0..=80).map(|i| f64::from(i) / 20.0);
    steps
        .map_while(|at| histogram.percentile(1.0 - 10f64.powf(-at)).map(|time| (at, time.0 as f64)))
        .filter(|(_, time)| *time > 0.0)
        .collect()
}

/// Draws the median round trip against message size. Returns `None` if fewer than two sizes were measured.
pub(crate) fn latency_by_size(record: &Record) -> Option<Markup> {
    let of = |step: &str| -> Points {
        let medians = trials::latency(record, step);
        let medians =
            medians.iter().filter_map(|h| Some((h.size_bytes.0 as f64, h.percentile(0.5)?.0 as f64)));
        medians.filter(|(size, time)| *size > 0.0 && *time > 0.0).collect()
    };
    let caption = "Median time for a message to go and come back, by its size (the NetPIPE procedure).";
    let (name, title) = ("latency-by-size", "Round-trip time against message size");
    let x = sizes("message size, bytes", &of);
    CurveChart { name, title, caption, y: "median round trip", x, unit: FigureUnit::Time, is_marked: true }
        .draw(of)
}
