//! Line charts: the types that describe a chart, and the functions that draw it as SVG.

use maud::{Markup, html};

use super::frame::{ChartFrame, ChartShape, line, n, text};
use super::marker::marker;
use super::scale::{Scale, label};
use crate::words::StepOutcome;

const LEFT: f64 = 56.0;
const TOP: f64 = 42.0;
/// Height under the plot for labels and the axis's title.
const FOOT: f64 = 52.0;
/// Additional height for slanted names.
const SLANTED: f64 = 104.0;
const APART: f64 = 20.0;

#[derive(Debug, Clone, Copy)]
pub(crate) struct ChartSize {
    pub(crate) width: f64,
    /// The part of the width that is reserved for names at the ends of lines.
    pub(crate) names: f64,
    pub(crate) bottom: f64,
}

impl ChartSize {
    fn across(self) -> (f64, f64) {
        (LEFT, self.width - self.names)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScaleKind {
    Log,
    FromZero,
    /// This number of positions side by side, numbered from 1.
    Places(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct ChartAxis {
    pub(crate) title: String,
    pub(crate) scale_kind: ScaleKind,
    /// Ticks as (value, label). If empty, the ticks are at round values.
    pub(crate) ticks: Vec<(f64, String)>,
    /// True if the labels of the ticks are too long to fit side by side, and are drawn slanted.
    pub(crate) is_slanted: bool,
    /// Least and greatest value that the axis covers in addition to the drawn values, so that several charts can be
    /// compared.
    pub(crate) shared: Option<(f64, f64)>,
}

impl ChartAxis {
    pub(crate) fn log(title: &str) -> Self {
        ChartAxis {
            title: format!("{title} (log scale)"),
            scale_kind: ScaleKind::Log,
            ticks: Vec::new(),
            is_slanted: false,
            shared: None,
        }
    }

    pub(crate) fn from_zero(title: &str) -> Self {
        ChartAxis {
            title: title.to_owned(),
            scale_kind: ScaleKind::FromZero,
            ticks: Vec::new(),
            is_slanted: false,
            shared: None,
        }
    }

    pub(crate) fn at(self, ticks: impl IntoIterator<Item = f64>) -> Self {
        ChartAxis { ticks: ticks.into_iter().map(|v| (v, label(v))).collect(), ..self }
    }

    fn scale(&self, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let values = values.chain(self.shared.into_iter().flat_map(|(low, high)| [low, high]));
        match self.scale_kind {
            ScaleKind::Log => Scale::log(values, from, to),
            ScaleKind::FromZero => Scale::linear(0.0, values.fold(0.0, f64::max), from, to),
            ScaleKind::Places(places) => Scale::linear(0.5, places as f64 + 0.5, from, to),
        }
    }

    /// Draws the label of a tick.
    fn named(&self, at: f64, bottom: f64, label: &str) -> Markup {
        let (x, y) = (n(at + 4.0), n(bottom + 14.0));
        html! {
            @if self.is_slanted { text class="tick" text-anchor="end" x=(x) y=(y) transform=(format!("rotate(-45 {x} {y})")) { (label) } }
            @else { (text("tick", "middle", at, bottom + 17.0, label)) }
        }
    }

    fn ticks(&self, scale: &Scale, wanted: usize) -> Vec<(f64, String)> {
        if self.ticks.is_empty() {
            scale.ticks(wanted).into_iter().map(|v| (v, label(v))).collect()
        } else {
            self.ticks.clone()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MarkerShape {
    #[default]
    None,
    Round,
    Square,
}

/// A point of a series: its position, the ends of its interval, and the text that is shown while the pointer is on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChartPoint {
    pub(crate) at: (f64, f64),
    pub(crate) ends: Option<(f64, f64)>,
    pub(crate) tooltip: String,
    /// Outcome of the step that the point shows. The outcome's marker replaces that of the series.
    pub(crate) outcome: Option<StepOutcome>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ChartSeries {
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) line: Vec<(f64, f64)>,
    /// True if the line is drawn in steps: each value holds until the next.
    pub(crate) is_level: bool,
    pub(crate) mark: MarkerShape,
    pub(crate) points: Vec<ChartPoint>,
    /// Intervals along the line, each as (position, low end, high end).
    pub(crate) band: Vec<(f64, f64, f64)>,
    /// Single values, as (position, value), drawn as small dots around the line.
    pub(crate) cloud: Vec<(f64, f64)>,
}

#[derive(Debug)]
pub(crate) struct LineChart {
    pub(crate) name: String,
    pub(crate) title: &'static str,
    pub(crate) description: String,
    pub(crate) caption: Markup,
    pub(crate) size: ChartSize,
    pub(crate) x: ChartAxis,
    pub(crate) y: ChartAxis,
    pub(crate) series: Vec<ChartSeries>,
    pub(crate) uprights: Vec<f64>,
    /// Events as (position, text), marked at the bottom of the plot.
    pub(crate) events: Vec<(f64, String)>,
}

impl LineChart {
    /// Draws the chart. Returns `None` if no series has two points.
    pub(crate) fn figure(&self) -> Option<Markup> {
        let places = || {
            let of = |s: &'_ ChartSeries| {
                s.points
                    .iter()
                    .map(|p| p.at)
                    .chain(s.line.iter().copied())
                    .chain(s.cloud.clone())
                    .collect::<Vec<_>>()
            };
            self.series.iter().flat_map(of)
        };
        if !self.series.iter().any(|s| s.line.len().max(s.points.len()) > 1) {
            return None;
        }
        let ((left, right), bottom) = (self.size.across(), self.size.bottom);
        let foot = FOOT + if self.x.is_slanted { SLANTED } else { 0.0 };
        let x = self.x.scale(places().map(|p| p.0), left, right);
        let y = self.y.scale(places().map(|p| p.1), bottom, TOP);
        let frame = ChartFrame {
            name: &self.name,
            title: self.title,
            description: self.description.clone(),
            caption: self.caption.clone(),
            shape: ChartShape::Fixed(self.size.width, bottom + foot),
            points: self.series.iter().map(|s| s.points.len().max(s.line.len())).sum(),
        };
        let ends: Vec<f64> = self.series.iter().map(|s| s.end().map_or(bottom, |end| y.at(end.1))).collect();
        let named = apart(&ends, TOP, bottom);
        let upright = |at: f64, class| line(class, x.at(at), TOP, x.at(at), bottom);
        Some(frame.figure(&html! {
            (text("axis", "start", 0.0, TOP - 22.0, &self.y.title))
            @for &at in &self.uprights { (upright(at, "size-step")) }
            @for (value, label) in self.x.ticks(&x, 7) { (upright(value, "grid")) (self.x.named(x.at(value), bottom, &label)) }
            @for (value, label) in self.y.ticks(&y, 7) {
                (line("grid", left, y.at(value), right, y.at(value)))
                (text("tick", "end", left - 8.0, y.at(value) + 4.0, &label))
            }
            (text("axis", "middle", f64::midpoint(left, right), bottom + foot - 12.0, &self.x.title))
            @for (series, named) in self.series.iter().zip(named) { (series.draw(&x, &y, right + 10.0, named + 4.0)) }
            @for (at, event) in &self.events {
                path class="retransmit" d=(format!("M{} {}l-5 9h10z", n(x.at(*at)), n(bottom - 9.0))) { title { (event) } }
            }
        }))
    }
}

impl ChartSeries {
    fn end(&self) -> Option<(f64, f64)> {
        self.points.last().map(|p| p.at).or_else(|| self.line.last().copied())
    }

    /// Draws the series, with its name at the position (`right`, `named`).
    fn draw(&self, x: &Scale, y: &Scale, right: f64, named: f64) -> Markup {
        html! {
            g class=(self.class) {
                @if self.band.len() > 1 { path class="ribbon" d=(self.ribbon(x, y)) {} }
                @for at in &self.cloud { circle class="cloud" cx=(n(x.at(at.0))) cy=(n(y.at(at.1))) r="2" {} }
                @if self.line.len() > 1 { path class="curve" d=(self.path(x, y)) { title { (self.name) } } }
                @for point in &self.points {
                    @let (x, top) = (x.at(point.at.0), y.at(point.at.1));
                    g class=[point.outcome.map(|outcome| outcome.labels().class)] {
                        @if let Some((low, high)) = point.ends { (line("whisker", x, y.at(low), x, y.at(high))) }
                        @if let Some(outcome) = point.outcome { title { (point.tooltip) } (marker(outcome, x, top)) }
                        @else { (dot(self.mark, x, top, &point.tooltip)) }
                    }
                }
                (text("series-name", "start", right, named, &self.name))
            }
        }
    }

    /// Returns the outline of the band: along the high ends, and back along the low ends.
    fn ribbon(&self, x: &Scale, y: &Scale) -> String {
        let there = self.band.iter().map(|(at, _, high)| (*at, *high));
        let back = self.band.iter().rev().map(|(at, low, _)| (*at, *low));
        let places: Vec<String> =
            there.chain(back).map(|(a, b)| format!("{} {}", n(x.at(a)), n(y.at(b)))).collect();
        format!("M{}Z", places.join("L"))
    }

    fn path(&self, x: &Scale, y: &Scale) -> String {
        let mut path = String::new();
        for (index, &(a, b)) in self.line.iter().enumerate() {
            let (a, b) = (n(x.at(a)), n(y.at(b)));
            path += &match (index, self.is_level) {
                (0, _) => format!("M{a} {b}"),
                (_, true) => format!("H{a}V{b}"),
                (_, false) => format!("L{a} {b}"),
            };
        }
        path
    }
}

fn dot(mark: MarkerShape, x: f64, y: f64, tooltip: &str) -> Markup {
    match mark {
        MarkerShape::None => html! {},
        MarkerShape::Round => {
            html! { circle class="dot" cx=(n(x)) cy=(n(y)) r="3.5" { title { (tooltip) } } }
        }
        MarkerShape::Square => {
            html! { rect class="dot" x=(n(x - 3.5)) y=(n(y - 3.5)) width="7" height="7" { title { (tooltip) } } }
        }
    }
}

/// Returns vertical positions for names, each near the end of its line (`ends`), without overlap, from `top` to
/// `bottom`.
pub(crate) fn apart(ends: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|a, b| ends[*a].total_cmp(&ends[*b]));
    let mut places = vec![0.0; ends.len()];
    let mut free = top;
    for (rank, index) in order.into_iter().enumerate() {
        let below = APART * (ends.len() - 1 - rank) as f64;
        places[index] = ends[index].max(free).min(bottom - below);
        free = places[index] + APART;
    }
    places
}
