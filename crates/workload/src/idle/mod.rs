//! `idle`: opens and holds connections that carry no data, and measures the memory and the processor time that each
//! takes.
//!
//! Memory is the growth of the kernel's slabs (/proc/meminfo, proc(5)) from before the first connection until all are
//! open. Anything else that grows in that time is included, and two hosts on one machine include each other's growth.

pub(crate) mod memory;

use std::time::{Duration, Instant};

use landspeed_record::factor::{Domain, Factor, FactorDeclaration};
use landspeed_record::units::{Bytes, CpuNanos, Nanos};
use landspeed_record::{
    CpuUsage, DetailRow, EndpointOutcome, FigureValue, Headline, Settings, TrialSpec, detail,
};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{ConnectRequest, Delivery, Flow, Patience};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::end::{UnmetSettings, outcome_of};
use crate::parameter;
use crate::port::{single_messages, transport};
use crate::runner::{FlowNeeds, WorkloadRunner};
use crate::session::FlowSource;
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement};
use crate::workers::{self, WorkerContext, WorkerTask};
use crate::{ClientPlan, Error, TrialEnd, check, room};

/// The usual time limit for opening all connections: twice the usual patience.
const OPENING: Duration = Duration::from_secs(60);

static CONNECTIONS: Factor = Factor {
    name: "connections",
    short: Some('n'),
    about: "connections to open and hold",
    domain: Domain::Int(1, 50_000),
    default: "500",
    ..Factor::FLOW
};
static DURATION: Factor = parameter::DURATION;

#[derive(Debug)]
pub(crate) struct IdleWorkload;

/// The connections that a host held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct HeldConnections {
    /// Number of connections that were open.
    connections: u64,
    /// Growth of the kernel's slabs from before the first connection until all were open.
    kernel_bytes: Bytes,
}

detail!("idle" => HeldConnections);

static HEADLINES: &[Headline<EndpointOutcome>] = &[
    Headline {
        name: "held",
        about: "connections that were open through the whole window",
        of: |end| Ok(held(end)?.map(|held| held.connections.into())),
    },
    Headline {
        name: "kernel memory each",
        about: "growth of slabs and socket buffers while they opened, by connection",
        of: |end| Ok(held(end)?.and_then(|held| each(held.kernel_bytes.0, held)).map(|n| Bytes(n).into())),
    },
    Headline {
        name: "processor time each",
        about: "of the workload in a second, by connection",
        of: |end| {
            let (seconds, used) = (end.window_ns.as_secs_f64(), end.observed.get::<CpuUsage>().own());
            let each =
                |held: &HeldConnections| CpuNanos((used.0 as f64 / seconds / held.connections as f64) as u64);
            Ok(held(end)?
                .filter(|held| held.connections > 0 && seconds > 0.0)
                .map(each)
                .map(FigureValue::from))
        },
    },
];

fn held(end: &EndpointOutcome) -> Result<Option<&HeldConnections>, landspeed_record::DetailError> {
    end.details.find()
}

fn each(all: u64, held: &HeldConnections) -> Option<u64> {
    all.checked_div(held.connections)
}

impl WorkloadRunner for IdleWorkload {
    fn name(&self) -> &str {
        "idle"
    }

