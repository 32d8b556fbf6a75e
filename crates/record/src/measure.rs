//! The result of one measurement: what `landspeed measure --json` prints.

use crate::units::{BitRate, Bytes, BytesPerCpuSecond, CpuNanos, Nanos};
use serde::{Deserialize, Serialize};

use crate::{
    CongestionControls, CpuUsage, DatagramCounts, EndpointOutcome, Finding, HostFacts, LatencyHistogram,
    Observations, PartFigures, PathFacts, PathProbe, PathStall, ProbeSample, Side, Silences, SweepPoint,
    TcpSample, Timeline, WanReport, Workload, ZeroCopyCounts, datagram, unknown,
};

pub const MEASURE_FORMAT: u32 = 3;

/// The result of a measurement. Figures that the workload does not measure are empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MeasureReport {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    pub command: String,
    pub topology: String,
    /// The workload with its parameters.
    pub workload: Workload,
    /// Host A, the client, which opens the connections.
    pub host_a: HostFacts,
    pub host_b: HostFacts,
    /// The path between the two hosts.
    pub path: PathFacts,
    /// Goodput by direction, and by pair of hosts if there are several.
    pub streams: Vec<StreamFigure>,
    /// Payload per second of processor time over both hosts (each machine counted once); `None` if the workload has
    /// no goodput.
    pub bytes_per_cpu_s: Option<BytesPerCpuSecond>,
    /// Time to transfer data, by size of a write.
    pub sweep: Vec<SweepPoint>,
    /// What `latency` contains: "round trip" or "connection set-up time".
    #[serde(default)]
    pub latency_of: String,
    /// Distribution of the times that `latency_of` names, by message size.
    pub latency: Vec<LatencyFigure>,
    /// Connections set up per second, in documents before format 3. Newer documents have this figure in `figures`.
    #[serde(default, skip_serializing)]
    pub connections_per_s: Option<f64>,
    /// Processor time by host.
    pub cpu: Vec<HostCpu>,
    /// Figures of TCP by sending host.
    pub tcp: Vec<TcpFigure>,
    /// Further figures of the workload by host.
    #[serde(default)]
    pub figures: Vec<PartFigures>,
    /// Figures of the requested observers.
    #[serde(default)]
    pub observed: Vec<PartFigures>,
    #[serde(default)]
    pub wan: Option<WanReport>,
    /// Times in which nothing arrived, by sending host.
    #[serde(default)]
    pub silences: Vec<SilenceFigure>,
    /// The TCP flows of each sending host over time; empty if the run was not sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Timeline>,
    /// Round trips of probes that were sent beside the flows; empty if the workload sends none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeSample>,
    /// Reason why the figures do not cover the whole run; `None` if they do.
    #[serde(default)]
    pub partial: Option<String>,
    /// Hosts and pairs of hosts without figures, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostHost>,
    /// Result of the probes that were sent because nothing arrived; `None` if none were sent.
    #[serde(default)]
    pub probe: Option<PathProbe>,
    /// Causes that the probes showed.
    #[serde(default)]
    pub causes: Vec<Finding>,
    pub notes: Vec<String>,
    pub record: Option<String>,
    /// The command to run next, chosen from these figures; empty in older documents.
    #[serde(default)]
    pub next: String,
}

/// A host, or a pair of hosts, from which there are no figures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LostHost {
    /// The user's name of the host, or of both hosts of a pair: "h3", "h3 to h0".
    pub name: String,
    /// The error, in one line.
    pub why: String,
}

