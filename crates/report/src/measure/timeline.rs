//! A measurement over time: goodput, round trips under load, windows.

use landspeed_record::units::Nanos;
use landspeed_record::{FigureUnit, MeasureReport, ProbeSample, Side, Timeline, TimelinePoint};
use maud::{Markup, html};

use super::direction;
use crate::block::{Chart, ReportBlock, ReportSection, Visibility};
use crate::chart::lines::{ChartAxis, ChartSeries, ChartSize, LineChart};
use crate::chart::scale::{label, size_of, unit_of};
use crate::words::counted;

const SIZE: ChartSize = ChartSize { width: 912.0, names: 167.0, bottom: 240.0 };

/// One curve: its name, its class in the style sheet, and its points in seconds and in a figure's own unit.
struct Curve {
    name: String,
    class: &'static str,
    points: Vec<(f64, f64)>,
}

/// Returns the section of the charts, which only a page shows.
pub(super) fn section(report: &MeasureReport) -> ReportSection {
    let charts = [rate(report), round_trip(report), window(report)].into_iter().flatten().map(Chart);
    let charts = charts.map(ReportBlock::from).collect::<Vec<_>>();
    ReportSection::new("timeline", "Over time").all(ReportBlock::only(Visibility::OnPage, charts))
}

fn rate(report: &MeasureReport) -> Option<Markup> {
    let curves = curves(report, |point| Some(point.rate_bps.0));
    let events = report.timeline.iter().flat_map(|line| &line.points).filter(|point| point.retransmits > 0);
    let event = |point: &TimelinePoint| {
        let at = point.at_ns.as_secs_f64();
        (at, format!("{} sent again by {} s", counted(point.retransmits as usize, "segment"), label(at)))
    };
    let caption = "Payload that the receiver acknowledged. Triangles are segments sent again.";
    Panel {
        name: "rate",
        title: "Goodput over time",
        y: "goodput",
        caption,
        events: events.map(event).collect(),
    }
    .draw(curves, FigureUnit::BitRate)
}

/// Draws the round trips under load, with the idle round trip for comparison. The round trips under load show the delay
/// that a flow causes for others on its path.
fn round_trip(report: &MeasureReport) -> Option<Markup> {
    let mut curves = curves(report, |point| Some(point.rtt_ns?.0 as f64));
    curves.extend(probes(&report.probes));
    let idle = report.path.rtt_ns;
    let ends = curves.iter().flat_map(|curve| &curve.points).map(|point| point.0);
    let (from, to) = ends.fold((f64::INFINITY, 0.0), |(from, to), at| (at.min(from), at.max(to)));
    if idle > Nanos(0) && from < to {
        let points = vec![(from, idle.0 as f64), (to, idle.0 as f64)];
        curves.push(Curve { name: "idle".to_owned(), class: "series start", points });
    }
    let caption = "Round trips while data flows, as the sender's TCP smooths them, and by a probe where one ran beside the flows. \
                   What lies above the idle round trip is time in queues.";
    Panel {
        name: "latency-under-load",
        title: "Round trips under load",
        y: "round trip",
        caption,
        events: Vec::new(),
    }
    .draw(curves, FigureUnit::Time)
}

fn probes(samples: &[ProbeSample]) -> Option<Curve> {
    let points = samples.iter().map(|probe| (probe.at_ns.as_secs_f64(), probe.rtt_ns.0 as f64)).collect();
    (!samples.is_empty()).then(|| Curve { name: "probe".to_owned(), class: "series probe", points })
}

fn window(report: &MeasureReport) -> Option<Markup> {
    let mut curves = curves(report, |point| Some(point.window_bytes.0 as f64));
    let most = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
    let (per, unit) = size_of(most);
    curves.iter_mut().flat_map(|curve| &mut curve.points).for_each(|point| point.1 /= per);
    let caption = "The congestion windows of all flows of a direction together.";
    Panel { name: "window", title: "Window over time", y: "congestion window", caption, events: Vec::new() }
        .draw_in(curves, (1.0, unit))
}

