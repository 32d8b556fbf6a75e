//! `staggered`: flows that enter and leave at set times, with a probe of the round trip beside them (cottrell-2005,
//! section III.A).
//!
//! All connections are opened and proven before the run, each with its own congestion control. At the client, each flow
//! has a thread. The thread sleeps until the flow enters, sends until the flow leaves, and resets the connection. Then
//! it sleeps until the run ends, because the threads are watched for the whole run. Data that a flow has not sent when
//! it leaves is dropped, so that a flow that has left adds nothing to the path. The server takes the reset as the
//! flow's end.
//!
//! One more connection carries the probe. All flows are sampled until the run ends; [`report`] removes the client's
//! samples of flows that have left.

mod bounds;
mod probe;
mod receiver;
mod samples;
mod sender;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use landspeed_record::factor::{Domain, Factor, FactorDeclaration};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    DetailRow, EndpointOutcome, ProbeSample, Role, Settings, TcpSample, TrialSpec, Workload, detail,
};
use landspeed_transport::settings::{READ_SIZE, TRANSPORT, WRITE_SIZE, table};
use landspeed_transport::{Flow, ZeroCopyCompletions};
use serde::{Deserialize, Serialize};

use crate::end::{outcome, sum, zero_copied};
use crate::parameter::SHORTEST;
use crate::port::single_messages;
use crate::runner::{FlowNeeds, TWO, WorkloadRole, WorkloadRunner};
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement};
use crate::workers::{self, WorkerTask};
use crate::{Error, TrialEnd};
pub use samples::FlowProgressSample;
use samples::FlowSampler;

/// The longest duration of a run. The longest run of the study (cottrell-2005) takes 24 minutes.
pub(crate) const LONGEST: Nanos = Nanos::secs(6 * 3600);

static PLAN: Factor = Factor {
    name: "plan",
    about: "1 to 64 flows as a JSON list: settings, enters_ns, leaves_ns, data_bytes",
    domain: Domain::Text(64 << 10),
    // One flow, for as long as the longest run.
    default: r#"[{"leaves_ns":21600000000000}]"#,
    ..Factor::FLOW
};
static DURATION: Factor = Factor {
    name: "time",
    short: Some('t'),
    about: "length of the run, warm-up included",
    domain: Domain::Time(SHORTEST, LONGEST),
    default: "60s",
    ..Factor::FLOW
};
static PROBE_EVERY: Factor = Factor {
    name: "probe-every",
    about: "time between probes, one byte to and fro over a connection of its own; 0s sends none",
    domain: Domain::Time(Nanos(0), LONGEST),
    default: "1s",
    ..Factor::FLOW
};

static SWAP: Factor = Factor {
    name: "swap",
    about: "let the flows enter in the opposite order: the last of the plan at the time of the first",
    ..Factor::FLOW
};

/// One flow of a run. Times count from the start of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StaggeredFlow {
    /// The flow's own settings, which may include its transport. They replace the trial's settings of the same names.
    pub settings: Settings,
    /// The time at which the flow enters.
    pub enters_ns: Nanos,
    /// The time at which the flow leaves, even if data is still on its way.
    pub leaves_ns: Nanos,
    /// The bytes that the flow sends before it leaves; `None` if unlimited. The flow leaves once all of them are
    /// acknowledged.
    pub data_bytes: Option<Bytes>,
}

impl StaggeredFlow {
    /// Returns the trial's settings `common` with this flow's own settings in their place. Common settings that the
    /// flow's own transport does not have are left out.
    fn over(&self, common: &Settings) -> Settings {
        let own =
            self.settings.get(TRANSPORT.name).and_then(|name| landspeed_transport::find(name)).map(table);
        let has = |name: &str| own.as_ref().is_none_or(|table| table.find(name).is_ok());
        let mut settings = common.clone();
        settings.retain(|name, _| has(name));
        settings.extend(self.settings.clone());
        settings
    }
}

/// Returns a run of `flows` from client to server that enter and leave at set times, with a probe of the round trip
/// at each `probe_every` (cottrell-2005 section III.A); zero sends no probes. All connections are open from the
/// start, and a flow that leaves is reset.
pub fn spec(flows: &[StaggeredFlow], time: Nanos, probe_every: Nanos) -> Workload {
    let plan = serde_json::to_string(flows).expect("plain data");
    Workload::new(StaggeredWorkload.name())
        .with(PLAN.name, plan)
        .with(DURATION.name, time.exact())
        .with(PROBE_EVERY.name, probe_every.exact())
}

#[derive(Debug)]
pub(crate) struct StaggeredWorkload;

impl WorkloadRunner for StaggeredWorkload {
    fn name(&self) -> &str {
        "staggered"
    }

