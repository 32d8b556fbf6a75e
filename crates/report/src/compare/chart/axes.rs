//! The axes of the trade-offs: where a protocol stands on each, best at the top.

use landspeed_record::ContestFigures;

use super::super::words::{hundredths, sane};
use crate::words::number;

/// First and last axis: names stand at both ends of the lines.
const LEFT: f64 = 122.0;
const RIGHT: f64 = 790.0;
pub(super) const TOP: f64 = 78.0;
pub(super) const BOTTOM: f64 = 376.0;

/// An axis: what it is of, and where a protocol stands on it.
pub(super) struct Axis {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    more_is_better: bool,
    of: fn(&ContestFigures) -> Option<f64>,
    pub(super) say: fn(f64) -> String,
    kind: Kind,
}

/// How figures lie on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Even,
    /// By their logarithms: they span orders of magnitude.
    Log,
    /// Evenly, and one without a figure is worse than all.
    OrNever,
}

impl Axis {
    const fn of(
        (title, unit): (&'static str, &'static str),
        more_is_better: bool,
        of: fn(&ContestFigures) -> Option<f64>,
        say: fn(f64) -> String,
    ) -> Self {
        Axis { title, unit, more_is_better, of, say, kind: Kind::Even }
    }
}

const AXES: [Axis; 7] = [
    Axis::of(("throughput", "Mb/s"), true, |p| Some(p.mean_bps.0 / 1e6), number),
    Axis::of(("stability", "S"), false, |p| p.stability, hundredths),
    Axis::of(("fairness", "least F"), true, |p| p.fairness_min, hundredths),
    Axis::of(("effect on RTT", "std, ms"), false, |p| p.rtt_sd_s.map(|s| s * 1e3), number),
    Axis { kind: Kind::OrNever, ..Axis::of(("convergence", "s"), false, |p| p.convergence_s, number) },
    Axis {
        kind: Kind::Log,
        ..Axis::of(
            ("resent", "%, log"),
            false,
            |p| p.resent_share.map(|share| share * 100.0),
            |p| if p == 0.0 { "0".to_owned() } else { number(p) },
        )
    },
    Axis::of(("processor", "cycles/bit"), false, |p| p.cycles_per_bit, number),
];

/// What is less than this of the worst is drawn as this on an axis of logarithms, zero among it.
const LEAST_OF_WORST: f64 = 1e-4;
/// Share of an axis that figures lie on, where some protocols have none and stand at its end.
const BEFORE_NEVER: f64 = 0.8;

pub(super) struct Laid {
    pub(super) axis: &'static Axis,
    pub(super) x: f64,
    pub(super) best: f64,
    pub(super) worst: f64,
    /// Where the worst figure lies on the axis, 1 is its end.
    pub(super) reach: f64,
}

impl Laid {
    /// The axis for these protocols, or nothing where fewer than two can be told apart on it.
    fn of(axis: &'static Axis, protocols: &[&ContestFigures]) -> Option<Self> {
        let values: Vec<f64> = protocols.iter().filter_map(|p| sane((axis.of)(p))).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        let (best, worst) = if axis.more_is_better { (most, least) } else { (least, most) };
        let never = axis.kind == Kind::OrNever && values.len() < protocols.len();
        let reach = if never { BEFORE_NEVER } else { 1.0 };
        (values.len() > 1 || never).then_some(Laid { axis, x: 0.0, best, worst, reach })
    }

    /// Where a protocol stands; `None` where it has no such figure.
    pub(super) fn at(&self, protocol: &ContestFigures) -> Option<(f64, f64)> {
        let share = match sane((self.axis.of)(protocol)) {
            Some(value) => self.share(value).clamp(0.0, 1.0) * self.reach,
            None if self.reach < 1.0 => 1.0,
            None => return None,
        };
        Some((self.x, self.y(share)))
    }

    pub(super) fn y(&self, share: f64) -> f64 {
        TOP + share * (BOTTOM - TOP)
    }

    /// From the best, 0, to the worst, 1.
    fn share(&self, value: f64) -> f64 {
        let least = self.worst * LEAST_OF_WORST;
        let on = |v: f64| if self.axis.kind == Kind::Log && least > 0.0 { v.max(least).ln() } else { v };
        let apart = on(self.worst) - on(self.best);
        if apart == 0.0 { 0.0 } else { (on(value) - on(self.best)) / apart }
    }
}

/// Axes on which protocols can be told apart, at equal distances.
pub(super) fn laid(protocols: &[&ContestFigures]) -> Vec<Laid> {
    let mut axes: Vec<Laid> = AXES.iter().filter_map(|axis| Laid::of(axis, protocols)).collect();
    let step = (RIGHT - LEFT) / (axes.len().max(2) - 1) as f64;
    for (place, laid) in axes.iter_mut().enumerate() {
        laid.x = LEFT + step * place as f64;
    }
    axes
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
    fn nothing_has_a_place_among_logarithms() {
        let of = |share| ContestFigures { resent_share: Some(share), ..protocol("a", 0.1, None) };
        let all = [of(0.0), of(0.001), of(0.1)];
        let laid = laid(&all.each_ref());
        let y: Vec<f64> = all.iter().map(|p| laid[2].at(p).unwrap().1).collect();
        assert!(y[0] == TOP && y[0] < y[1] && y[2] == BOTTOM, "{y:?}");
    }

    #[test]
    fn who_never_converges_is_worse_than_who_is_slow() {
        let quick = ContestFigures { convergence_s: Some(3.0), ..protocol("a", 0.1, None) };
        let slow = ContestFigures { convergence_s: Some(9.0), ..protocol("b", 0.1, None) };
        let never = protocol("c", 0.1, None);
        let laid = laid(&[&quick, &slow, &never]);
        let y: Vec<f64> = [quick, slow, never].iter().map(|p| laid[2].at(p).unwrap().1).collect();
        assert!(y[0] == TOP && y[0] < y[1] && y[1] < y[2] && y[2] == BOTTOM, "{y:?}");
    }
}
