//! The chart of trade-offs: one line per protocol over parallel axes, with the best value at the top of each (RFC
//! 5166 asks for metrics side by side).

use landspeed_record::{CompareReport, ContestFigures};
use maud::{Markup, html};

use super::words;
use crate::chart::frame::{ChartFrame, ChartShape, line, n, text};
use crate::chart::lines::apart;
use crate::safe;
use crate::words::number;

const WIDTH: f64 = 912.0;
const HEIGHT: f64 = 430.0;
/// Horizontal positions of the first and the last axis. Names of protocols are right of the last.
const ACROSS: (f64, f64) = (56.0, 790.0);
const TOP: f64 = 78.0;
const BOTTOM: f64 = 376.0;
/// Largest number of protocols that are drawn. The first eight differ by tint; the others have the same tints, dashed.
const DRAWN: usize = 16;
const TINTS: usize = 8;
/// Least value on a logarithmic axis, as a share of the worst value. Smaller values, including zero, are drawn at the
/// least value.
const LEAST_OF_WORST: f64 = 1e-4;
/// Share of an axis's length that is for protocols with the axis's figure, if other protocols lack it. The other
/// protocols are drawn at the end of the axis.
const BEFORE_NEVER: f64 = 0.8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AxisDirection {
    More,
    Less,
    /// Less is better, on a logarithmic axis: figures span orders of magnitude.
    LessLog,
    /// Less is better. A protocol without the figure, such as one that did not converge in time, is worst.
    LessOrNever,
}

/// An axis: its name, its unit, which values are better, and the function that returns its figure.
type TradeoffAxis = (&'static str, &'static str, AxisDirection, fn(&ContestFigures) -> Option<f64>);

const AXES: [TradeoffAxis; 7] = [
    ("throughput", "Mb/s", AxisDirection::More, |p| Some(p.mean_bps.0 / 1e6)),
    ("stability", "S", AxisDirection::Less, |p| p.stability),
    ("fairness", "least F", AxisDirection::More, |p| p.fairness_min),
    ("effect on RTT", "std, ms", AxisDirection::Less, |p| p.rtt_sd_s.map(|s| s * 1e3)),
    ("convergence", "s", AxisDirection::LessOrNever, |p| p.convergence_s),
    ("resent", "%, log", AxisDirection::LessLog, |p| p.resent_share.map(|share| share * 100.0)),
    ("processor", "cycles/bit", AxisDirection::Less, |p| p.cycles_per_bit),
];

/// An axis on which at least two protocols have a position.
struct AxisLayout {
    axis: TradeoffAxis,
    best: f64,
    worst: f64,
    /// Position of each protocol, from the best (0) to the worst (1).
    shares: Vec<Option<f64>>,
}

impl AxisLayout {
    fn of(axis: TradeoffAxis, protocols: &[&ContestFigures]) -> Option<Self> {
        let values: Vec<Option<f64>> = protocols.iter().map(|p| words::sane(axis.3(p))).collect();
        let least = values.iter().flatten().copied().reduce(f64::min)?;
        let most = values.iter().flatten().copied().reduce(f64::max)?;
        let (best, worst) = if axis.2 == AxisDirection::More { (most, least) } else { (least, most) };
        let known = values.iter().flatten().count();
        let never = (axis.2 == AxisDirection::LessOrNever && known < values.len()).then_some(1.0);
        let reach = never.map_or(1.0, |_| BEFORE_NEVER);
        let floor = worst * LEAST_OF_WORST;
        let on = |v: f64| if axis.2 == AxisDirection::LessLog && floor > 0.0 { v.max(floor).ln() } else { v };
        let apart = on(worst) - on(best);
        let share = |v: f64| if apart == 0.0 { 0.0 } else { (on(v) - on(best)) / apart * reach };
        let shares = values.into_iter().map(|v| v.map(share).or(never)).collect();
        (known > 1 || never.is_some()).then_some(AxisLayout { axis, best, worst, shares })
    }

    fn has_never(&self) -> bool {
        self.axis.2 == AxisDirection::LessOrNever
            && self.shares.iter().flatten().any(|share| *share > BEFORE_NEVER)
    }

    fn draw(&self, x: f64) -> Markup {
        let (name, unit, ..) = self.axis;
        let (best, worst) = (said(self.best), said(self.worst));
        html! {
            (line("upright-axis", x, TOP, x, BOTTOM))
            (text("name", "middle", x, TOP - 46.0, name))
            (text("tick", "middle", x, TOP - 30.0, unit))
            (text("tick", "middle", x, TOP - 10.0, &best))
            @if self.has_never() {
                (text("tick", "start", x + 7.0, down(BEFORE_NEVER) + 4.0, &worst))
                (text("tick", "middle", x, BOTTOM + 18.0, "not in time"))
            } @else {
                (text("tick", "middle", x, BOTTOM + 18.0, &worst))
            }
        }
    }
}

fn axis_layouts(protocols: &[&ContestFigures]) -> Vec<AxisLayout> {
    AXES.into_iter().filter_map(|axis| AxisLayout::of(axis, protocols)).collect()
}

