//! The rate of delivery over time, and the level that it reaches and does not exceed.

use landspeed_stats::quantile;

use super::end::EndView;
use super::flow::{EndRole, FlowView};
use crate::verdict::thresholds::{
    CLOCKED, FEW_BINS, MOST_BINS, NEAR_LEVEL, PACKETS_PER_BIN, SAME_RATE, SHORTEST_BIN,
};

/// The number of bins over which a rate is averaged. It is large enough that a late sample or a burst has little
/// weight.
const WINDOW: usize = 4;

/// The upper level of the rate of delivery, in bit/s of payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DeliveryLevel {
    pub(crate) rate: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The share of the bins whose rate is near the level.
    pub(crate) steady: f64,
    /// True if a clock, such as that of a token bucket, sets the rate: nearly all bins have the same one.
    pub(crate) is_clocked: bool,
}

impl DeliveryLevel {
    /// Returns the level of all flows of an end; `None` if there are too few samples, or too few packets.
    pub(super) fn of(end: &EndView<'_>, rtt_s: f64) -> Option<Self> {
        let curve = Curve::of(end)?;
        let bins = curve.rates(curve.width(end, rtt_s)?);
        let windows: Vec<f64> = bins.windows(WINDOW).map(|w| w.iter().sum::<f64>() / WINDOW as f64).collect();
        let top = quantile(&windows, 0.9).filter(|top| *top > 0.0)?;
        let near = |rate: &f64| (rate - top).abs() <= NEAR_LEVEL * top;
        let close: Vec<f64> = windows.iter().copied().filter(near).collect();
        let rate = close.iter().sum::<f64>() / close.len().max(1) as f64;
        // A bin holds whole packets.
        let grain = 1.0 / PACKETS_PER_BIN;
        let steady = bins.iter().filter(|rate| near(rate)).count() as f64 / bins.len() as f64;
        let (low, high) = (rate * (1.0 - grain), rate.max(top) * (1.0 + grain));
        Some(DeliveryLevel { rate, low, high, steady, is_clocked: is_clocked(&bins) })
    }
}

fn is_clocked(bins: &[f64]) -> bool {
    let Some(middle) = quantile(bins, 0.5).filter(|middle| *middle > 0.0) else { return false };
    let same = bins.iter().filter(|rate| (*rate - middle).abs() <= SAME_RATE * middle).count();
    same as f64 >= CLOCKED * bins.len() as f64
}

/// The payload that all flows of an end had delivered by each time, as points of (seconds, bytes).
struct Curve(Vec<(f64, f64)>);

impl Curve {
    fn of(end: &EndView<'_>) -> Option<Self> {
        let flows: Vec<Vec<(f64, f64)>> = end.flows.iter().map(|flow| delivered(flow, end.role)).collect();
        let moments = flows.first().filter(|points| points.len() > FEW_BINS)?;
        let all = |second: f64| flows.iter().map(|points| at(points, second)).sum::<f64>();
        Some(Curve(moments.iter().map(|(second, _)| (*second, all(*second))).collect()))
    }

    fn span(&self) -> f64 {
        let second = |point: Option<&(f64, f64)>| point.map_or(0.0, |point| point.0);
        second(self.0.last()) - second(self.0.first())
    }

    /// Returns the width of a bin in seconds; `None` if too few bins fit. A bin takes at least 32 packets of the size
    /// that the link carries, two round trips, and the time between two samples.
    fn width(&self, end: &EndView<'_>, rtt_s: f64) -> Option<f64> {
        let span = self.span();
        let moved = self.0.last()?.1 - self.0.first()?.1;
        let packet = end.link_packet().max(1.0);
        let packets = PACKETS_PER_BIN * packet * span / moved.max(1.0);
        let between = span / (self.0.len() - 1) as f64;
        let width =
            [SHORTEST_BIN, 2.0 * rtt_s, packets, between, span / MOST_BINS].into_iter().fold(0.0, f64::max);
        (width.is_finite() && width > 0.0 && span / width >= FEW_BINS as f64).then_some(width)
    }

    /// Returns the rate in each bin.
    fn rates(&self, width: f64) -> Vec<f64> {
        let start = self.0.first().map_or(0.0, |point| point.0);
        let bins = (self.span() / width) as usize;
        let edge = |bin: usize| at(&self.0, start + bin as f64 * width);
        (0..bins).map(|bin| (edge(bin + 1) - edge(bin)).max(0.0) * 8.0 / width).collect()
    }
}

fn delivered(flow: &FlowView<'_>, role: EndRole) -> Vec<(f64, f64)> {
    let bytes = |t: &landspeed_record::TcpState| match role {
        EndRole::Sender => t.acked_bytes.0,
        EndRole::Receiver => t.received_bytes.0,
    };
    let samples = flow.watch.samples.iter();
    let mut points: Vec<(f64, f64)> = samples
        .filter_map(|sample| Some((sample.at_ns.as_secs_f64(), bytes(sample.tcp.as_deref()?) as f64)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Returns the value of a curve at the time `second`, interpolated linearly between two points. Before the first point
/// and after the last one it is constant.
fn at(points: &[(f64, f64)], second: f64) -> f64 {
    let after = points.partition_point(|point| point.0 <= second);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (Some((t, value)), Some((next, end))) if *next > t => {
            value + (end - value) * (second - t) / (next - t)
        }
        (Some((_, value)), _) => value,
        (None, Some((_, value))) => *value,
        (None, None) => 0.0,
    }
}

/// Returns the mean number of bytes in flight, all flows of a sender together. It is the mean because of Little's law.
pub(super) fn in_flight(end: &EndView<'_>) -> f64 {
    let of = |flow: &FlowView<'_>| {
        let mut states = 0.0;
        let sum: f64 = flow
            .states()
            .inspect(|_| states += 1.0)
            .map(|t| f64::from(t.unacked_segments) * t.send_mss_bytes.0 as f64)
            .sum();
        if states > 0.0 { sum / states } else { 0.0 }
    };
    end.flows.iter().map(of).sum()
}

/// Returns the mean number of bytes that had arrived and whose acknowledgements had not, all flows together. `None` if the
/// ends were not watched at the same times. The hosts' samples have no common clock: an error of a second in their
/// start is an error of one second's payload here.
pub(super) fn unacknowledged(sender: &EndView<'_>, receiver: &EndView<'_>) -> Option<f64> {
    let (acked, arrived) = (Curve::of(sender)?, Curve::of(receiver)?);
    let (from, to) = (arrived.0.first()?.0, arrived.0.last()?.0);
    let both = acked.0.iter().filter(|(second, _)| (from..=to).contains(second));
    let waiting: Vec<f64> = both.map(|(second, bytes)| at(&arrived.0, *second) - bytes).collect();
    (!waiting.is_empty()).then(|| waiting.iter().sum::<f64>() / waiting.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_read_between_its_points_and_ends_at_its_ends() {
        let points = [(0.0, 0.0), (1.0, 10.0), (3.0, 10.0)];
        assert_eq!([-1.0, 0.5, 2.0, 9.0].map(|second| at(&points, second)), [0.0, 5.0, 10.0, 10.0]);
        assert_eq!(Curve(points.to_vec()).rates(0.5), [80.0, 80.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
