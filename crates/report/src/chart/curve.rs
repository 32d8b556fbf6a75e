//! Curves of start and final: rate against write size, and round trips.

use landspeed_record::{LatencyHistogram, Record};
use maud::{Markup, html};

use super::frame::{Frame, Shape, line, n, text, x_axis, y_axis};
use super::scale::{Scale, unit_of};
use super::trials;
use crate::words::{Primary, number};

const WIDTH: f64 = 660.0;
const LEFT: f64 = 56.0;
/// Leaves room for the names of the lines at their ends.
const RIGHT: f64 = 586.0;
const TOP: f64 = 42.0;
const BOTTOM: f64 = 300.0;
const HEIGHT: f64 = 352.0;

/// One line of a chart.
struct Series {
    name: &'static str,
    class: &'static str,
    points: Vec<(f64, f64)>,
    /// Whether each point is marked; a line of many points is not.
    marked: bool,
}

impl Series {
    fn draw(&self, x: &Scale, y: &Scale, units: (&str, &str)) -> Markup {
        let place = |&(a, b): &(f64, f64)| (x.at(a), y.at(b));
        let path: Vec<String> =
            self.points.iter().map(place).map(|(a, b)| format!("{} {}", n(a), n(b))).collect();
        let end = self.points.last().map(place).unwrap_or_default();
        html! {
            g class={ "series " (self.class) } {
                path class="curve" d={ "M" (path.join("L")) } {}
                @if self.marked {
                    @for point in &self.points { (dot(self.class, place(point), &format!("{}: {} {} at {} {}", self.name, number(point.1), units.1, n(point.0), units.0))) }
                }
                (text("series-name", "start", (end.0 + 10.0, end.1 + 4.0), self.name))
            }
        }
    }
}

/// Start is hollow and square, final is full and round.
fn dot(class: &str, (x, y): (f64, f64), told: &str) -> Markup {
    html! {
        @if class == "start" {
            rect class="dot" x=(n(x - 3.5)) y=(n(y - 3.5)) width="7" height="7" { title { (told) } }
        } @else {
            circle class="dot" cx=(n(x)) cy=(n(y)) r="4" { title { (told) } }
        }
    }
}

/// Start and final, each where it has points.
fn pair(start: Vec<(f64, f64)>, last: Vec<(f64, f64)>, marked: bool) -> Vec<Series> {
    [("start", start), ("final", last)]
        .into_iter()
        .filter(|(_, points)| points.len() > 1)
        .map(|(name, points)| Series { name, class: name, points, marked })
        .collect()
}

fn values(series: &[Series]) -> impl Iterator<Item = (f64, f64)> {
    series.iter().flat_map(|s| s.points.iter().copied())
}

fn frame(name: &'static str, title: &'static str, series: &[Series], caption: Markup) -> Frame<'static> {
    let lines: Vec<&str> = series.iter().map(|s| s.name).collect();
    let points = values(series).count();
    let description = format!("{title}, {} points: {}.", points, lines.join(" and "));
    Frame { name, title, description, caption, shape: Shape::Fixed(WIDTH, HEIGHT), points }
}

fn x_title(words: &str) -> Markup {
    text("axis", "middle", (f64::midpoint(LEFT, RIGHT), BOTTOM + 40.0), words)
}

/// Goodput against write size at the start and at the end, or nothing where it was not measured.
pub(crate) fn sweep(record: &Record) -> Option<Markup> {
    let of =
        |step| trials::sweep(record, step).into_iter().map(|(size, rate)| (size.0 as f64, rate)).collect();
    let mut series = pair(of("curve-start"), of("curve-final"), true);
    let (per, name) = unit_of(Primary::Rate, values(&series).map(|v| v.1).fold(0.0, f64::max));
    series.iter_mut().for_each(|s| s.points.iter_mut().for_each(|p| p.1 /= per));
    if series.is_empty() {
        return None;
    }
    let x = Scale::log(values(&series).map(|v| v.0), LEFT, RIGHT);
    let y = Scale::log(values(&series).map(|v| v.1), BOTTOM, TOP);
    let caption = html! { p { "A fixed count of writes of each size over one connection, timed at the receiver (the NTTCP procedure). "
    "Where the start lies low at every size, the path and not the write size held it back." } };
    let frame = frame("sweep", "Rate against write size", &series, caption);
    Some(frame.figure(&html! {
        (text("axis", "start", (0.0, TOP - 22.0), &format!("rate, {name} (log scale)")))
        (x_axis(&x, &binary_ticks(&series), (TOP, BOTTOM)))
        (y_axis(&y, &y.ticks(7), (LEFT, RIGHT)))
        (x_title("write size, bytes (log scale)"))
        @for s in &series { (s.draw(&x, &y, ("B", name))) }
    }))
}

