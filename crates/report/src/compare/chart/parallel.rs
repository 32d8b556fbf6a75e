//! The trade-offs: a line a protocol over parallel axes, best at the top of each (RFC 5166 asks for them side by side).

use landspeed_record::{CompareReport, ContestFigures};
use maud::{Markup, html};

use super::super::words::{self, hundredths, sane};
use crate::chart::frame::{Frame, Shape, line, n, text};
use crate::words::number;

const WIDTH: f64 = 912.0;
const HEIGHT: f64 = 430.0;
/// First and last axis: names stand at both ends of the lines.
const LEFT: f64 = 110.0;
const RIGHT: f64 = 802.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 376.0;
/// Least distance between two names.
const APART: f64 = 17.0;
/// Protocols that are drawn, at most; tints and dashes by which they are told apart.
const DRAWN: usize = 16;
const TINTS: usize = 8;

/// An axis: what it is of, and where a protocol stands on it.
struct Axis {
    title: &'static str,
    unit: &'static str,
    more_is_better: bool,
    of: fn(&ContestFigures) -> Option<f64>,
    say: fn(f64) -> String,
}

const AXES: [Axis; 7] = [
    Axis {
        title: "throughput",
        unit: "Mb/s",
        more_is_better: true,
        of: |p| Some(p.mean_bps.0 / 1e6),
        say: number,
    },
    Axis { title: "stability", unit: "S", more_is_better: false, of: |p| p.stability, say: hundredths },
    Axis {
        title: "fairness",
        unit: "least F",
        more_is_better: true,
        of: |p| p.fairness_min,
        say: hundredths,
    },
    Axis {
        title: "effect on RTT",
        unit: "std, ms",
        more_is_better: false,
        of: |p| p.rtt_sd_s.map(|s| s * 1e3),
        say: number,
    },
    Axis { title: "convergence", unit: "s", more_is_better: false, of: |p| p.convergence_s, say: number },
    Axis {
        title: "resent",
        unit: "%",
        more_is_better: false,
        of: |p| p.resent_share.map(|share| share * 100.0),
        say: number,
    },
    Axis {
        title: "processor",
        unit: "cycles/bit",
        more_is_better: false,
        of: |p| p.cycles_per_bit,
        say: number,
    },
];

/// An axis with its ends.
struct Laid {
    axis: &'static Axis,
    x: f64,
    best: f64,
    worst: f64,
}

impl Laid {
    /// Where a protocol stands; `None` where it has no such figure.
    fn at(&self, protocol: &ContestFigures) -> Option<(f64, f64)> {
        let value = sane((self.axis.of)(protocol))?;
        let apart = self.worst - self.best;
        let share = if apart == 0.0 { 0.0 } else { (value - self.best) / apart };
        Some((self.x, TOP + share.clamp(0.0, 1.0) * (BOTTOM - TOP)))
    }
}

/// The chart, or nothing where fewer than two protocols have figures.
pub(crate) fn parallel(report: &CompareReport) -> Option<Markup> {
    let protocols: Vec<&ContestFigures> =
        report.protocols.iter().filter(|p| p.runs > 0).take(DRAWN).collect();
    let axes = laid(&protocols);
    if protocols.len() < 2 || axes.len() < 2 {
        return None;
    }
    let titles: Vec<&str> = axes.iter().map(|laid| laid.axis.title).collect();
    let frame = Frame {
        name: "trade-offs",
        title: "The trade-offs, best at the top",
        description: format!("{} protocols over the axes {}.", protocols.len(), titles.join(", ")),
        caption: html! { p { "The best figure of the study is at the top of each axis and the worst at its bottom, whatever lies between "
        "them: an axis says who is better and not how much it matters. A line has a gap where a protocol has no such figure." } },
        shape: Shape::Fixed(WIDTH, HEIGHT),
        points: protocols.len(),
    };
    Some(frame.figure(&html! {
        @for laid in &axes { (axis(laid)) }
        (lines(&protocols, &axes))
    }))
}

/// Axes that at least two protocols have a figure of, evenly apart.
fn laid(protocols: &[&ContestFigures]) -> Vec<Laid> {
    let mut axes: Vec<Laid> = AXES
        .iter()
        .filter_map(|axis| {
            let values: Vec<f64> = protocols.iter().filter_map(|p| sane((axis.of)(p))).collect();
            let least = values.iter().copied().reduce(f64::min)?;
            let most = values.iter().copied().reduce(f64::max)?;
            let (best, worst) = if axis.more_is_better { (most, least) } else { (least, most) };
            (values.len() > 1).then_some(Laid { axis, x: 0.0, best, worst })
        })
        .collect();
    let step = (RIGHT - LEFT) / (axes.len().max(2) - 1) as f64;
    for (place, laid) in axes.iter_mut().enumerate() {
        laid.x = LEFT + step * place as f64;
    }
    axes
}

