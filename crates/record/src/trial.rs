//! Trials: one short measurement of a cell.

use std::net::IpAddr;

use landspeed_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::{Cell, EndpointOutcome, Settings, pieces};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Opens the connections.
    Client,
    /// Accepts them.
    Server,
}

/// What is sent and measured: a workload by its name, and its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Workload {
    /// Its name, as `measure` takes it.
    pub name: String,
    /// Its parameters by name, in canonical spelling; one that is not there has its default.
    #[serde(default)]
    pub parameters: Settings,
}

impl Workload {
    /// A workload with every parameter at its default.
    pub fn new(name: &str) -> Workload {
        Workload { name: name.to_owned(), parameters: Settings::new() }
    }

    #[must_use]
    pub fn with(mut self, parameter: &str, value: impl std::fmt::Display) -> Workload {
        self.parameters.insert(parameter.to_owned(), value.to_string());
        self
    }
}

/// The program that a trial runs, where its workload is an application. It is never written into a record.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// Name of its file.
    pub name: String,
    /// Its file, byte for byte: what comes in escapes the ends of lines in a text.
    #[serde(with = "pieces")]
    pub text: String,
    /// Addresses of all hosts, in the order of their numbers.
    pub hosts: Vec<IpAddr>,
    /// Number of the host that is asked, from 1.
    pub number: u32,
    /// Number of the host at the other end of the pair.
    pub other: u32,
    /// A service that outlives its trial lives as long as this stays the same.
    pub epoch: String,
    /// A secret that all roles of a trial know, and that no other trial has.
    pub token: String,
}

/// Without the secret.
impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Program { name, hosts, number, epoch, .. } = self;
        write!(f, "{name} on host {number} of {hosts:?}, {epoch:?}")
    }
}

/// How long a run waits for a silent path or peer where it is not told otherwise.
pub const PATIENCE: Nanos = Nanos::secs(30);

/// What an agent is asked to run: its end of one trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrialSpec {
    pub workload: Workload,
    pub flow: Settings,
    /// Cores that this end's worker threads are pinned to, in turn; empty leaves them free.
    pub cores: Vec<u32>,
    /// Time after the flows' start that is not counted.
    pub warm_up_ns: Nanos,
    /// Time between TCP_INFO samples; zero takes one at each end of the window only.
    pub interval_ns: Nanos,
    /// Observers to run beside the usual ones, by name.
    #[serde(default)]
    pub observers: Vec<String>,
    /// Time between two words of how far this end has come; zero for none.
    #[serde(default)]
    pub progress_ns: Nanos,
    /// How long a silent path or peer is waited for at most; zero for [`PATIENCE`].
    #[serde(default)]
    pub patience_ns: Nanos,
    /// The program, where the workload is an application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

impl TrialSpec {
    /// How long a silent path or peer is waited for at most.
    pub fn patience(&self) -> Nanos {
        if self.patience_ns == Nanos(0) { PATIENCE } else { self.patience_ns }
    }
}

/// How far one end of a run has come, told while it goes on. All but the round trip and the window are sums since the
/// run's window opened, so that one that is lost costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Time since the window opened.
    pub at_ns: Nanos,
    pub received_bytes: Bytes,
    /// What this end's TCP says as a sender; `None` for other transports and for an end that only receives.
    pub tcp: Option<TcpProgress>,
}

/// TCP's figures of all flows together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpProgress {
    /// Segments that were sent again since the flows began.
    pub retransmits: u64,
    /// Mean of the flows' smoothed round trips.
    pub rtt_ns: Nanos,
    /// Sum of the flows' congestion windows.
    pub window_bytes: Bytes,
}

/// Latency samples as a histogram: value in nanoseconds (upper edge, three significant figures) and
/// how many round trips fell there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyHistogram {
    /// Size of the message.
    pub size_bytes: Bytes,
    /// (round-trip time in ns, count), ascending.
    pub bins: Vec<(u64, u64)>,
}

impl LatencyHistogram {
    /// The samples of several histograms of one size as one; `None` of none.
    pub fn together(several: impl IntoIterator<Item = LatencyHistogram>) -> Option<LatencyHistogram> {
        several.into_iter().reduce(|mut all, more| {
            all.bins.extend(more.bins);
            all.bins.sort_unstable();
            all
        })
    }

    /// How many round trips.
    pub fn count(&self) -> u64 {
        self.bins.iter().fold(0, |count, (_, n)| count.saturating_add(*n))
    }

    /// The longest; `None` without samples.
    pub fn longest(&self) -> Option<Nanos> {
        self.bins.iter().filter(|(_, n)| *n > 0).map(|(value, _)| Nanos(*value)).max()
    }

    /// How many took longer than `time`.
    pub fn beyond(&self, time: Nanos) -> u64 {
        let beyond = self.bins.iter().filter(|(value, _)| *value > time.0);
        beyond.fold(0, |count, (_, n)| count.saturating_add(*n))
    }

    /// The round-trip time that a share `q` (0 to 1) of samples does not exceed, or `None` where fewer
    /// than `10` samples lie beyond it: a percentile with less behind it is noise. The median (and
    /// anything below) needs one sample only.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// The setting in force.
    #[default]
    Incumbent,
    /// The setting with the change.
    Candidate,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trial {
    /// The step that it belongs to (`StepLine::id`), or "start", "final", ...
    pub step: String,
    /// Block number within the step, from 0.
    pub block: u32,
    /// Position within the block, 0 to 3, or to 7 in a block of eight.
    pub position: u32,
    /// Which of the two settings it measures.
    pub arm: Arm,
    /// Time since the run's start.
    pub at_ns: Nanos,
    /// The setting.
    pub cell: Cell,
    /// What host A saw.
    pub a: EndpointOutcome,
    /// What host B saw.
    pub b: EndpointOutcome,
    /// Goodput, cost and idle round trip that follow from the above; see `Figures`.
    pub figures: crate::Figures,
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
