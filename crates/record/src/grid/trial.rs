//! One trial of a grid.

use crate::units::{BytesPerCpuSecond, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    DatagramCounts, EndpointOutcome, LatencyHistogram, Png, ProgramFigures, SnmpCounts, TcpSample,
    TrialFigures,
};

/// A figure of a trial that grids compare.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum GridFigure {
    /// Payload that arrived, in bit/s.
    #[default]
    GoodputBps,
    /// Payload per second of processor time over both hosts (each machine counted once), in bytes.
    BytesPerCpuS,
    /// Median of the workload's latency, in ns: a round trip or a connection's set-up.
    P50Ns,
    /// 99th percentile of the workload's latency, in ns.
    P99Ns,
    /// Datagrams that arrived per second.
    DatagramsPerS,
    /// Datagrams that arrived, as a share of these and those known to be lost, 0 to 1.
    DeliveredShare,
    /// Processors kept busy per Gb/s: the reciprocal of bytes per CPU-second.
    CoresPerGbps,
    /// Share of a TCP flow's window that whole segments of the sent size fill, 0 to 1. The rest cannot be in flight
    /// (feng-2003 section 3.5.1).
    WindowShare,
    /// A figure that a program reported, in its own unit: the first in the program's file, or the requested one.
    Program,
    /// Work of the program per second of processor time over both hosts: the figure of `Program` if more of it is
    /// better, else the first such figure, else the number of runs.
    ProgramPerCpuS,
}

impl GridFigure {
    pub const ALL: [GridFigure; 10] = [
        GridFigure::GoodputBps,
        GridFigure::BytesPerCpuS,
        GridFigure::P50Ns,
        GridFigure::P99Ns,
        GridFigure::DatagramsPerS,
        GridFigure::DeliveredShare,
        GridFigure::CoresPerGbps,
        GridFigure::WindowShare,
        GridFigure::Program,
        GridFigure::ProgramPerCpuS,
    ];

    /// Returns the name on the command line and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            GridFigure::GoodputBps => "goodput",
            GridFigure::BytesPerCpuS => "bytes-per-cpu-second",
            GridFigure::P50Ns => "latency",
            GridFigure::P99Ns => "latency-p99",
            GridFigure::DatagramsPerS => "datagrams",
            GridFigure::DeliveredShare => "delivered",
            GridFigure::CoresPerGbps => "cores-per-gbps",
            GridFigure::WindowShare => "window-share",
            GridFigure::Program => "program",
            GridFigure::ProgramPerCpuS => "program-per-cpu-second",
        }
    }

    /// Returns a short description.
    pub fn about(self) -> &'static str {
        match self {
            GridFigure::GoodputBps => "payload that arrived, in a second",
            GridFigure::BytesPerCpuS => "payload for a second of processor time",
            GridFigure::P50Ns => "median round trip or set-up time",
            GridFigure::P99Ns => "99th percentile of it",
            GridFigure::DatagramsPerS => "datagrams that arrived, in a second",
            GridFigure::DeliveredShare => "share of the datagrams that arrived",
            GridFigure::CoresPerGbps => "processors kept busy for each Gb/s",
            GridFigure::WindowShare => "share of a TCP window that whole segments fill",
            GridFigure::Program => "what the program told of its run",
            GridFigure::ProgramPerCpuS => "what the program did, for a second of processor time",
        }
    }

    /// Returns true if more of the figure is better.
    pub fn more_is_better(self) -> bool {
        !matches!(self, GridFigure::P50Ns | GridFigure::P99Ns | GridFigure::CoresPerGbps)
    }
}

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
    /// The user stopped it.
    #[default]
    Stopped,
}

