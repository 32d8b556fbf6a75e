//! Trials: one short measurement of a cell.

use std::net::IpAddr;
use std::sync::Arc;

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::{Cell, EndpointOutcome, Settings, pieces};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The end that opens the connections.
    Client,
    /// The end that accepts the connections.
    Server,
}

/// A workload by its name, and its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Workload {
    /// Name, as on the command line of `measure`.
    pub name: String,
    /// Parameters by name, in canonical spelling. A missing parameter has its default.
    #[serde(default)]
    pub parameters: Settings,
    /// Text of the application's file. It may be absent for an application that is part of landspeed, because its name
    /// is enough to find it. It is never written to a record.
    #[serde(skip)]
    pub file: Option<Arc<str>>,
}

impl Workload {
    /// Creates a workload with every parameter at its default.
    pub fn new(name: &str) -> Workload {
        Workload { name: name.to_owned(), ..Workload::default() }
    }

    #[must_use]
    pub fn with(mut self, parameter: &str, value: impl std::fmt::Display) -> Workload {
        self.parameters.insert(parameter.to_owned(), value.to_string());
        self
    }
}

/// The program of a trial whose workload is an application. It is never written to a record.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// Name of the program's file.
    pub name: String,
    /// The program's file, byte for byte. It is sent as bytes, because reading it as a string would escape its line
    /// ends.
    #[serde(with = "pieces")]
    pub text: String,
    /// Addresses of all hosts, in the order of the hosts' numbers.
    pub hosts: Vec<IpAddr>,
    /// Number of the host that receives this program, from 1.
    pub number: u32,
    /// Number of the host at the other end of the pair, from 1.
    pub other: u32,
    /// A name that changes when services must restart. A service that continues after its trial runs until this name
    /// changes.
    pub epoch: String,
    /// A secret that all roles of this trial share, and that no other trial has.
    pub token: String,
}

/// Formats the program without its secret.
impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Program { name, hosts, number, epoch, .. } = self;
        write!(f, "{name} on host {number} of {hosts:?}, {epoch:?}")
    }
}

/// Default for the longest time that a run waits while nothing arrives from the path or the peer.
pub const PATIENCE: Nanos = Nanos::secs(30);

/// A request to an agent to run one end of a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrialSpec {
    pub workload: Workload,
    pub flow: Settings,
    /// Cores to which this end's worker threads are pinned, in turn. If it is empty, the threads are not pinned.
    pub cores: Vec<u32>,
    /// Time after the start of the flows that is not measured.
    pub warm_up_ns: Nanos,
    /// Time between two TCP_INFO samples. If it is zero, only the start and the end of the window are sampled.
    pub interval_ns: Nanos,
    /// Names of the observers to run in addition to the usual ones.
    #[serde(default)]
    pub observers: Vec<String>,
    /// Time between two reports of progress; zero for no reports.
    #[serde(default)]
    pub progress_ns: Nanos,
    /// Longest time to wait while nothing arrives from the path or the peer; zero means [`PATIENCE`].
    #[serde(default)]
    pub patience_ns: Nanos,
    /// The program, if the workload is an application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// The threads that carry landspeed's own link between the hosts, on the agent's machine; `None` without such a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_threads: Option<[i32; 2]>,
}

impl TrialSpec {
    /// Returns the longest time to wait while nothing arrives from the path or the peer.
    pub fn patience(&self) -> Nanos {
        if self.patience_ns == Nanos(0) { PATIENCE } else { self.patience_ns }
    }
}

/// The progress of one end of a run, reported during the run. All figures except round trip and congestion window are
/// totals, so that a lost report does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialProgress {
    /// Time since the window opened.
    pub at_ns: Nanos,
    pub received_bytes: Bytes,
    /// TCP's figures for this end as a sender; `None` for other transports and for an end that only receives.
    pub tcp: Option<TcpProgress>,
}

/// TCP's figures over all flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpProgress {
    /// Segments retransmitted since the start of the flows.
    pub retransmits: u64,
    /// Mean of the flows' smoothed round trips.
    pub rtt_ns: Nanos,
    /// Sum of the flows' congestion windows.
    pub window_bytes: Bytes,
}