    fn describe(&self) -> &str {
        "flows that enter and leave at set times, each with its own congestion control, beside a round-trip probe"
    }

    fn roles(&self) -> [WorkloadRole; 2] {
        TWO
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        vec![PLAN, DURATION, PROBE_EVERY, SWAP]
    }

    fn details(&self) -> &'static [DetailRow] {
        const { &[DetailRow::of::<StaggeredDetails>()] }
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        bounds::check(spec, &StaggeredPlan::of(&spec.workload.parameters)?)
    }

    /// Returns zero, because the run counts from its start.
    fn warm_up(&self) -> Nanos {
        Nanos(0)
    }

    fn lasts(&self, parameters: &Settings, _warm_up: Nanos) -> Nanos {
        DURATION.time(parameters)
    }

    fn needs(&self, spec: &TrialSpec) -> FlowNeeds {
        // The plan was checked before, so it can be read.
        let plan = StaggeredPlan::of(&spec.workload.parameters).unwrap_or_default();
        let mut own: Vec<_> = plan.flows.iter().map(|flow| flow.over(&spec.flow)).collect();
        if plan.probes() {
            own.push(single_messages(&Settings::new()));
        }
        FlowNeeds { flows: own.len() as u32, settings: spec.flow.clone(), own, keeps_listening: false }
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        let (role, plan) = (end.session.role(), StaggeredPlan::of(&end.spec.workload.parameters)?);
        let TrialEnd { spec, session, watch, cancel } = end;
        let (flows, mut signals, strangers) = (session.flows, session.signals, session.strangers);
        let (data, probe) = flows.split_at(plan.flows.len());
        if role == Role::Client {
            had_as_asked(data)?;
        }
        let clock = RunClock::new(plan.duration);
        let tasks = match role {
            Role::Client => sending(&plan, &clock, (data, probe), WRITE_SIZE.number(&spec.flow) as usize),
            Role::Server => receiving((data, probe), READ_SIZE.number(&spec.flow) as usize),
        };
        let mut samples = Vec::new();
        let (mut measured, results) = workers::run(&spec.cores, &flows, tasks, |workers| {
            let own = plan.flows.iter().map(|flow| flow.over(&spec.flow));
            let watched = data.iter().zip(own).zip(workers.tallies);
            let watched = watched.map(|((flow, settings), tally)| (flow.as_ref(), settings, tally));
            let mut watch = FlowSampler::new(role, watch, watched, &mut samples);
            let parts =
                TrialParts { spec, flows: data, strangers, signals: &mut signals, watch: &mut watch, cancel };
            timed(parts.trial(workers), &clock)
        })?;
        let mut outcome = report(role, &mut measured, results, data);
        outcome.details.get_mut::<StaggeredDetails>().samples = samples;
        Ok(outcome)
    }
}

#[derive(Debug, Clone, Default)]
struct StaggeredPlan {
    flows: Vec<StaggeredFlow>,
    duration: Nanos,
    probe_every: Nanos,
}

impl StaggeredPlan {
    fn of(parameters: &Settings) -> Result<Self, Error> {
        let flows = landspeed_record::decode(PLAN.of(parameters).as_bytes());
        let mut flows: Vec<StaggeredFlow> = flows.map_err(|why| Error::spec(PLAN.name, why.to_string()))?;
        if SWAP.is_on(parameters) {
            let enters: Vec<Nanos> = flows.iter().rev().map(|flow| flow.enters_ns).collect();
            flows.iter_mut().zip(enters).for_each(|(flow, enters)| flow.enters_ns = enters);
        }
        Ok(StaggeredPlan {
            flows,
            duration: DURATION.time(parameters),
            probe_every: PROBE_EVERY.time(parameters),
        })
    }

    fn probes(&self) -> bool {
        self.probe_every > Nanos(0)
    }
}

/// The clock of a run, which all workers of an end share.
struct RunClock {
    begun: OnceLock<Instant>,
    duration: Duration,
}

impl RunClock {
    fn new(duration: Nanos) -> Self {
        RunClock { begun: OnceLock::new(), duration: duration.into() }
    }

    fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }

    /// Returns the point in time `since` after the run's beginning, or the run's end if that is earlier.
    fn at(&self, since: Nanos) -> Instant {
        let begun = *self.begun.get().expect("the run begins before its workers start");
        begun + Duration::from(since).min(self.duration)
    }

    fn end(&self) -> Instant {
        self.at(Nanos(u64::MAX))
    }
}