    fn describe(&self) -> &str {
        "connections opened and held; the memory and the processor time of each"
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        vec![CONNECTIONS, DURATION]
    }

    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        HEADLINES
    }

    fn details(&self) -> &'static [DetailRow] {
        const { &[DetailRow::of::<HeldConnections>()] }
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        check::delivers(&spec.flow, Delivery::Stream, |transport| {
            format!("{transport} has no connections to hold: idle needs a stream")
        })
    }

    fn lasts(&self, parameters: &Settings, _warm_up: Nanos) -> Nanos {
        DURATION.time(parameters) + Nanos::from(OPENING)
    }

    fn needs(&self, spec: &TrialSpec) -> FlowNeeds {
        FlowNeeds { keeps_listening: true, ..FlowNeeds::alike(0, single_messages(&spec.flow)) }
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        let TrialEnd { spec, session, watch, cancel } = end;
        let (settings, strangers) = (self.needs(spec).settings, session.strangers);
        let (mut signals, more) = (session.signals, Mutex::new(Some(session.more)));
        let wanted = CONNECTIONS.number(&spec.workload.parameters);
        let limit = OPENING.max(2 * Duration::from(spec.patience()));
        has_room(wanted, more.lock().as_ref())?;
        let before = memory::kernel()?;
        let parts = TrialParts { spec, flows: &[], strangers, signals: &mut signals, watch, cancel };
        let task: WorkerTask<'_, UnmetSettings> = Box::new(|context, unmet| {
            let more = more.lock().take().expect("taken once");
            if context.begin() {
                let held = hold(context, more, wanted, &settings, limit)?;
                context.rest();
                unmet.extend(held.iter().flat_map(|flow| flow.not_as_asked()));
                drop(held);
            }
            Ok(())
        });
        let ((mut measured, grown), unmet) = workers::run(&spec.cores, &[], vec![task], |workers| {
            let mut trial = parts.trial(workers);
            opened(&mut trial, wanted, limit)?;
            let grown = Bytes(memory::kernel()?.0.saturating_sub(before.0));
            Ok((window(trial)?, grown))
        })?;
        let unmet = unmet.into_iter().flatten().collect();
        Ok(outcome_of(&mut measured, unmet)
            .with(HeldConnections { connections: wanted, kernel_bytes: grown }))
    }
}

/// Checks that this end may open enough files for `wanted` connections and, if it opens them, has enough local ports.
fn has_room(wanted: u64, more: Option<&FlowSource>) -> Result<(), Error> {
    room::files(wanted)?;
    match more {
        Some(FlowSource::Call(plan)) => room::local_ports(wanted, plan.server),
        _ => Ok(()),
    }
}

/// Opens or accepts `wanted` connections, and returns them. Returns fewer if the worker must stop.
fn hold(
    context: &WorkerContext<'_>,
    mut more: FlowSource,
    wanted: u64,
    settings: &Settings,
    limit: Duration,
) -> Result<Vec<Box<dyn Flow>>, Error> {
    let patience = Patience { until: Instant::now() + limit, cancel: context.stop() };
    let mut held = Vec::new();
    while (held.len() as u64) < wanted && !context.stopped() {
        held.push(match &mut more {
            FlowSource::Call(plan) => call(plan, settings, &patience)?,
            FlowSource::Accept(listener) => {
                listener.as_mut().expect("this workload keeps listening").accept(&patience)?
            }
        });
        context.tally.set(held.len() as u64);
    }
    Ok(held)
}

fn call(plan: &ClientPlan, settings: &Settings, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
    let transport = transport(TRANSPORT.of(settings))?;
    let server = plan.towards(transport)?;
    let call = ConnectRequest { server, number: 0, source_port: 0, settings, key: &plan.key };
    Ok(transport.connect(&call, patience)?)
}

/// Starts the worker, and waits, for at most `limit`, until it has opened or accepted all `wanted` connections.
fn opened(trial: &mut TrialCoordinator<'_, '_>, wanted: u64, limit: Duration) -> Result<(), Error> {
    trial.workers.start();
    trial.await_first()?;
    let until = Instant::now() + limit;
    while trial.workers.tallies[0].get() < wanted {
        trial.until((Instant::now() + Duration::from_millis(5)).min(until))?;
        if Instant::now() >= until {
            return Err(Error::silent("while connections were opened", limit));
        }
    }
    Ok(())
}

fn window(mut trial: TrialCoordinator<'_, '_>) -> Result<WindowMeasurement, Error> {
    trial.until(Instant::now() + Duration::from(trial.spec.warm_up_ns))?;
    let window_start = trial.open();
    trial.until(Instant::now() + Duration::from(DURATION.time(&trial.spec.workload.parameters)))?;
    trial.close(&window_start)
}