/// One trial of a cell. A record has all trials of a grid, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GridTrial {
    /// Number of the block, from 0.
    pub block: u32,
    /// Number of the whole plot within the block: one combination of values of the slow factors.
    pub plot: u32,
    /// Number of the cell (`Grid::factors` defines the order).
    pub cell: u32,
    pub at_ns: Nanos,
    /// Duration of the trial, settling included.
    pub took_ns: Nanos,
    /// Why it gave no figures; `None` if it gave them.
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
    /// Returns a figure in its own unit, or `None` if the trial does not have it.
    pub fn figure(&self, figure: GridFigure) -> Option<f64> {
        if self.failed.is_some() {
            return None;
        }
        let latency = self.latency();
        let latency = latency.as_ref();
        let BytesPerCpuSecond(cost) = self.figures.bytes_per_cpu_s;
        let value = match figure {
            // The bytes of a ping-pong are not goodput.
            GridFigure::GoodputBps if latency.is_none() => self.figures.rate_bps.0,
            GridFigure::BytesPerCpuS if latency.is_none() => cost,
            GridFigure::CoresPerGbps if latency.is_none() => 1e9 / 8.0 / cost,
            GridFigure::P50Ns => latency?.percentile(0.5)?.0 as f64,
            GridFigure::P99Ns => latency?.percentile(0.99)?.0 as f64,
            GridFigure::DatagramsPerS => self.datagrams(|flow| flow.received) / self.seconds()?,
            GridFigure::DeliveredShare => {
                let came = self.datagrams(|flow| flow.received);
                came / (came + self.datagrams(|flow| flow.lost))
            }
            GridFigure::WindowShare => self.ends().find_map(window_share)?,
            GridFigure::Program => self.program()?.deciding()?.value,
            GridFigure::ProgramPerCpuS => self.figures.program?.per_cpu_s,
            _ => return None,
        };
        Some(value).filter(|value| *value > 0.0 && value.is_finite())
    }

    /// Returns both ends of each pair.
    fn pairs(&self) -> impl Iterator<Item = [&EndpointOutcome; 2]> {
        std::iter::once([&self.a, &self.b]).chain(self.others.iter().map(|[a, b]| [a, b]))
    }

    /// Returns the figures that the program of the trial reported.
    pub fn program(&self) -> Option<&ProgramFigures> {
        self.ends().map(|end| end.get::<ProgramFigures>()).find(|told| !told.all.is_empty())
    }

    /// Returns the picture that the program of the trial drew.
    pub fn picture(&self) -> Option<&Png> {
        self.ends().find_map(|end| end.details.find().ok()?)
    }

    /// Returns every end of every pair.
    pub fn ends_mut(&mut self) -> impl Iterator<Item = &mut EndpointOutcome> {
        [&mut self.a, &mut self.b].into_iter().chain(self.others.iter_mut().flatten())
    }

    fn ends(&self) -> impl Iterator<Item = &EndpointOutcome> {
        self.pairs().flatten()
    }

    /// Returns the samples of all pairs together. Each sample has the same weight, whichever client took it.
    fn latency(&self) -> Option<LatencyHistogram> {
        let of_pair =
            |pair: [&EndpointOutcome; 2]| pair.into_iter().find_map(|end| end.latency.first().cloned());
        LatencyHistogram::together(self.pairs().filter_map(of_pair))
    }

    /// Returns a count of datagrams, summed over all flows and both ends.
    fn datagrams(&self, which: fn(&DatagramCounts) -> u64) -> f64 {
        let flows = self.ends().flat_map(|end| end.get::<Vec<DatagramCounts>>());
        flows.map(|flow| which(flow) as f64).sum()
    }

    /// Returns the longest window of all ends, in seconds.
    fn seconds(&self) -> Option<f64> {
        let window = self.ends().map(|end| end.window_ns).max().unwrap_or_default().as_secs_f64();
        (window > 0.0).then_some(window)
    }
}

/// Returns the share of the window that whole segments fill, for the flow that a sender sampled last. The window is
/// the smaller of the peer's and the sender's own. The segment is the average one that the host sent.
fn window_share(end: &EndpointOutcome) -> Option<f64> {
    let sample = end.observed.get::<Vec<TcpSample>>().last()?;
    let segments = *end.observed.get::<SnmpCounts>().0.get("TcpExt.TCPOrigDataSent")? as f64;
    let segment = end.sent_bytes.0 as f64 / segments;
    let window = sample.peer_window_bytes.0.min(u64::from(sample.cwnd_segments) * sample.mss_bytes.0) as f64;
    Some((window / segment).floor() * segment / window)
}

#[cfg(test)]
mod tests {
    use crate::units::Bytes;

    use super::*;

    fn client(bins: &[(u64, u64)]) -> [EndpointOutcome; 2] {
        let latency = vec![LatencyHistogram { size_bytes: Bytes(1), bins: bins.to_vec() }];
        [EndpointOutcome { latency, ..EndpointOutcome::default() }, EndpointOutcome::default()]
    }

    #[test]
    fn the_latency_of_a_fan_is_that_of_all_its_clients() {
        let [a, b] = client(&[(10, 5)]);
        let mut trial = GridTrial { a, b, ..GridTrial::default() };
        assert_eq!(trial.figure(GridFigure::P50Ns), Some(10.0));
        assert!(!serde_json::to_string(&trial).unwrap().contains("others"), "one pair is written as before");
        trial.others = vec![client(&[(5, 1), (30, 4)]), client(&[(40, 6)])];
        assert_eq!(trial.figure(GridFigure::P50Ns), Some(30.0));
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
        let mut share = |sample| {
            a.observed.details.put(vec![sample]);
            let trial = GridTrial { b: a.clone(), ..GridTrial::default() };
            trial.figure(GridFigure::WindowShare)
        };
        assert!((share(window(48_000, 34)).expect("a share") - 44_740.0 / 48_000.0).abs() < 1e-9);
        assert_eq!(share(window(48_000, 3)), Some(1.0), "a congestion window is made of segments");
        assert_eq!(share(window(0, 3)), None, "closed");
        assert_eq!(GridTrial::default().figure(GridFigure::WindowShare), None);
    }
}
