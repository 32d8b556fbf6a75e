//! `connect`: connections set up and closed, one after the other.
//!
//! The set-up time is that of connect(2) alone. Connections per second count the whole cycle: socket,
//! connect, proof of the key both ways (one request and one response), and the end.

use std::io::ErrorKind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landspeed_factor::{Domain, Factor};
use landspeed_record::{Amount, Connections, EndpointOutcome, GridFigure, Headline, Settings, TrialSpec};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{Call, Delivery, Flow, Listener, Patience};
use landspeed_units::{Bytes, Nanos};

use crate::end::outcome;
use crate::histogram::Latency;
use crate::parameter;
use crate::port::{single_messages, transport};
use crate::runner::{Needs, Runner};
use crate::session::More;
use crate::trial::{Measured, Parts, Trial};
use crate::workers::{self, Station, Task};
use crate::{ClientPlan, Error, TrialEnd, check};

/// The most that one connection may take: a lost SYN is sent again after one second, three, seven
/// (RFC 6298 section 2).
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
/// Pause before a client looks again whether the server has ended its part.
const AGAIN: Duration = Duration::from_micros(20);

#[derive(Debug)]
pub(crate) struct Connect;

impl Runner for Connect {
    fn name(&self) -> &'static str {
        "connect"
    }

    fn describe(&self) -> &'static str {
        "connections set up and closed, one after the other; their rate, and the distribution of set-up times"
    }

    fn parameters(&self) -> Vec<&'static Factor> {
        vec![&DURATION, &CLOSE]
    }

    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        &[Headline {
            name: "connections",
            about: "set up and closed one after the other, in a second of the client's window",
            of: |end| {
                let Some(Connections(made)) = end.details.find()? else { return Ok(None) };
                let seconds = end.window_ns.as_secs_f64();
                Ok((seconds > 0.0).then(|| Amount::PerSecond(*made as f64 / seconds)))
            },
        }]
    }

    fn latency(&self) -> &'static str {
        "connection set-up time"
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        if check::delivery(&spec.flow) != Delivery::Stream {
            let why = format!("{} sets up no connections: connect needs a stream", TRANSPORT.of(&spec.flow));
            return Err(Error::spec("transport", why));
        }
        Ok(())
    }

    fn figure(&self) -> GridFigure {
        GridFigure::P50Ns
    }

    fn lasts(&self, parameters: &Settings, _warm_up: Nanos) -> Nanos {
        DURATION.time(parameters)
    }

    fn needs(&self, spec: &TrialSpec) -> Needs {
        let settings = single_messages(&spec.flow);
        Needs { flows: 0, settings, own: Vec::new(), keeps_listening: true }
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        let TrialEnd { spec, session, watch, cancel } = end;
        let mut signals = session.signals;
        let parts =
            Parts { spec, flows: &[], strangers: session.strangers, signals: &mut signals, watch, cancel };
        match session.more {
            More::Call(plan) => call(parts, &plan, &self.needs(spec).settings),
            More::Accept(listener) => answer(parts, listener.expect("this workload keeps listening")),
        }
    }
}

fn call(parts: Parts<'_>, plan: &ClientPlan, settings: &Settings) -> Result<EndpointOutcome, Error> {
    let counting = AtomicBool::new(false);
    let latency = Mutex::new(Latency::new());
    let orderly = is_orderly(parts.spec);
    let task: Task<'_, ()> = Box::new(|station, ()| {
        let mut latency = latency.try_lock().expect("one worker only");
        calls(station, (plan, settings), |flow, patience| {
            if counting.load(Ordering::Relaxed) {
                latency.record(flow.set_up());
            }
            if orderly { end_second(flow, patience) } else { Ok(()) }
        })
    });
    let (mut measured, _) =
        workers::run(&parts.spec.cores, &[], vec![task], |workers| timed(parts.trial(workers), &counting))?;
    let connections = Connections(measured.counts[0]);
    let latency = vec![latency.into_inner().expect("the worker did not panic").export(Bytes(0))];
    Ok(EndpointOutcome { latency, ..outcome(&mut measured, &[]) }.with(connections))
}

/// One connection after the other until stopped. The kernel chooses the source ports: one and the same
/// could be taken again only when the server has seen the close.
fn calls(
    station: &Station<'_>,
    (plan, settings): (&ClientPlan, &Settings),
    mut connected: impl FnMut(&dyn Flow, &Patience<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if !station.begin() {
        return Ok(());
    }
    let transport = transport(TRANSPORT.of(settings))?;
    let server = plan.towards(transport)?;
    let mut count = 0;
    while !station.stopped() {
        let patience = Patience { until: Instant::now() + ONE, cancel: station.stop() };
        let call = Call { server, number: 0, source_port: 0, settings, key: &plan.key };
        let flow = transport.connect(&call, &patience).map_err(Error::from);
        match flow.and_then(|flow| connected(flow.as_ref(), &patience)) {
            Ok(()) => {
                count += 1;
                station.tally.set(count);
            }
            Err(_) if station.stopped() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_orderly(spec: &TrialSpec) -> bool {
    CLOSE.of(&spec.workload.parameters) == "orderly"
}

/// Ends a flow after the server has: the port in TIME_WAIT is then the server's, and a client's are soon used up.
fn end_second(flow: &dyn Flow, patience: &Patience<'_>) -> Result<(), Error> {
    let mut receiver = flow.receiver()?;
    while receiver.try_receive(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
        patience.slice()?.ok_or(Error::silent("while a connection's end was awaited", ONE))?;
        std::thread::sleep(AGAIN);
    }
    Ok(flow.finish(patience)?)
}

fn answer(parts: Parts<'_>, mut listener: Box<dyn Listener>) -> Result<EndpointOutcome, Error> {
    let orderly = is_orderly(parts.spec);
    let task: Task<'_, ()> = Box::new(move |station, ()| {
        if !station.begin() {
            return Ok(());
        }
        let mut count = 0;
        while !station.stopped() {
            let patience = Patience { until: Instant::now() + ONE, cancel: station.stop() };
            let flow = listener.accept(&patience);
            match flow.and_then(|flow| if orderly { flow.finish(&patience) } else { Ok(()) }) {
                Ok(()) => {
                    count += 1;
                    station.tally.set(count);
                }
                Err(_) if station.stopped() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    });
    let counting = AtomicBool::new(false);
    let (mut measured, _) =
        workers::run(&parts.spec.cores, &[], vec![task], |workers| timed(parts.trial(workers), &counting))?;
    Ok(outcome(&mut measured, &[]))
}

/// Start, warm-up, window; `counting` is true while the window is open.
fn timed(mut trial: Trial<'_, '_>, counting: &AtomicBool) -> Result<Measured, Error> {
    let duration = Duration::from(DURATION.time(&trial.spec.workload.parameters));
    trial.workers.start();
    let first = trial.await_first()?;
    trial.until(first + Duration::from(trial.spec.warm_up_ns))?;
    let mark = trial.open();
    counting.store(true, Ordering::Relaxed);
    trial.until(Instant::now() + duration)?;
    counting.store(false, Ordering::Relaxed);
    trial.close(&mark)
}
