//! `connect`: sets up and closes connections, one after the other.
//!
//! The set-up time is that of connect(2) alone. Connections per second count the whole cycle: socket, connect, proof
//! of the key in both directions (one request and one response), and the close.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::factor::{Domain, Factor, FactorDeclaration};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    ConnectionCount, DetailError, EndpointOutcome, FailedConnections, FigureValue, GridFigure, Headline,
    Settings, SnmpCounts, TrialSpec,
};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{CancelFlag, ConnectRequest, Delivery, Flow, Listener, Patience};

use crate::end::{UnmetSettings, outcome_of};
use crate::histogram::LatencyRecorder;
use crate::moment::AtomicMoment;
use crate::parameter;
use crate::port::{single_messages, transport};
use crate::runner::{FlowNeeds, WorkloadRunner};
use crate::session::FlowSource;
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement};
use crate::workers::{self, WorkerContext, WorkerTask};
use crate::{ClientPlan, Error, TrialEnd, check};

/// Time limit of one connection: a lost SYN is sent again after one, three and seven seconds (RFC 6298 section 2).
const ONE: Duration = Duration::from_secs(8);

static DURATION: Factor = parameter::DURATION;
static CLOSE: Factor = Factor {
    name: "close",
    about: "how connections end: abruptly by a reset, which keeps no port in TIME_WAIT, or in order by both ends, the server first",
    domain: Domain::OneOf(&["abrupt", "orderly"]),
    default: "abrupt",
    source: "RFC 9293 section 3.6",
    ..Factor::FLOW
};
/// The set-up time above which a SYN or its answer must have been lost.
const LONG: Duration = Duration::from_secs(1);
/// Interval at which the coordinator checks whether the last connection is set up.
const LOOK: Duration = Duration::from_millis(5);
/// Interval at which a client checks if the server has closed a connection.
const AGAIN: Duration = Duration::from_micros(20);

#[derive(Debug)]
pub(crate) struct ConnectWorkload;

impl WorkloadRunner for ConnectWorkload {
    fn name(&self) -> &str {
        "connect"
    }

    fn describe(&self) -> &str {
        "connections set up and closed, one after the other; their rate, and the distribution of set-up times"
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        vec![DURATION, CLOSE]
    }

    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        HEADLINES
    }

    fn latency(&self) -> &'static str {
        "connection set-up time"
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        check::delivers(&spec.flow, Delivery::Stream, |transport| {
            format!("{transport} sets up no connections: connect needs a stream")
        })
    }

    fn figure(&self) -> GridFigure {
        GridFigure::LATENCY
    }

    fn lasts(&self, parameters: &Settings, _warm_up: Nanos) -> Nanos {
        DURATION.time(parameters)
    }

    fn needs(&self, spec: &TrialSpec) -> FlowNeeds {
        FlowNeeds { keeps_listening: true, ..FlowNeeds::alike(0, single_messages(&spec.flow)) }
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        let TrialEnd { spec, session, watch, cancel } = end;
        let mut signals = session.signals;
        let parts = TrialParts {
            spec,
            flows: &[],
            strangers: session.strangers,
            signals: &mut signals,
            watch,
            cancel,
        };
        match session.more {
            FlowSource::Call(plan) => call(parts, &plan, &self.needs(spec).settings),
            FlowSource::Accept(listener) => answer(parts, listener.expect("this workload keeps listening")),
        }
    }
}

static HEADLINES: &[Headline<EndpointOutcome>] = &[
    Headline {
        name: "connections",
        about: "set up and closed one after the other, in a second of the client's window",
        of: |end| {
            let Some(ConnectionCount(made)) = end.details.find()? else { return Ok(None) };
            let seconds = end.window_ns.as_secs_f64();
            Ok((seconds > 0.0).then(|| FigureValue::PerSecond(*made as f64 / seconds)))
        },
    },
    Headline {
        name: "not set up",
        about: "connections begun within the window that took longer than 8 s, or than a second after its end",
        of: |end| Ok(end.details.find()?.map(|FailedConnections(count)| (*count).into())),
    },
    Headline {
        name: "SYNs sent again",
        about: "SYNs and their answers that this host sent again in its window (TcpExt.TCPSynRetrans)",
        of: |end| counted(end, &["TcpExt.TCPSynRetrans"]),
    },
    Headline {
        name: "SYNs dropped",
        about: "by this host: full listen queues (TcpExt.ListenDrops), or the tracking of connections (nf_conntrack drop, insert_failed)",
        of: |end| counted(end, &["TcpExt.ListenDrops", "Conntrack.drop", "Conntrack.insert_failed"]),
    },
];