/// Returns the curve of a value for each direction. Directions with fewer than two points are left out.
fn curves(report: &MeasureReport, of: fn(&TimelinePoint) -> Option<f64>) -> Vec<Curve> {
    let curve = |line: &Timeline| Curve {
        name: direction(line.sender, line.between.as_ref()),
        class: if line.sender == Side::A { "series of-a" } else { "series of-b" },
        points: line.points.iter().filter_map(|at| Some((at.at_ns.as_secs_f64(), of(at)?))).collect(),
    };
    report.timeline.iter().map(curve).filter(|curve| curve.points.len() > 1).collect()
}

/// A chart without its curves.
struct Panel<'a> {
    name: &'a str,
    title: &'static str,
    /// Name of the vertical axis, without the unit.
    y: &'a str,
    caption: &'static str,
    events: Vec<(f64, String)>,
}

impl Panel<'_> {
    fn draw(self, curves: Vec<Curve>, unit: FigureUnit) -> Option<Markup> {
        let most = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
        self.draw_in(curves, unit_of(unit, most))
    }

    /// Draws curves in a unit, which is given as (divisor, name).
    fn draw_in(self, curves: Vec<Curve>, (per, unit): (f64, &str)) -> Option<Markup> {
        let most = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
        let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
        let description =
            format!("{} of {}, at most {} {unit}.", self.title, names.join(", "), label(most / per));
        let series = |curve: Curve| ChartSeries {
            name: curve.name,
            class: curve.class.to_owned(),
            line: curve.points.into_iter().map(|(at, value)| (at, value / per)).collect(),
            ..ChartSeries::default()
        };
        LineChart {
            name: self.name.to_owned(),
            title: self.title,
            description,
            caption: html! { p { (self.caption) } },
            size: SIZE,
            x: ChartAxis::from_zero("seconds"),
            y: ChartAxis::from_zero(&format!("{}, {unit}", self.y)),
            series: curves.into_iter().map(series).collect(),
            uprights: Vec::new(),
            events: self.events,
        }
        .figure()
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::PathFacts;
    use landspeed_record::units::{BitRate, Bytes};

    use super::*;
    use crate::{DetailLevel, OutputCapabilities};

    fn line(sender: Side) -> Timeline {
        let point = |n: u64| TimelinePoint {
            at_ns: Nanos::millis(100 * n),
            rate_bps: BitRate(1e9 * n as f64),
            rtt_ns: Some(Nanos::millis(n)),
            window_bytes: Bytes(n << 20),
            retransmits: n % 2,
        };
        Timeline { sender, between: None, flows: 1, points: (1..5).map(point).collect() }
    }

    #[test]
    fn a_page_draws_what_a_terminal_leaves_out() {
        let probe = |n| ProbeSample { at_ns: Nanos::millis(n), rtt_ns: Nanos::millis(9) };
        let report = MeasureReport {
            timeline: vec![line(Side::A), line(Side::B)],
            probes: vec![probe(0), probe(300)],
            path: PathFacts { rtt_ns: Nanos::millis(1), ..PathFacts::default() },
            ..MeasureReport::default()
        };
        let document = crate::measure(&report);
        let page = document.page();
        for found in ["data-chart=\"rate\"", "data-chart=\"latency-under-load\"", "data-chart=\"window\""] {
            assert!(page.contains(found), "no {found}");
        }
        for found in [">B to A<", ">probe<", ">idle<", "1 segment sent again by 0.1 s", "goodput, Gb/s"] {
            assert!(page.contains(found), "no {found}");
        }
        let text = document.text(OutputCapabilities::plain(80), DetailLevel::Full);
        assert!(!text.contains("Over time"), "{text}");
    }

    #[test]
    fn a_measurement_without_samples_has_no_charts() {
        let page = crate::measure(&MeasureReport::default()).page();
        assert!(!page.contains("data-chart"), "nothing was sampled");
    }
}
