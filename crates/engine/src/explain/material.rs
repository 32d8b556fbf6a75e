//! Builds the report of `explain` from the observations.

use landspeed_analysis::fit::{cost_figures, share_of_links};
use landspeed_analysis::verdict::{
    FollowUps, HostView, NamedHostLimits, PathObservations, Repetition, judge, repetition, staircase,
};
use landspeed_analysis::window::{WatchedHost, busiest};
use landspeed_record::units::{BitRate, Bytes, EscapedText, Nanos};
use landspeed_record::{
    CostProfile, EXPLAIN_FORMAT, Estimate, ExplainReport, ExplainedHost, HostFacts, HostLimits, KnobState,
    LinkCounters, Observations, PacedStream, PathCapacity, PathProbe, Settings, Verdict, WatchTarget,
};
use landspeed_transport::settings::TRANSPORT;

use super::commands::with_commands;
use super::{ExplainOptions, fitting};

/// The number of flows that are compared with the window model. The busiest flows are chosen.
const WINDOWS: usize = 3;

/// The observations of one host, which are not judged yet.
pub(super) struct HostObservations {
    pub(super) name: String,
    pub(super) facts: HostFacts,
    pub(super) observed: Observations,
    pub(super) limits: Option<HostLimits>,
    /// Values of the host's knobs.
    pub(super) set: Settings,
    /// The states of the host's knobs, for the link `device`.
    pub(super) states: Vec<KnobState>,
    /// The device that carries the flow.
    pub(super) device: String,
}

impl HostObservations {
    fn watched(&self) -> WatchedHost<'_> {
        WatchedHost { kernel: &self.facts.kernel, seen: &self.observed }
    }

    fn view(&self) -> HostView<'_> {
        let (seen, limits) = (&self.observed, self.limits.as_ref());
        HostView { name: &self.name, facts: &self.facts, seen, limits, set: &self.set }
    }
}

/// All observations and measurements from which a report is built.
#[derive(Default)]
pub(super) struct ReportInputs {
    pub(super) seen: Vec<HostObservations>,
    /// The idle RTT; `None` if it was not measured.
    pub(super) rtt: Option<Nanos>,
    /// The goodput; `None` if the workload did not count it.
    pub(super) goodput: Option<BitRate>,
    /// The effect of the tracer on bytes per processor second; `None` if not measured.
    pub(super) tracer_effect: Option<Estimate>,
    /// The result of the probe that is sent after the flow stalled; `None` if none was sent.
    pub(super) probe: Option<PathProbe>,
    /// The result of the same stream at a lower rate; `None` if it was not repeated.
    pub(super) slower: Option<PacedStream>,
    /// The rate that the path carries; `None` if it was not searched for.
    pub(super) capacity: Option<PathCapacity>,
}

impl ReportInputs {
    pub(super) fn report(self, options: &ExplainOptions) -> ExplainReport {
        let verdict = self.judged(options);
        let limits = self.seen.iter().filter_map(|seen| {
            let limits = seen.limits.as_ref()?;
            Some(NamedHostLimits { name: &seen.name, limits })
        });
        ExplainReport {
            format: EXPLAIN_FORMAT,
            landspeed: env!("CARGO_PKG_VERSION").to_owned(),
            started: options.started.clone(),
            command: options.command.clone(),
            topology: options.topology.clone(),
            watched: watched(options),
            goodput_bps: verdict.goodput_bps,
            path_rate: verdict.path_rate,
            staircase: staircase(&limits.collect::<Vec<_>>(), verdict.goodput_bps),
            verdict: verdict.findings,
            cannot_tell: verdict.cannot_tell,
            unjudged: verdict.unjudged,
            windows: busiest(
                &self.seen.iter().map(HostObservations::watched).collect::<Vec<_>>(),
                self.rtt,
                WINDOWS,
            ),
            tracer_effect: self.tracer_effect,
            probe: self.probe,
            slower: self.slower,
            capacity: self.capacity,
            hosts: self.seen.into_iter().map(|seen| explained(seen, verdict.goodput_bps)).collect(),
            ..ExplainReport::default()
        }
    }

    pub(super) fn judged(&self, options: &ExplainOptions) -> Verdict {
        let verdict = self.with_observations(options, judge);
        let verdict = fitting(verdict.unwrap_or_default(), options.program.as_ref(), &options.flow);
        with_commands(verdict, &self.seen)
    }

    /// Returns the repetition of the stream, at a lower rate, that would show why segments are lost; `None` if none is
    /// needed.
    pub(super) fn repetition(&self, options: &ExplainOptions) -> Option<Repetition> {
        self.with_observations(options, repetition).flatten()
    }

    /// Adds a line on what could not be measured.
    pub(super) fn unseen(&mut self, line: String) {
        if let Some(first) = self.seen.first_mut() {
            first.observed.unseen.push(line);
        }
    }

    fn with_observations<T>(
        &self,
        options: &ExplainOptions,
        ask: impl FnOnce(&PathObservations<'_>) -> T,
    ) -> Option<T> {
        let [a, others @ ..] = self.seen.as_slice() else { return None };
        let own = options.has_own_flows().then_some(&options.flow);
        let (b, rtt, goodput) = (others.first().map(HostObservations::view), self.rtt, self.goodput);
        let follow_ups = FollowUps {
            probe: self.probe.as_ref(),
            slower: self.slower.as_ref(),
            capacity: self.capacity.as_ref(),
        };
        Some(ask(&PathObservations { a: a.view(), b, rtt, goodput, own, follow_ups }))
    }
}

fn explained(seen: HostObservations, goodput: BitRate) -> ExplainedHost {
    let observed = seen.observed;
    let cost = observed.get::<Option<CostProfile>>().as_ref().map(|profile| {
        let bytes = Bytes((goodput.0 / 8.0 * profile.window_ns.as_secs_f64()) as u64);
        let share = share_of_links(&observed);
        cost_figures(profile, share, bytes, (packets(&observed) as f64 * share) as u64)
    });
    ExplainedHost {
        facts: Some(seen.facts),
        name: seen.name,
        cost: cost.unwrap_or_default(),
        limits: seen.limits,
        observed,
    }
}

/// Returns the number of packets over the links in the direction of the data. It is taken to be the direction with more
/// packets, because acknowledgements are fewer.
fn packets(observed: &Observations) -> u64 {
    let links = observed.get::<Vec<LinkCounters>>();
    links.iter().map(|link| link.rx_packets.max(link.tx_packets)).sum()
}

pub(super) fn watched(options: &ExplainOptions) -> String {
    if let Some(program) = &options.program {
        return format!("flows of {}, run for this", program.name);
    }
    match options.target {
        WatchTarget::Workload => {
            format!("a stream over {}, sent for this", TRANSPORT.of(&options.flow).to_uppercase())
        }
        WatchTarget::Programs => "flows of the program".to_owned(),
        WatchTarget::Flow { at } => format!("flows of {at}"),
        WatchTarget::Pid { pid } => format!("flows of process {pid}"),
        WatchTarget::Name { name } => {
            format!("flows of processes called {}", EscapedText::from(name.as_str()))
        }
        WatchTarget::Top => "the flows that move most".to_owned(),
    }
}