impl LostHost {
    /// Creates the entry of the host `name` from an error. If the text of the error begins with the name, the entry
    /// omits the name.
    pub fn new(name: &str, error: &impl std::fmt::Display) -> Self {
        let text = error.to_string();
        let why = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&text);
        LostHost { name: name.to_owned(), why: why.to_owned() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StreamFigure {
    /// The sending host.
    pub sender: Side,
    /// Names of the two hosts, sender first ("h0 to h3"), if several pairs were measured at once.
    #[serde(default)]
    pub between: Option<String>,
    /// Goodput at the receiver.
    pub rate_bps: BitRate,
    /// Goodput of each flow.
    pub flow_rate_bps: Vec<BitRate>,
    /// Payload that arrived within the window.
    pub received_bytes: Bytes,
    pub window_ns: Nanos,
}

/// The times in which no data of a stream arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SilenceFigure {
    /// The sending host.
    pub sender: Side,
    /// Names of the two hosts, sender first, if several pairs were measured at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<String>,
    /// Total of the times in which nothing arrived.
    pub total_ns: Nanos,
    /// The longest time in which nothing arrived.
    pub longest_ns: Nanos,
}

/// The distribution of round trips, or of connection set-up times, for one message size. A percentile is given only
/// if ten or more samples lie beyond it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LatencyFigure {
    /// Names of the two hosts, the measuring one first ("h0 to h3"), if several pairs were measured at once.
    pub between: Option<String>,
    /// Size of the message.
    pub size_bytes: Bytes,
    /// Number of samples.
    pub samples: u64,
    /// Median; `None` without samples.
    pub p50_ns: Option<Nanos>,
    /// 90th percentile; `None` with fewer than ten samples beyond it.
    pub p90_ns: Option<Nanos>,
    /// 99th percentile; `None` with fewer than ten samples beyond it.
    pub p99_ns: Option<Nanos>,
    /// 99.9th percentile; `None` with fewer than ten samples beyond it.
    pub p99_9_ns: Option<Nanos>,
    /// 99.99th percentile; `None` with fewer than ten samples beyond it.
    pub p99_99_ns: Option<Nanos>,
    /// Maximum; `None` without samples, and in older documents.
    pub max_ns: Option<Nanos>,
    /// Number of samples above one second, after which a lost SYN is retransmitted (RFC 6298 section 2).
    pub beyond_1s: u64,
}

impl LatencyFigure {
    pub(crate) fn of(histogram: &LatencyHistogram) -> Self {
        LatencyFigure {
            between: None,
            size_bytes: histogram.size_bytes,
            samples: histogram.count(),
            p50_ns: histogram.percentile(0.5),
            p90_ns: histogram.percentile(0.9),
            p99_ns: histogram.percentile(0.99),
            p99_9_ns: histogram.percentile(0.999),
            p99_99_ns: histogram.percentile(0.9999),
            max_ns: histogram.longest(),
            beyond_1s: histogram.beyond(Nanos::secs(1)),
        }
    }
}

/// Processor time of one host over the window, summed over all cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostCpu {
    pub side: Side,
    /// The host's name, if several pairs were measured at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub window_ns: Nanos,
    /// Number of cores of the machine.
    pub cores: u32,
    /// User code.
    pub user_ns: CpuNanos,
    /// Kernel code in task context.
    pub system_ns: CpuNanos,
    /// Interrupts.
    pub irq_ns: CpuNanos,
    /// Softirqs.
    pub softirq_ns: CpuNanos,
    /// Time taken by the hypervisor.
    pub steal_ns: CpuNanos,
    /// Time of the workload's own threads, of its helper threads, and of the processes that were started for it.
    pub workload_ns: CpuNanos,
}

impl HostCpu {
    pub(crate) fn of(side: Side, usage: &CpuUsage) -> Self {
        let sum = |class: fn(&crate::CoreCpuTime) -> CpuNanos| usage.cores.iter().map(class).sum();
        HostCpu {
            side,
            host: None,
            window_ns: usage.window_ns,
            cores: u32::try_from(usage.cores.len()).unwrap_or(u32::MAX),
            user_ns: sum(|c| c.user_ns),
            system_ns: sum(|c| c.system_ns),
            irq_ns: sum(|c| c.irq_ns),
            softirq_ns: sum(|c| c.softirq_ns),
            steal_ns: sum(|c| c.steal_ns),
            workload_ns: usage.own(),
        }
    }
}

/// TCP_INFO at the end of the window, over all flows of one sending host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TcpFigure {
    /// The sending host.
    pub sender: Side,
    /// Names of the two hosts, sender first, if several pairs were measured at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<String>,
    /// Flows on which the host sent data.
    pub flows: u32,
    /// Segments retransmitted from the start of the flows.
    pub retransmits: u64,
    /// Mean smoothed round-trip time under load; `None` if none was measured.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub rtt_ns: Nanos,
    /// Lowest round trip of all flows; `None` if none was measured.
    #[serde(default, deserialize_with = "unknown::or_default")]
    pub min_rtt_ns: Option<Nanos>,
    /// Share of the time with data in flight in which the peer's window limited the flows, 0 to 1.
    pub rwnd_limited: f64,
    /// Share of the time with data in flight in which the host's send buffer limited the flows, 0 to 1.
    pub sndbuf_limited: f64,
    /// Congestion controls that the flows' sockets reported; empty in older documents.
    #[serde(default)]
    pub congestion: Vec<String>,
}

