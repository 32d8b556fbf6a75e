//! One trial of a grid.

use crate::units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GridFigure;
use crate::{DatagramCounts, EndpointOutcome, LatencyHistogram, Png, ProgramFigures, TrialFigures};

/// What ended a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum GridEndReason {
    /// Every requested block was measured.
    Blocks,
    /// Every ratio reached the requested precision.
    Precision,
    /// The next block would not have ended within the budget.
    Budget,
    /// The user stopped the grid.
    #[default]
    Stopped,
}

/// One trial of a cell. A record has all trials of a grid, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GridTrial {
    /// Number of the block, from 0.
    pub block: u32,
    /// Number of the whole plot within the block. A whole plot is one combination of values of the slow factors.
    pub plot: u32,
    /// Number of the cell (`Grid::factors` defines the order).
    pub cell: u32,
    pub at_ns: Nanos,
    /// Duration of the trial, settling included.
    pub took_ns: Nanos,
    /// Reason why the trial gave no figures; `None` if it gave them.
    pub failed: Option<String>,
    /// Outcome at host A.
    pub a: EndpointOutcome,
    /// Outcome at host B.
    pub b: EndpointOutcome,
    /// Outcomes of the further pairs of hosts, if several pairs run at once (a fan).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<[EndpointOutcome; 2]>,
    /// Goodput and cost, computed from the outcomes.
    pub figures: TrialFigures,
}

impl GridTrial {
    /// Returns a figure in its own unit. Returns `None` if the trial does not have it, or if it is not above zero,
    /// because figures are compared as ratios.
    pub fn figure(&self, figure: GridFigure) -> Option<f64> {
        let value = if self.failed.is_some() { None } else { (figure.of)(self) };
        value.filter(|value| *value > 0.0 && value.is_finite())
    }

    /// Returns `figure`, which is computed from the payload. Returns `None` for a workload that measures latency,
    /// because its bytes are not goodput.
    pub(super) fn of_payload(&self, figure: f64) -> Option<f64> {
        self.latency().is_none().then_some(figure)
    }

    /// Returns a percentile of the latency, in nanoseconds, or `None` if the trial has too few samples: ten must lie
    /// beyond a percentile above the median.
    pub(super) fn percentile(&self, share: f64) -> Option<f64> {
        Some(self.latency()?.percentile(share)?.0 as f64)
    }

    /// Returns the outcomes of both ends of each pair of hosts.
    fn pairs(&self) -> impl Iterator<Item = [&EndpointOutcome; 2]> {
        std::iter::once([&self.a, &self.b]).chain(self.others.iter().map(|[a, b]| [a, b]))
    }

    /// Returns the figures that the trial's program reported, or `None` without any.
    pub fn program(&self) -> Option<&ProgramFigures> {
        self.ends().map(|end| end.get::<ProgramFigures>()).find(|figures| !figures.all.is_empty())
    }

    /// Returns the picture that the trial's program drew, or `None` without one.
    pub fn picture(&self) -> Option<&Png> {
        self.ends().find_map(|end| end.details.find().ok()?)
    }

    /// Returns the outcomes of all ends of all pairs of hosts.
    pub fn ends_mut(&mut self) -> impl Iterator<Item = &mut EndpointOutcome> {
        [&mut self.a, &mut self.b].into_iter().chain(self.others.iter_mut().flatten())
    }

    pub(super) fn ends(&self) -> impl Iterator<Item = &EndpointOutcome> {
        self.pairs().flatten()
    }

    /// Returns the latency samples of all pairs together, or `None` without samples. All samples have the same weight,
    /// whatever their client.
    fn latency(&self) -> Option<LatencyHistogram> {
        let of_pair =
            |pair: [&EndpointOutcome; 2]| pair.into_iter().find_map(|end| end.latency.first().cloned());
        LatencyHistogram::together(self.pairs().filter_map(of_pair))
    }

    /// Returns a count of datagrams, summed over all flows and both ends.
    pub(super) fn datagrams(&self, which: fn(&DatagramCounts) -> u64) -> f64 {
        let flows = self.ends().flat_map(|end| end.get::<Vec<DatagramCounts>>());
        flows.map(|flow| which(flow) as f64).sum()
    }

    /// Returns the longest window of all ends, in seconds, or `None` if it is zero.
    pub(super) fn seconds(&self) -> Option<f64> {
        let window = self.ends().map(|end| end.window_ns).max().unwrap_or_default().as_secs_f64();
        (window > 0.0).then_some(window)
    }
}

#[cfg(test)]
mod tests {
    use crate::units::Bytes;
    use crate::{SnmpCounts, TcpSample};

    use super::*;

    fn client(bins: &[(u64, u64)]) -> [EndpointOutcome; 2] {
        let latency = vec![LatencyHistogram { size_bytes: Bytes(1), bins: bins.to_vec() }];
        [EndpointOutcome { latency, ..EndpointOutcome::default() }, EndpointOutcome::default()]
    }

    #[test]
    fn the_latency_of_a_fan_is_that_of_all_its_clients() {
        let [a, b] = client(&[(10, 5)]);
        let mut trial = GridTrial { a, b, ..GridTrial::default() };
        assert_eq!(trial.figure(GridFigure::LATENCY), Some(10.0));
        assert!(!serde_json::to_string(&trial).unwrap().contains("others"), "one pair is written as before");
        trial.others = vec![client(&[(5, 1), (30, 4)]), client(&[(40, 6)])];
        assert_eq!(trial.figure(GridFigure::LATENCY), Some(30.0));
        let text = serde_json::to_string(&trial).unwrap();
        assert_eq!(serde_json::from_str::<GridTrial>(&text).unwrap(), trial);
    }

    #[test]
    fn a_window_is_filled_by_whole_segments() {
        // Section 3.5.1: 48 KB hold five whole segments of 8948 bytes, which are 44,740 bytes of 48,000.
        let mut a = EndpointOutcome { sent_bytes: Bytes(8_948_000), ..EndpointOutcome::default() };
        a.observed.details.put(SnmpCounts([("TcpExt.TCPOrigDataSent".to_owned(), 1000)].into()));
        let window = |bytes, cwnd_segments| TcpSample {
            peer_window_bytes: Bytes(bytes),
            cwnd_segments,
            mss_bytes: Bytes(8948),
            ..TcpSample::default()
        };
        let of = GridFigure::named("window-share").expect("a figure");
        let mut share = |sample| {
            a.observed.details.put(vec![sample]);
            let trial = GridTrial { b: a.clone(), ..GridTrial::default() };
            trial.figure(of)
        };
        assert!((share(window(48_000, 34)).expect("a share") - 44_740.0 / 48_000.0).abs() < 1e-9);
        assert_eq!(share(window(48_000, 3)), Some(1.0), "a congestion window is made of segments");
        assert_eq!(share(window(0, 3)), None, "closed");
        assert_eq!(GridTrial::default().figure(of), None);
    }
}