fn said(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { number(value) }
}

fn down(share: f64) -> f64 {
    TOP + share * (BOTTOM - TOP)
}

/// Draws the chart. Returns `None` if fewer than two protocols or fewer than two axes have figures.
pub(super) fn chart(report: &CompareReport) -> Option<Markup> {
    let protocols: Vec<&ContestFigures> =
        report.protocols.iter().filter(|p| p.runs > 0).take(DRAWN).collect();
    let axes = axis_layouts(&protocols);
    if protocols.len() < 2 || axes.len() < 2 {
        return None;
    }
    let x = |index: usize| ACROSS.0 + (ACROSS.1 - ACROSS.0) * index as f64 / (axes.len() - 1) as f64;
    // A name is at the height of its protocol's figure on the last axis that has one.
    let lasts: Vec<f64> = (0..protocols.len())
        .map(|of| down(axes.iter().rev().find_map(|layout| layout.shares[of]).unwrap_or(1.0)))
        .collect();
    let named = apart(&lasts, TOP, BOTTOM);
    let titles: Vec<&str> = axes.iter().map(|layout| layout.axis.0).collect();
    let frame = ChartFrame {
        name: "trade-offs",
        title: "The trade-offs, best at the top",
        description: format!("{} protocols over the axes {}.", protocols.len(), titles.join(", ")),
        caption: html! { p {
            "The best figure of the study is at the top of each axis and the worst at its bottom, whatever lies between them: an "
            "axis says who is better and not how much it matters. A line has a gap where a protocol has no such figure; \"not "
            "in time\" is a protocol whose flows mostly did not come to their fair share."
        } },
        shape: ChartShape::Fixed(WIDTH, HEIGHT),
        points: protocols.len(),
    };
    Some(frame.figure(&html! {
        @for (index, layout) in axes.iter().enumerate() { (layout.draw(x(index))) }
        @for (of, protocol) in protocols.iter().enumerate() {
            @let places: Vec<Option<(f64, f64)>> = axes.iter().enumerate().map(|(i, layout)| Some((x(i), down(layout.shares[of]?)))).collect();
            g class={ "protocol tint-" (of % TINTS) @if of >= TINTS { " dashed" } } {
                title { (safe(&protocol.title)) }
                path class="line" d=(path(&places)) {}
                @for (x, y) in places.iter().flatten() { circle class="dot" cx=(n(*x)) cy=(n(*y)) r="3.2" {} }
                @if let Some((x, y)) = places.iter().flatten().last() {
                    (line("leader", x + 5.0, *y, ACROSS.1 + 20.0, named[of]))
                    (text("series-name", "start", ACROSS.1 + 24.0, named[of] + 4.0, &safe(&protocol.title)))
                }
            }
        }
    }))
}

/// Returns the SVG path of a protocol's line from axis to axis, with a gap where a figure is missing.
fn path(places: &[Option<(f64, f64)>]) -> String {
    let runs = places.split(Option::is_none).map(|run| {
        let run: Vec<String> = run.iter().flatten().map(|(x, y)| format!("{} {}", n(*x), n(*y))).collect();
        if run.is_empty() { String::new() } else { format!("M{}", run.join("L")) }
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(of: impl FnOnce(&mut ContestFigures)) -> ContestFigures {
        let mut figures = ContestFigures { runs: 1, ..ContestFigures::default() };
        of(&mut figures);
        figures
    }

    #[test]
    fn the_best_is_at_the_top_of_each_axis() {
        let all = [
            protocol(|p| (p.stability, p.resent_share, p.convergence_s) = (Some(0.1), Some(0.0), Some(3.0))),
            protocol(|p| {
                (p.stability, p.resent_share, p.convergence_s) = (Some(0.5), Some(0.001), Some(9.0))
            }),
            protocol(|p| (p.stability, p.resent_share, p.rtt_sd_s) = (Some(0.9), Some(0.1), Some(1.0))),
        ];
        let layout: Vec<_> =
            axis_layouts(&all.each_ref()).into_iter().map(|layout| (layout.axis.0, layout.shares)).collect();
        let names: Vec<_> = layout.iter().map(|layout| layout.0).collect();
        assert_eq!(
            names,
            ["throughput", "stability", "convergence", "resent"],
            "the round trip is known of one only"
        );
        assert_eq!(layout[0].1, vec![Some(0.0); 3], "equal figures are all best");
        assert_eq!(layout[1].1, [Some(0.0), Some(0.5), Some(1.0)]);
        assert_eq!(layout[2].1, [Some(0.0), Some(BEFORE_NEVER), Some(1.0)], "never is worse than slow");
        assert_eq!(
            (layout[3].1[0], layout[3].1[2]),
            (Some(0.0), Some(1.0)),
            "zero has a place among logarithms"
        );
        assert!((0.1..0.9).contains(&layout[3].1[1].unwrap()), "{:?}", layout[3]);
    }
}