/// A histogram of latency samples, which are round trips or connection set-up times. The latency of a bin is its upper
/// edge in nanoseconds, with three significant figures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LatencyHistogram {
    /// Size of the message.
    pub size_bytes: Bytes,
    /// Bins as (latency in ns, count), ascending.
    pub bins: Vec<(u64, u64)>,
}

impl LatencyHistogram {
    /// Joins histograms of the same message size into one, or returns `None` without histograms.
    pub fn together(several: impl IntoIterator<Item = LatencyHistogram>) -> Option<LatencyHistogram> {
        several.into_iter().reduce(|mut all, more| {
            all.bins.extend(more.bins);
            all.bins.sort_unstable();
            all
        })
    }

    /// Returns the number of samples.
    pub fn count(&self) -> u64 {
        self.bins.iter().fold(0, |count, (_, n)| count.saturating_add(*n))
    }

    /// Returns the longest sample, or `None` without samples.
    pub fn longest(&self) -> Option<Nanos> {
        self.bins.iter().filter(|(_, n)| *n > 0).map(|(value, _)| Nanos(*value)).max()
    }

    /// Returns the number of samples longer than `time`.
    pub fn beyond(&self, time: Nanos) -> u64 {
        let beyond = self.bins.iter().filter(|(value, _)| *value > time.0);
        beyond.fold(0, |count, (_, n)| count.saturating_add(*n))
    }

    /// Returns the latency that a share `q` (0 to 1) of the samples does not exceed. Returns `None` if fewer than 10
    /// samples are above that rank, because such a percentile is noise. The median and lower percentiles need only one
    /// sample.
    pub fn percentile(&self, q: f64) -> Option<Nanos> {
        let count = self.count();
        let rank = (q * count as f64).ceil().max(1.0) as u64;
        if count == 0 || (q > 0.5 && count.saturating_sub(rank) < 10) {
            return None;
        }
        let mut seen = 0;
        self.bins.iter().find_map(|&(value, n)| {
            seen = u64::saturating_add(seen, n);
            (seen >= rank).then_some(Nanos(value))
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// The setting in force.
    #[default]
    Incumbent,
    /// The setting with the change.
    Candidate,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trial {
    /// ID of the step (`StepSummary::id`), or "start", "final", ...
    pub step: String,
    /// Block number within the step, from 0.
    pub block: u32,
    /// Position within the block: 0 to 3, or 0 to 7 in a block of eight.
    pub position: u32,
    /// Arm of the step: which of its two settings the trial measures.
    pub arm: Arm,
    /// Time from the run's start.
    pub at_ns: Nanos,
    /// The cell that was measured.
    pub cell: Cell,
    /// Outcome at host A.
    pub a: EndpointOutcome,
    /// Outcome at host B.
    pub b: EndpointOutcome,
    /// Outcomes of the other pairs that ran at the same time, each as A, then B.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<[EndpointOutcome; 2]>,
    /// Goodput, cost and idle round trip, computed from the outcomes.
    pub figures: crate::TrialFigures,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_in_byte_for_byte() {
        let text = "tab\t, end\n, \u{1b}[2J, \u{e4}".repeat(400);
        let program =
            Program { name: "x".into(), text, hosts: vec!["::1".parse().unwrap()], ..Program::default() };
        let json = serde_json::to_vec(&program).unwrap();
        assert_eq!(crate::decode::<Program>(&json).unwrap(), program);
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let h = LatencyHistogram { size_bytes: Bytes(1), bins: vec![(10, 989), (20, 11)] };
        assert_eq!(h.percentile(0.5), Some(Nanos(10)));
        assert_eq!(h.percentile(0.99), Some(Nanos(20)));
        assert_eq!(h.percentile(0.999), None);
        let one = LatencyHistogram { size_bytes: Bytes(1), bins: vec![(7, 1)] };
        assert_eq!(one.percentile(0.5), Some(Nanos(7)));
        assert_eq!(one.percentile(0.9), None);
        assert_eq!(LatencyHistogram::default().percentile(0.5), None);
    }
}