/// Returns the sum of the growth of the host's counters `names` in the window; `None` if they were not observed.
fn counted(end: &EndpointOutcome, names: &[&str]) -> Result<Option<FigureValue>, DetailError> {
    let counts: Option<&SnmpCounts> = end.observed.details.find()?;
    let of = |counts: &SnmpCounts| names.iter().filter_map(|name| counts.0.get(*name)).sum::<u64>();
    Ok(counts.map(of).map(FigureValue::from))
}

/// The result of the worker that opens connections.
#[derive(Default)]
struct CallerResult {
    latency: Option<LatencyRecorder>,
    not_set_up: u64,
    unmet: UnmetSettings,
}

impl CallerResult {
    /// Records the set-up time of a connection that began within the window.
    fn record(&mut self, took: Nanos) {
        self.latency.get_or_insert_with(LatencyRecorder::new).record(took);
    }

    /// Counts a connection as not set up. `waited` is recorded as its set-up time.
    fn missed(&mut self, waited: Duration) {
        self.not_set_up += 1;
        self.record(waited.into());
    }
}

fn call(parts: TrialParts<'_>, plan: &ClientPlan, settings: &Settings) -> Result<EndpointOutcome, Error> {
    let window = CountingWindow { counting: AtomicBool::new(false), in_progress: AtomicMoment::none() };
    let orderly = is_orderly(parts.spec);
    let task: WorkerTask<'_, CallerResult> =
        Box::new(|context, result| calls(context, plan, settings, &window, orderly, result));
    let (mut measured, result) =
        workers::run(&parts.spec.cores, &[], vec![task], |workers| timed(parts.trial(workers), &window))?;
    let result = result.into_iter().next().unwrap_or_default();
    let connections = ConnectionCount(measured.counts[0]);
    let latency = vec![result.latency.unwrap_or_else(LatencyRecorder::new).export(Bytes(0))];
    let outcome = EndpointOutcome { latency, ..outcome_of(&mut measured, result.unmet) };
    Ok(outcome.with(connections).with(FailedConnections(result.not_set_up)))
}

