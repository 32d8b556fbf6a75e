//! Charts of each protocol over time: its flows stacked, and below them the round trip and the queue (Figures 2 to 5 of
//! Cottrell et al. 2005).

use landspeed_record::{CompareReport, Study};
use maud::{Markup, html};

use super::runs::{Points, ProtocolCourse};
use super::words;
use crate::chart::frame::{ChartFrame, ChartShape, line, n, text, y_axis};
use crate::chart::scale::{Scale, label};

const WIDTH: f64 = 470.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = 464.0;
/// Top and bottom of each panel.
const GOODPUT: (f64, f64) = (22.0, 152.0);
const ROUND_TRIP: (f64, f64) = (184.0, 240.0);
const QUEUE: (f64, f64) = (272.0, 314.0);
const FOOT: f64 = 36.0;
/// Number of tints for flows. The tints of further flows start again with the first.
const TINTS: usize = 4;

/// Draws one small chart per protocol, on common axes.
pub(super) fn courses(report: &CompareReport, courses: &[ProtocolCourse]) -> Markup {
    let axes = SharedAxes::of(&report.study, courses);
    let flows = courses.iter().map(|course| course.flows.len()).max().unwrap_or(0);
    html! {
        ul class="legend" {
            @for flow in 0..flows.min(4) {
                li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { rect class={ "flow flow-" (flow) } x="1" y="3" width="14" height="10" {} } "flow " (flow + 1) }
            }
            @if courses.iter().any(|course| !course.others.is_empty()) {
                li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { path class="other" d="M0 8h16" {} } "all flows of another repeat" }
            }
        }
        div class="courses" {
            @for (index, of) in courses.iter().enumerate() {
                div {
                    h3 { (of.name) " " span class="quiet" { (facts(report, index)) } }
                    (course(index, of, &axes))
                }
            }
        }
    }
}

/// Returns the mean goodput and the stability of a protocol: "402 Mb/s, S 0.28".
fn facts(report: &CompareReport, index: usize) -> String {
    let Some(p) = report.protocols.get(index).filter(|p| p.runs > 0) else { return String::new() };
    let stability = words::shown(p.stability, words::hundredths);
    format!("{}, S {stability}", p.mean_bps)
}

/// The axes that all charts of a study share, so that they can be compared.
#[derive(Debug)]
struct SharedAxes {
    /// Borders of the regions in seconds, including the first and the last.
    borders: Vec<f64>,
    bps: f64,
    rtt_s: (f64, f64),
    queue_bytes: f64,
}

impl SharedAxes {
    fn of(study: &Study, courses: &[ProtocolCourse]) -> Self {
        let mut borders: Vec<f64> = study.regions().iter().take(64).map(|r| r.start.as_secs_f64()).collect();
        borders.push(study.duration().as_secs_f64());
        borders.sort_by(f64::total_cmp);
        borders.dedup();
        let most = |points: &dyn Fn(&ProtocolCourse) -> Vec<f64>| {
            courses.iter().flat_map(points).fold(0.0, f64::max)
        };
        let idle = study.path.rtt_ns.as_secs_f64();
        let highest = most(&|course| course.rtt.iter().map(|p| p.1).collect());
        let highest_rate = most(&|course| stacked(&course.flows).last().map(tops).unwrap_or_default())
            .max(most(&|course| course.others.iter().flat_map(tops).collect()));
        let line = Some(study.path.rate_bps.0).filter(|rate| rate.is_finite() && *rate > 0.0);
        SharedAxes {
            borders,
            // Data that waited behind a lost segment is delivered at once, faster than the line rate. The axis cuts
            // such peaks off.
            bps: line.map_or(highest_rate, |line| highest_rate.min(line * 1.05)),
            rtt_s: (idle.min(highest), highest.max(idle * 1.05)),
            queue_bytes: most(&|course| tops(&course.queue)),
        }
    }

    fn end(&self) -> f64 {
        self.borders.last().copied().unwrap_or(1.0)
    }

    fn x(&self) -> Scale {
        Scale::linear(0.0, self.end(), LEFT, RIGHT)
    }
}

fn tops(points: &Points) -> Vec<f64> {
    points.iter().map(|p| p.1).collect()
}

/// Returns the upper edge of each flow when flows are stacked.
fn stacked(flows: &[Points]) -> Vec<Points> {
    let mut edges: Vec<Points> = Vec::new();
    for flow in flows {
        let below = edges.last();
        let edge = flow.iter().enumerate();
        let edge = edge.map(|(i, (at, v))| (*at, v + below.and_then(|b| b.get(i)).map_or(0.0, |p| p.1)));
        edges.push(edge.collect());
    }
    edges
}

fn course(index: usize, course: &ProtocolCourse, axes: &SharedAxes) -> Markup {
    let has_queue = !course.queue.is_empty();
    let bottom = if has_queue { QUEUE.1 } else { ROUND_TRIP.1 };
    let title = format!("{} over time", course.name);
    let name = format!("course-{index}");
    let frame = ChartFrame {
        name: &name,
        title: &title,
        description: description(course),
        caption: caption(course),
        shape: ChartShape::Fixed(WIDTH, bottom + FOOT),
        points: course.flows.iter().map(Vec::len).sum(),
    };
    frame.figure(&html! {
        (borders(axes, bottom))
        (goodput(course, axes))
        (round_trips(course, axes))
        @if has_queue { (queue(course, axes)) }
    })
}