fn axis(laid: &Laid) -> Markup {
    let say = laid.axis.say;
    html! {
        (line("upright-axis", (laid.x, TOP), (laid.x, BOTTOM)))
        (text("name", "middle", (laid.x, TOP - 46.0), laid.axis.title))
        (text("tick", "middle", (laid.x, TOP - 30.0), laid.axis.unit))
        (text("tick", "middle", (laid.x, TOP - 10.0), &say(laid.best)))
        (text("tick", "middle", (laid.x, BOTTOM + 18.0), &say(laid.worst)))
    }
}

fn lines(protocols: &[&ContestFigures], axes: &[Laid]) -> Markup {
    let ends = |laid: Option<&Laid>| -> Vec<Option<f64>> {
        let places: Vec<Option<f64>> =
            protocols.iter().map(|p| laid.and_then(|laid| laid.at(p)).map(|at| at.1)).collect();
        apart(&places)
    };
    let (left, right) = (ends(axes.first()), ends(axes.last()));
    html! {
        @for (index, protocol) in protocols.iter().enumerate() {
            @let name = words::name(&protocol.protocol);
            g class={ "protocol tint-" (index % TINTS) @if index >= TINTS { " dashed" } } {
                path class="line" d=(path(protocol, axes)) { title { (name) } }
                @for (x, y) in axes.iter().filter_map(|laid| laid.at(protocol)) {
                    circle class="dot" cx=(n(x)) cy=(n(y)) r="3.2" { title { (name) } }
                }
                @if let Some(y) = left[index] { (text("series-name", "end", (LEFT - 12.0, y + 4.0), &name)) }
                @if let Some(y) = right[index] { (text("series-name", "start", (RIGHT + 12.0, y + 4.0), &name)) }
            }
        }
    }
}

/// From axis to axis, with a gap where a figure is missing.
fn path(protocol: &ContestFigures, axes: &[Laid]) -> String {
    let mut path = String::new();
    let mut is_down = false;
    for laid in axes {
        let place = laid.at(protocol);
        if let Some((x, y)) = place {
            path += &format!("{}{} {}", if is_down { "L" } else { "M" }, n(x), n(y));
        }
        is_down = place.is_some();
    }
    path
}

/// Places of names: near the ends of their lines, but none on another.
fn apart(places: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        places.iter().enumerate().filter_map(|(i, y)| Some((i, (*y)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut found = vec![None; places.len()];
    let mut free = TOP - 4.0;
    let count = order.len();
    for (rank, (index, y)) in order.into_iter().enumerate() {
        // The last ones need room below them too.
        let lowest = BOTTOM + 8.0 - APART * (count - 1 - rank) as f64;
        let at = y.max(free).min(lowest.max(free));
        found[index] = Some(at);
        free = at + APART;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(name: &str, stability: f64, rtt_sd_s: Option<f64>) -> ContestFigures {
        ContestFigures {
            protocol: name.into(),
            stability: Some(stability),
            rtt_sd_s,
            runs: 1,
            ..ContestFigures::default()
        }
    }

    #[test]
    fn the_best_is_at_the_top_whichever_way_the_axis_goes() {
        let (steady, shaky) = (protocol("a", 0.1, None), protocol("b", 0.9, Some(1.0)));
        let axes = laid(&[&steady, &shaky]);
        // Throughput is known of both, and the round trip of one only.
        assert_eq!(axes.iter().map(|laid| laid.axis.title).collect::<Vec<_>>(), ["throughput", "stability"]);
        assert_eq!((axes[1].at(&steady).unwrap().1, axes[1].at(&shaky).unwrap().1), (TOP, BOTTOM));
        assert_eq!(axes[0].at(&steady), axes[0].at(&shaky), "equal figures are all best");
    }

    #[test]
    fn names_do_not_lie_on_each_other() {
        let places: Vec<Option<f64>> = (0..10).map(|n| (n != 4).then_some(BOTTOM)).collect();
        let found = apart(&places);
        let mut all: Vec<f64> = found.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
        assert!(
            found[4].is_none() && all.windows(2).all(|pair| pair[1] - pair[0] >= APART - 1e-9),
            "{all:?}"
        );
        assert!(all.last().is_some_and(|last| *last <= BOTTOM + 9.0), "{all:?}");
    }
}