impl TcpFigure {
    /// Computes the figures from the last sample of each flow, or returns `None` if the host sent nothing.
    pub(crate) fn of(sender: Side, samples: &[TcpSample]) -> Option<Self> {
        let mut last: std::collections::BTreeMap<u32, &TcpSample> = std::collections::BTreeMap::new();
        for sample in samples {
            let kept = last.entry(sample.flow).or_insert(sample);
            if sample.at_ns >= kept.at_ns {
                *kept = sample;
            }
        }
        last.retain(|_, sample| sample.busy_ns.0 > 0);
        let flows = u32::try_from(last.len()).ok().filter(|&n| n > 0)?;
        let busy: f64 = last.values().map(|s| s.busy_ns.as_secs_f64()).sum();
        let share =
            |time: fn(&TcpSample) -> Nanos| last.values().map(|s| time(s).as_secs_f64()).sum::<f64>() / busy;
        Some(TcpFigure {
            sender,
            between: None,
            flows,
            retransmits: last.values().fold(0, |n, s| n.saturating_add(s.retransmits)),
            rtt_ns: Nanos(last.values().map(|s| s.rtt_ns.0 / u64::from(flows)).sum()),
            min_rtt_ns: last.values().filter_map(|s| s.min_rtt_ns).min(),
            rwnd_limited: share(|s| s.rwnd_limited_ns),
            sndbuf_limited: share(|s| s.sndbuf_limited_ns),
            congestion: Vec::new(),
        })
    }
}

impl MeasureReport {
    /// Returns this report with the names of its two hosts in each figure, for a table of several pairs. `link` names A's
    /// link, where the hosts have several.
    #[must_use]
    pub fn named(mut self, [a, b]: [&str; 2], link: Option<&str>) -> Self {
        let over = link.map_or_else(String::new, |link| format!(" over {link}"));
        let between = |sender: Side| match sender {
            Side::A => Some(format!("{a} to {b}{over}")),
            Side::B => Some(format!("{b} to {a}{over}")),
        };
        self.streams.iter_mut().for_each(|one| one.between = between(one.sender));
        self.silences.iter_mut().for_each(|one| one.between = between(one.sender));
        self.tcp.iter_mut().for_each(|one| one.between = between(one.sender));
        self.timeline.iter_mut().for_each(|one| one.between = between(one.sender));
        self.latency.iter_mut().for_each(|one| one.between = between(Side::A));
        self.cpu.iter_mut().for_each(|one| one.host = Some([a, b][one.side as usize].to_owned()));
        self
    }

    /// Returns this report with the figures of another pair added. For a host that is in both pairs, the processor time
    /// of this report is kept.
    #[must_use]
    pub fn with_pair(mut self, other: MeasureReport) -> Self {
        let new = |cpu: &HostCpu| self.cpu.iter().all(|known| known.host != cpu.host);
        let cpu: Vec<_> = other.cpu.into_iter().filter(new).collect();
        self.cpu.extend(cpu);
        self.streams.extend(other.streams);
        self.silences.extend(other.silences);
        self.partial = self.partial.or(other.partial);
        self.latency.extend(other.latency);
        self.tcp.extend(other.tcp);
        self.timeline.extend(other.timeline);
        self.figures.extend(other.figures);
        self.observed.extend(other.observed);
        self.notes.extend(other.notes);
        self
    }

