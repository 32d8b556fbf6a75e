//! `stream`: sends bytes for a set time, and measures goodput at the receiver.

mod worker;

use std::time::{Duration, Instant};

use landspeed_record::factor::{Factor, FactorDeclaration};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, PathStall, Role, Settings, TrialSpec, Workload};
use landspeed_transport::Flow;
use landspeed_transport::settings::{READ_SIZE, WRITE_SIZE};

use crate::end::{outcome, sum, zero_copied};
use crate::parameter;
use crate::runner::{FlowNeeds, WorkloadRunner};
use crate::session::flows;
use crate::trial::{TrialCoordinator, WindowMeasurement, WindowStart};
use crate::workers::{self, WorkerTask};
use crate::{Error, TrialEnd};

pub(crate) use worker::{ReceiveLoop, ZeroCopyResult, why};
use worker::{receive, send};

static DURATION: Factor = parameter::DURATION;
static REVERSE: Factor =
    Factor { name: "reverse", short: Some('R'), about: "send from server to client", ..Factor::FLOW };
static BIDIR: Factor = Factor { name: "bidir", about: "send both ways at once", ..Factor::FLOW };

/// Returns a stream workload that sends from client to server for `time`.
pub fn spec(time: Nanos) -> Workload {
    Workload::new(StreamWorkload.name()).with(DURATION.name, time.exact())
}

#[derive(Debug)]
pub(crate) struct StreamWorkload;

impl WorkloadRunner for StreamWorkload {
    fn name(&self) -> &str {
        "stream"
    }

    fn describe(&self) -> &str {
        "bytes for a set time over one or more flows; goodput at the receiver"
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        vec![DURATION, REVERSE, BIDIR]
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        let asked = &spec.workload.parameters;
        if REVERSE.is_on(asked) && BIDIR.is_on(asked) {
            return Err(Error::spec("bidir", "it is both ways at once: leave reverse out".to_owned()));
        }
        Ok(())
    }

    fn lasts(&self, parameters: &Settings, _warm_up: Nanos) -> Nanos {
        DURATION.time(parameters)
    }

    fn needs(&self, spec: &TrialSpec) -> FlowNeeds {
        FlowNeeds::alike(flows(&spec.flow), spec.flow.clone())
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        let asked = &end.spec.workload.parameters;
        let duration = DURATION.time(asked);
        end.with_parts(|parts, role| {
            let (spec, flows, directions) = (parts.spec, parts.flows, FlowDirections::of(asked, role));
            let tasks = directions.tasks(flows, &spec.flow);
            let receiving = directions.receiving(flows);
            let (mut measured, zero_copy) = workers::run(&spec.cores, flows, tasks, |workers| {
                timed(parts.trial(workers).telling(receiving), duration.into())
            })?;
            Ok(directions.report(&mut measured, &zero_copy, flows))
        })
    }
}

/// Runs the trial. If the path breaks, the result contains what was measured until then.
fn timed(mut trial: TrialCoordinator<'_, '_>, duration: Duration) -> Result<WindowMeasurement, Error> {
    let begun = Instant::now();
    trial.workers.start();
    let mut window_start = None;
    let ran = pass(&mut trial, duration, &mut window_start);
    let window_start = window_start.unwrap_or_else(|| trial.open_late(begun));
    match ran {
        Ok(()) => trial.close(&window_start),
        Err(Error::PathBroke(broken)) => Ok(trial.break_off(&window_start, broken)),
        // The peer closed its window early: it has waited for the path as long as this end would have.
        Err(Error::PeerGone { .. }) if trial.peer_closed() => {
            let broken = PathStall { waited_ns: trial.patience().into(), ..PathStall::default() };
            Ok(trial.break_off(&window_start, broken))
        }
        Err(error) => Err(error),
    }
}

/// Waits until the warm-up and the window are over. Sets `window_start` when the window opens. If no data arrives, the
/// window does not open.
fn pass(
    trial: &mut TrialCoordinator<'_, '_>,
    duration: Duration,
    window_start: &mut Option<WindowStart>,
) -> Result<(), Error> {
    let Some(first) = trial.first()? else { return Ok(()) };
    trial.until(first + Duration::from(trial.spec.warm_up_ns))?;
    *window_start = Some(trial.open());
    trial.until(Instant::now() + duration)
}

/// The directions in which one end uses each flow.
#[derive(Debug, Clone, Copy)]
struct FlowDirections {
    sends: bool,
    receives: bool,
}

impl FlowDirections {
    fn of(asked: &Settings, role: Role) -> Self {
        let (both, sends) = (BIDIR.is_on(asked), (role == Role::Client) != REVERSE.is_on(asked));
        FlowDirections { sends: both || sends, receives: both || !sends }
    }

    /// Returns one task for each flow and direction: first all that receive, then all that send.
    fn tasks<'a>(
        self,
        flows: &'a [Box<dyn Flow>],
        settings: &Settings,
    ) -> Vec<WorkerTask<'a, ZeroCopyResult>> {
        let (read, write) = (READ_SIZE.number(settings) as usize, WRITE_SIZE.number(settings) as usize);
        let mut tasks: Vec<WorkerTask<'a, ZeroCopyResult>> = Vec::new();
        if self.receives {
            tasks.extend(flows.iter().map(|flow| receive(flow.as_ref(), read)));
        }
        if self.sends {
            tasks.extend(flows.iter().map(|flow| send(flow.as_ref(), write)));
        }
        tasks
    }

    /// Returns the number of tasks that receive.
    fn receiving(self, flows: &[Box<dyn Flow>]) -> usize {
        if self.receives { flows.len() } else { 0 }
    }

    fn report(
        self,
        measured: &mut WindowMeasurement,
        zero_copy: &[ZeroCopyResult],
        flows: &[Box<dyn Flow>],
    ) -> EndpointOutcome {
        let receiving = self.receiving(flows);
        let (received, sent) = measured.counts.split_at(receiving);
        EndpointOutcome {
            received_bytes: sum(received),
            sent_bytes: sum(sent),
            flow_bytes: received.iter().copied().map(Bytes).collect(),
            ..outcome(measured, flows)
        }
        .with(zero_copied(zero_copy.iter().map(|l| (l.completions, l.mapped))))
    }
}
