//! The figures by which protocols are ordered.

use landspeed_record::MeanInterval;
use landspeed_record::units::BitRate;

use super::run::RunFigures;

/// A figure of a run by which protocols are ordered.
#[derive(Debug)]
pub(super) struct ProtocolMetric {
    pub(super) name: &'static str,
    pub(super) more_is_better: bool,
    pub(super) of: fn(&RunFigures) -> Option<f64>,
    pub(super) say: fn(f64) -> String,
}

pub(super) const THROUGHPUT: ProtocolMetric = ProtocolMetric {
    name: "throughput",
    more_is_better: true,
    of: |figures| Some(figures.mean_bps.0),
    say: rate,
};

pub(super) const STABILITY: ProtocolMetric =
    ProtocolMetric { name: "stability", more_is_better: false, of: |figures| figures.stability, say: plain };

pub(super) const FAIRNESS: ProtocolMetric =
    ProtocolMetric { name: "fairness", more_is_better: true, of: |figures| figures.fairness_min, say: plain };

pub(super) const ROUND_TRIP: ProtocolMetric = ProtocolMetric {
    name: "effect on RTT",
    more_is_better: false,
    of: |figures| figures.rtt_sd_s,
    say: milliseconds,
};

pub(super) const CONVERGENCE: ProtocolMetric = ProtocolMetric {
    name: "convergence",
    more_is_better: false,
    of: RunFigures::median_convergence_s,
    say: |s| format!("{s:.1} s"),
};

pub(super) const COST: ProtocolMetric = ProtocolMetric {
    name: "processor cost",
    more_is_better: false,
    of: |figures| figures.cycles_per_bit,
    say: |cost| format!("{cost:.3} cycles/bit"),
};

/// The metrics of the rankings, in the order of the paper's columns.
pub(super) const RANKED: [&ProtocolMetric; 6] =
    [&THROUGHPUT, &STABILITY, &FAIRNESS, &ROUND_TRIP, &CONVERGENCE, &COST];

fn plain(value: f64) -> String {
    format!("{value:.2}")
}

fn rate(bps: f64) -> String {
    let sign = if bps < 0.0 { "-" } else { "" };
    format!("{sign}{}", BitRate(bps.abs()))
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

impl ProtocolMetric {
    /// Formats an interval, such as "0.12 [0.08, 0.16]".
    pub(super) fn say_interval(&self, interval: &MeanInterval) -> String {
        let say = self.say;
        match (interval.low, interval.high) {
            (Some(low), Some(high)) => format!("{} [{}, {}]", say(interval.mean), say(low), say(high)),
            _ => say(interval.mean),
        }
    }
}