    /// Returns this report with the figures that follow from the outcomes of both ends. Cost is not included, because
    /// it depends on how each host counts processor time.
    #[must_use]
    pub fn with_outcomes(mut self, a: &EndpointOutcome, b: &EndpointOutcome) -> Self {
        let ways = [(Side::A, b), (Side::B, a)];
        self.streams = ways.into_iter().filter_map(|(from, to)| stream(from, to)).collect();
        self.silences = ways.into_iter().filter_map(|(from, to)| silence(from, to)).collect();
        self.partial = [a, b].into_iter().find_map(partial);
        self.sweep = [b, a].map(|end| end.get::<Vec<SweepPoint>>().as_slice()).concat();
        self.latency = [a, b].iter().flat_map(|end| end.latency.iter().map(LatencyFigure::of)).collect();
        let ends = [(Side::A, a), (Side::B, b)];
        self.cpu = ends.iter().map(|(side, end)| HostCpu::of(*side, end.observed.get())).collect();
        self.cpu.retain(|cpu| cpu.cores > 0);
        let tcp = |(side, end): &(Side, &EndpointOutcome)| {
            let CongestionControls(used) = end.observed.get();
            let congestion = used.iter().cloned().collect();
            Some(TcpFigure { congestion, ..TcpFigure::of(*side, end.observed.get::<Vec<TcpSample>>())? })
        };
        self.tcp = ends.iter().filter_map(tcp).collect();
        let timeline = |(side, end): &(Side, &EndpointOutcome)| {
            Timeline::of(*side, end.observed.get::<Vec<TcpSample>>())
        };
        self.timeline = ends.iter().filter_map(timeline).collect();
        for (side, end) in ends {
            self.notes.extend(notes(side, &end.not_as_asked, &end.observed));
            self.notes.extend(datagram::notes(end).iter().map(|line| format!("{side}: {line}")));
            let ZeroCopyCounts { completions: all, copied, .. } = *end.get();
            if all > 0 {
                self.notes.push(format!(
                    "{side}: the kernel copied {copied} of {all} MSG_ZEROCOPY sends after all"
                ));
            }
        }
        self
    }
}

fn stream(sender: Side, receiver: &EndpointOutcome) -> Option<StreamFigure> {
    let window = receiver.window_ns;
    // A sweep has its own table, and the bytes of a ping-pong are not goodput.
    if receiver.received_bytes.0 == 0 || receiver.flow_bytes.is_empty() {
        return None;
    }
    // The counts of datagrams include the time in which they arrived. For a byte stream, only the window is known.
    let (rate_bps, flow_rate_bps) = match receiver.get::<Vec<DatagramCounts>>().as_slice() {
        [] => (
            receiver.received_bytes.per(window),
            receiver.flow_bytes.iter().map(|bytes| bytes.per(window)).collect(),
        ),
        flows => {
            let rates: Vec<BitRate> = flows.iter().map(DatagramCounts::rate).collect();
            (rates.iter().copied().fold(BitRate(0.0), |all, rate| all + rate), rates)
        }
    };
    let received_bytes = receiver.received_bytes;
    Some(StreamFigure { sender, between: None, rate_bps, flow_rate_bps, received_bytes, window_ns: window })
}

fn silence(sender: Side, receiver: &EndpointOutcome) -> Option<SilenceFigure> {
    let silences = receiver.get::<Silences>();
    let (total_ns, longest_ns) = (silences.total(), silences.longest());
    (total_ns > Nanos(0)).then_some(SilenceFigure { sender, between: None, total_ns, longest_ns })
}

/// Returns the reason why an end's figures do not cover a whole run.
fn partial(end: &EndpointOutcome) -> Option<String> {
    let stall = end.get::<PathStall>();
    let timer = match stall.timeouts {
        0 => String::new(),
        times => {
            format!("; the sender's timer went off {times} times in a row and waits {} now", stall.timeout_ns)
        }
    };
    stall.ended_run().then(|| format!("nothing came for {}{timer}", stall.waited_ns))
}

fn notes<'a>(side: Side, asked: &'a [String], seen: &'a Observations) -> impl Iterator<Item = String> + 'a {
    asked.iter().chain(&seen.unseen).map(move |line| format!("{side}: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_shares_come_from_the_last_sample_of_each_flow() {
        let sample = |flow, at, busy, limited| TcpSample {
            flow,
            at_ns: Nanos(at),
            busy_ns: Nanos(busy),
            rwnd_limited_ns: Nanos(limited),
            retransmits: 2,
            ..TcpSample::default()
        };
        let samples = [sample(0, 1, 100, 100), sample(0, 2, 1000, 500), sample(1, 2, 1000, 0)];
        let figure = TcpFigure::of(Side::A, &samples).unwrap();
        assert_eq!((figure.flows, figure.retransmits), (2, 4));
        assert!((figure.rwnd_limited - 0.25).abs() < 1e-12);
        assert_eq!(TcpFigure::of(Side::B, &[sample(0, 1, 0, 0)]), None);
    }
}