/// Makes one connection after the other until stopped. The kernel chooses the source ports, because a fixed one could
/// be used again only after the server has seen the close. Connections that begin within the window count, however
/// long they take.
fn calls(
    context: &WorkerContext<'_>,
    plan: &ClientPlan,
    settings: &Settings,
    window: &CountingWindow,
    orderly: bool,
    result: &mut CallerResult,
) -> Result<(), Error> {
    if !context.begin() {
        return Ok(());
    }
    let transport = transport(TRANSPORT.of(settings))?;
    let server = plan.towards(transport)?;
    let mut count = 0;
    while !context.stopped() {
        let began = Instant::now();
        // Stores the start before it reads `counting`. If the coordinator, after clearing `counting`, finds no
        // connection in progress, then no later connection counts.
        window.in_progress.set(Some(began));
        let counts = window.counting.load(Ordering::SeqCst);
        if !counts {
            window.in_progress.set(None);
        }
        let patience = Patience { until: began + ONE, cancel: context.stop() };
        let call = ConnectRequest { server, number: 0, source_port: 0, settings, key: &plan.key };
        let called = transport.connect(&call, &patience);
        window.in_progress.set(None);
        match called {
            Ok(flow) => {
                if counts {
                    result.record(flow.set_up());
                }
                result.unmet.extend(flow.not_as_asked());
                if let Err(error) = end(flow.as_ref(), orderly, context.stop()) {
                    return if context.stopped() { Ok(()) } else { Err(error) };
                }
                count += 1;
                context.tally.set(count);
            }
            Err(_) if context.stopped() && !counts => {}
            Err(error) if context.stopped() || gave_up(&error) => result.missed(began.elapsed()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns true if a connection failed because no answer came in time.
fn gave_up(error: &landspeed_transport::Error) -> bool {
    matches!(error, landspeed_transport::Error::NoAnswer { .. })
}

/// Closes a connection. If `orderly` is false it does nothing, because dropping the flow resets the connection.
fn end(flow: &dyn Flow, orderly: bool, cancel: &CancelFlag) -> Result<(), Error> {
    let patience = Patience { until: Instant::now() + ONE, cancel };
    if orderly { end_second(flow, &patience) } else { Ok(()) }
}

fn is_orderly(spec: &TrialSpec) -> bool {
    CLOSE.of(&spec.workload.parameters) == "orderly"
}

/// Closes a flow after the server has closed it. The connection then stays in TIME_WAIT at the server. At the client,
/// connections in TIME_WAIT would soon use up the local ports.
fn end_second(flow: &dyn Flow, patience: &Patience<'_>) -> Result<(), Error> {
    let mut receiver = flow.receiver()?;
    while receiver.try_receive(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
        let phase = "while a connection's end was awaited";
        patience.slice()?.ok_or(Error::PeerSilent { phase, waited: ONE.into(), remedy: "" })?;
        std::thread::sleep(AGAIN);
    }
    Ok(flow.finish(patience)?)
}

fn answer(parts: TrialParts<'_>, mut listener: Box<dyn Listener>) -> Result<EndpointOutcome, Error> {
    let orderly = is_orderly(parts.spec);
    let task: WorkerTask<'_, ()> = Box::new(move |context, ()| {
        if !context.begin() {
            return Ok(());
        }
        let mut count = 0;
        while !context.stopped() {
            let patience = Patience { until: Instant::now() + ONE, cancel: context.stop() };
            let flow = listener.accept(&patience);
            match flow.and_then(|flow| if orderly { flow.finish(&patience) } else { Ok(()) }) {
                Ok(()) => {
                    count += 1;
                    context.tally.set(count);
                }
                Err(_) if context.stopped() => {}
                // No connection arrived within the time limit. The path may drop SYNs for a while.
                Err(landspeed_transport::Error::NobodyCame { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    });
    let window = CountingWindow { counting: AtomicBool::new(false), in_progress: AtomicMoment::none() };
    let (mut measured, _) =
        workers::run(&parts.spec.cores, &[], vec![task], |workers| timed(parts.trial(workers), &window))?;
    Ok(outcome_of(&mut measured, UnmetSettings::new()))
}

/// The state that coordinator and worker share.
struct CountingWindow {
    /// True while the window is open.
    counting: AtomicBool,
    /// The start of the current connection; unset if there is none or it does not count.
    in_progress: AtomicMoment,
}

/// Starts the workers, and runs the warm-up and the window.
fn timed(mut trial: TrialCoordinator<'_, '_>, window: &CountingWindow) -> Result<WindowMeasurement, Error> {
    let duration = Duration::from(DURATION.time(&trial.spec.workload.parameters));
    trial.workers.start();
    let first = trial.await_first()?;
    trial.until(first + Duration::from(trial.spec.warm_up_ns))?;
    let window_start = trial.open();
    window.counting.store(true, Ordering::SeqCst);
    trial.until(Instant::now() + duration)?;
    window.counting.store(false, Ordering::SeqCst);
    trial.close_then(&window_start, |trial| settle(trial, &window.in_progress))
}

/// Waits for the last connection that began within the window, until it is set up or has taken longer than [`LONG`].
/// Without this wait, a slow connection at the window's end would not be counted.
fn settle(trial: &mut TrialCoordinator<'_, '_>, in_progress: &AtomicMoment) -> Result<(), Error> {
    while let Some(began) = in_progress.get().filter(|began| began.elapsed() <= LONG) {
        trial.until((began + LONG + LOOK).min(Instant::now() + LOOK))?;
    }
    Ok(())
}