fn borders(axes: &SharedAxes, bottom: f64) -> Markup {
    let x = axes.x();
    let (per, unit) = if axes.end() >= 300.0 { (60.0, "minutes") } else { (1.0, "seconds") };
    html! {
        @for &border in &axes.borders {
            (line("border", x.at(border), GOODPUT.0, x.at(border), bottom))
            // The last label must not extend beyond the drawing.
            @let anchor = if border == axes.end() { "end" } else { "middle" };
            (text("tick", anchor, x.at(border), bottom + 15.0, &label(round(border / per))))
        }
        (text("axis", "end", RIGHT, bottom + 31.0, unit))
    }
}

/// Rounds a time to tenths.
fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn goodput(course: &ProtocolCourse, axes: &SharedAxes) -> Markup {
    let x = axes.x();
    let y = Scale::from_zero([axes.bps / 1e6], GOODPUT.1, GOODPUT.0);
    let edges = stacked(&course.flows);
    let place = |&(at, v): &(f64, f64)| (x.at(at), y.at(v / 1e6));
    html! {
        (text("axis", "start", 0.0, GOODPUT.0 - 9.0, "Mb/s, flows stacked"))
        (y_axis(&y, &y.ticks(4), LEFT, RIGHT))
        @for (index, edge) in edges.iter().enumerate() {
            path class={ "flow flow-" (index % TINTS) } d=(area(edge, index.checked_sub(1).map(|below| &edges[below]), &place, GOODPUT.1)) {
                title { "flow " (index + 1) }
            }
        }
        @for other in &course.others { path class="other" d=(outline(other, &place)) {} }
    }
}

fn round_trips(course: &ProtocolCourse, axes: &SharedAxes) -> Markup {
    let x = axes.x();
    let y = Scale::linear(axes.rtt_s.0 * 1e3, axes.rtt_s.1 * 1e3, ROUND_TRIP.1, ROUND_TRIP.0);
    html! {
        (text("axis", "start", 0.0, ROUND_TRIP.0 - 9.0, "round trip, ms"))
        (y_axis(&y, &y.ticks(5), LEFT, RIGHT))
        path class="rtt" d=(outline(&course.rtt, &|&(at, v)| (x.at(at), y.at(v * 1e3)))) {}
    }
}

fn queue(course: &ProtocolCourse, axes: &SharedAxes) -> Markup {
    let x = axes.x();
    let y = Scale::from_zero([axes.queue_bytes / 1024.0], QUEUE.1, QUEUE.0);
    html! {
        (text("axis", "start", 0.0, QUEUE.0 - 9.0, "queue, KiB"))
        (y_axis(&y, &y.ticks(2), LEFT, RIGHT))
        path class="queue" d=(outline(&course.queue, &|&(at, v)| (x.at(at), y.at(v / 1024.0)))) {}
    }
}

type Projection<'a> = dyn Fn(&(f64, f64)) -> (f64, f64) + 'a;

fn outline(points: &Points, place: &Projection<'_>) -> String {
    let all: Vec<String> = points.iter().map(place).map(|(x, y)| format!("{} {}", n(x), n(y))).collect();
    if all.is_empty() { String::new() } else { format!("M{}", all.join("L")) }
}

fn area(edge: &Points, below: Option<&Points>, place: &Projection<'_>, floor: f64) -> String {
    let (Some(first), Some(last)) = (edge.first(), edge.last()) else { return String::new() };
    let back = match below {
        None => format!("L{} {}L{} {}", n(place(last).0), n(floor), n(place(first).0), n(floor)),
        Some(below) => {
            let turned = below.iter().rev().map(place).map(|(x, y)| format!("L{} {}", n(x), n(y)));
            turned.collect()
        }
    };
    format!("{}{back}Z", outline(edge, place))
}

fn description(course: &ProtocolCourse) -> String {
    let rates: Vec<String> = course
        .flows
        .iter()
        .map(|flow| {
            let mean = flow.iter().map(|p| p.1).sum::<f64>() / flow.len().max(1) as f64;
            landspeed_record::units::BitRate(mean).to_string()
        })
        .collect();
    format!("Mean goodput over the whole run by flow: {}.", rates.join(", "))
}

fn caption(course: &ProtocolCourse) -> Markup {
    let others = course.repeats.saturating_sub(1);
    html! {
        p {
            "Repeat " (course.repeat)
            @if others == 1 { "; the line is the other repeat's aggregate" }
            @if others > 1 { "; the lines are the other repeats' aggregates" }
            "."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_stacked_in_their_order() {
        let flow = |v: f64| vec![(0.0, v), (1.0, v)];
        let edges = stacked(&[flow(3.0), flow(2.0), flow(1.0)]);
        assert_eq!(edges.iter().map(|edge| edge[1].1).collect::<Vec<_>>(), [3.0, 5.0, 6.0]);
        // Where the flow below has no sample, the flow above is stacked on zero.
        assert_eq!(stacked(&[vec![(0.0, 1.0)], flow(2.0)])[1], [(0.0, 3.0), (1.0, 2.0)]);
    }

    #[test]
    fn an_area_closes() {
        let place = |&(x, y): &(f64, f64)| (x, y);
        let flow = vec![(0.0, 1.0), (2.0, 1.0)];
        assert_eq!(area(&flow, None, &place, 9.0), "M0 1L2 1L2 9L0 9Z");
        assert_eq!(area(&flow, Some(&vec![(0.0, 4.0), (2.0, 4.0)]), &place, 9.0), "M0 1L2 1L2 4L0 4Z");
        assert_eq!(area(&vec![], None, &place, 9.0), "");
    }
}