/// Every power of two between the ends, or every second or third of them.
fn binary_ticks(series: &[Series]) -> Vec<f64> {
    let low = values(series).map(|v| v.0).fold(f64::INFINITY, f64::min).max(1.0).log2().ceil() as i32;
    let high = values(series).map(|v| v.0).fold(1.0, f64::max).log2().floor() as i32;
    let step = ((high - low) / 8 + 1).max(1);
    (low..=high).step_by(usize::try_from(step).unwrap_or(1)).map(|e| 2f64.powi(e)).collect()
}

/// Round trips of the smallest message by percentile, or nothing where they were not measured.
pub(crate) fn latency_distribution(record: &Record) -> Option<Markup> {
    let of = |step| trials::latency(record, step).first().map(distribution).unwrap_or_default();
    let mut series = pair(of("curve-start"), of("curve-final"), false);
    let (per, name) = unit_of(Primary::Latency, values(&series).map(|v| v.1).fold(0.0, f64::max));
    // Microseconds for a path whose tail reaches milliseconds: the body matters more.
    let (per, name) = if name == "ms" { (1e3, "µs") } else { (per, name) };
    series.iter_mut().for_each(|s| s.points.iter_mut().for_each(|p| p.1 /= per));
    if series.is_empty() {
        return None;
    }
    let x = Scale::linear(0.0, values(&series).map(|v| v.0).fold(1.0, f64::max), LEFT, RIGHT);
    let y = Scale::log(values(&series).map(|v| v.1), BOTTOM, TOP);
    let caption = html! { p { "Round trips of the smallest message on the otherwise idle path, one message at a time. "
    "To the right each decade is a rarer case; a line ends where fewer than ten samples lie beyond it." } };
    let frame = frame("latency", "Round-trip time by percentile", &series, caption);
    Some(frame.figure(&html! {
        (text("axis", "start", (0.0, TOP - 22.0), &format!("round trip, {name} (log scale)")))
        (percentile_axis(&x, values(&series).map(|v| v.0).fold(1.0, f64::max)))
        (y_axis(&y, &y.ticks(7), (LEFT, RIGHT)))
        (x_title("percentile of round trips (axis by nines)"))
        @for s in &series { (s.draw(&x, &y, ("", name))) }
    }))
}

const PERCENTILES: [(f64, &str); 6] =
    [(0.0, "0"), (0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99")];

fn percentile_axis(x: &Scale, end: f64) -> Markup {
    html! {
        @for (share, name) in PERCENTILES.into_iter().filter(|(share, _)| nines(*share) <= end + 1e-9) {
            (line("grid", (x.at(nines(share)), TOP), (x.at(nines(share)), BOTTOM)))
            (text("tick", "middle", (x.at(nines(share)), BOTTOM + 17.0), name))
        }
    }
}

/// How many nines: 0.9 is one, 0.99 is two.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// (nines, round trip in ns) at steps of a twentieth, as far as percentiles have samples behind them.
fn distribution(histogram: &LatencyHistogram) -> Vec<(f64, f64)> {
    let steps = (0..=80).map(|i| f64::from(i) / 20.0);
    steps
        .map_while(|at| histogram.percentile(1.0 - 10f64.powf(-at)).map(|time| (at, time.0 as f64)))
        .filter(|(_, time)| *time > 0.0)
        .collect()
}

/// Median round trip against message size, or nothing where fewer than two sizes were measured.
pub(crate) fn latency_by_size(record: &Record) -> Option<Markup> {
    let of = |step| {
        let medians = trials::latency(record, step);
        medians
            .iter()
            .filter_map(|h| Some((h.size_bytes.0 as f64, h.percentile(0.5)?.0 as f64)))
            .filter(|(size, time)| *size > 0.0 && *time > 0.0)
            .collect()
    };
    let mut series = pair(of("curve-start"), of("curve-final"), true);
    let (per, name) = unit_of(Primary::Latency, values(&series).map(|v| v.1).fold(0.0, f64::max));
    series.iter_mut().for_each(|s| s.points.iter_mut().for_each(|p| p.1 /= per));
    if series.is_empty() {
        return None;
    }
    let x = Scale::log(values(&series).map(|v| v.0), LEFT, RIGHT);
    let y = Scale::log(values(&series).map(|v| v.1), BOTTOM, TOP);
    let caption =
        html! { p { "Median time for a message to go and come back, by its size (the NetPIPE procedure)." } };
    let frame = frame("latency-by-size", "Round-trip time against message size", &series, caption);
    Some(frame.figure(&html! {
        (text("axis", "start", (0.0, TOP - 22.0), &format!("median round trip, {name} (log scale)")))
        (x_axis(&x, &binary_ticks(&series), (TOP, BOTTOM)))
        (y_axis(&y, &y.ticks(7), (LEFT, RIGHT)))
        (x_title("message size, bytes (log scale)"))
        @for s in &series { (s.draw(&x, &y, ("B", name))) }
    }))
}