/// The details that one end of a staggered run records. The server records only the samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StaggeredDetails {
    /// Round trips of the probes that were answered.
    pub probes: Vec<ProbeSample>,
    /// Number of probes that are not in `probes`, because they or their answers were sent again. Their times would be
    /// those of a retransmission timer.
    pub probes_lost: u64,
    /// For each flow, the time from entering to the acknowledgement of its last byte; `None` if the flow was
    /// unlimited or left before that.
    pub flow_took_ns: Vec<Option<Nanos>>,
    /// Samples, at each interval, of the flows whose transport is not TCP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<FlowProgressSample>,
}

detail!("staggered" => StaggeredDetails);

#[derive(Default)]
struct StaggeredFlowResult {
    /// Bytes that a flow's sender sent, from entering to leaving. The worker's count at the window's end may lack a
    /// call in progress, whose bytes the peer already has.
    sent: u64,
    completions: ZeroCopyCompletions,
    mapped: Bytes,
    /// Time from entering to the last acknowledgement; `None` if the flow did not complete.
    took: Option<Nanos>,
    probes: Vec<ProbeSample>,
    probes_lost: u64,
}

/// The data flows, and the probe if there is one.
type DataAndProbeFlows<'a> = (&'a [Box<dyn Flow>], &'a [Box<dyn Flow>]);

/// Checks that the sending flows have the requested settings, in particular their congestion controls.
fn had_as_asked(flows: &[Box<dyn Flow>]) -> Result<(), Error> {
    let refused =
        flows.iter().find_map(|flow| Some((flow.number(), flow.not_as_asked().into_iter().next()?)));
    refused.map_or(Ok(()), |(flow, found)| Err(Error::NotAsAsked { flow, line: found.line }))
}

fn sending<'a>(
    plan: &'a StaggeredPlan,
    clock: &'a RunClock,
    (data, probe): DataAndProbeFlows<'a>,
    size: usize,
) -> Vec<WorkerTask<'a, StaggeredFlowResult>> {
    let flows = data.iter().zip(&plan.flows);
    let flows = flows.map(|(flow, planned)| sender::send(flow.as_ref(), planned, clock, size));
    let probes = probe.iter().map(|flow| probe::ask(flow.as_ref(), clock, plan.probe_every.into()));
    flows.chain(probes).collect()
}

fn receiving((data, probe): DataAndProbeFlows<'_>, size: usize) -> Vec<WorkerTask<'_, StaggeredFlowResult>> {
    let flows = data.iter().map(|flow| receiver::receive(flow.as_ref(), size));
    flows.chain(probe.iter().map(|flow| probe::answer(flow.as_ref()))).collect()
}

/// Runs the window, which is the whole run after the warm-up. The run begins at an end's first data: sent at the client,
/// received at the server.
fn timed(mut trial: TrialCoordinator<'_, '_>, clock: &RunClock) -> Result<WindowMeasurement, Error> {
    clock.begin();
    let begun = Instant::now();
    trial.workers.start();
    let first = match trial.await_first() {
        // The reset that ends a flow discards what its receiver has not read. On a busy host that can be everything.
        Err(Error::PeerGone { .. }) if trial.peer_closed() => {
            let window_start = trial.open_late(begun);
            return trial.close(&window_start);
        }
        first => first?,
    };
    let warm_up = Duration::from(trial.spec.warm_up_ns);
    let window_start = if warm_up.is_zero() {
        trial.open_from_start()
    } else {
        trial.until(first + warm_up)?;
        trial.open()
    };
    trial.until(first + clock.duration)?;
    trial.close(&window_start)
}

/// Returns the outcome. At the client, samples of flows that have left are removed, because the kernel clears the
/// counters of a connection that is reset. At the server, the counters keep their last values.
fn report(
    role: Role,
    measured: &mut WindowMeasurement,
    results: Vec<StaggeredFlowResult>,
    data: &[Box<dyn Flow>],
) -> EndpointOutcome {
    let counts = std::mem::take(&mut measured.counts);
    let (received, senders) = match role {
        Role::Client => (&[][..], &results[..data.len()]),
        Role::Server => (&counts[..data.len()], &[][..]),
    };
    if role == Role::Client {
        measured.observed.get_mut::<Vec<TcpSample>>().retain(|sample| sample.acked_bytes > Bytes(0));
    }
    let outcome = EndpointOutcome {
        received_bytes: sum(received),
        sent_bytes: Bytes(senders.iter().map(|l| l.sent).sum()),
        flow_bytes: received.iter().copied().map(Bytes).collect(),
        ..outcome(measured, data)
    };
    let outcome = outcome.with(zero_copied(results.iter().map(|l| (l.completions, l.mapped))));
    outcome.with(StaggeredDetails {
        flow_took_ns: senders.iter().map(|l| l.took).collect(),
        probes_lost: results.iter().map(|l| l.probes_lost).sum(),
        probes: results.into_iter().flat_map(|l| l.probes).collect(),
        ..StaggeredDetails::default()
    })
}
