//! `connect`: connections set up and closed, one after the other.
//!
//! The set-up time is that of connect(2) alone. Connections per second count the whole cycle: socket,
//! connect, proof of the key both ways (one request and one response), abrupt close. The close leaves
//! no TIME_WAIT, so a long run does not use up the ports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landspeed_factor::Factor;
use landspeed_record::{Connections, EndpointOutcome, Settings, TrialSpec};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{Call, Delivery, Listener, Patience};
use landspeed_units::{Bytes, Nanos};

use crate::crew::{self, Station, Task};
use crate::end::outcome;
use crate::histogram::Latency;
use crate::noun::{Needs, Runner};
use crate::pace::{Measured, Pace, Parts};
use crate::parameter;
use crate::port::{single_messages, transport};
use crate::session::More;
use crate::{ClientPlan, End, Error, check};

/// The most that one connection may take: a lost SYN is sent again after one second, three, seven
/// (RFC 6298 section 2).
const ONE: Duration = Duration::from_secs(8);

static DURATION: Factor = parameter::DURATION;

/// Connections set up and closed.
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
        vec![&DURATION]
    }

    fn latency(&self) -> &'static str {
        "connection set-up time"
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        if check::delivery(&spec.flow) != Delivery::Stream {
            let why = format!("{} sets up no connections: connect needs tcp", TRANSPORT.of(&spec.flow));
            return Err(check::spec("transport", why));
        }
        Ok(())
    }

    fn lasts(&self, parameters: &Settings) -> Nanos {
        DURATION.time(parameters)
    }

    fn needs(&self, spec: &TrialSpec) -> Needs {
        let settings = single_messages(&spec.flow);
        Needs { flows: 0, settings, own: Vec::new(), keeps_listening: true }
    }

    fn run(&self, end: End<'_>) -> Result<EndpointOutcome, Error> {
        let End { spec, session, watch, cancel } = end;
        let mut signals = session.signals;
        let parts =
            Parts { spec, flows: &[], strangers: session.strangers, signals: &mut signals, watch, cancel };
        match session.more {
            More::Call(plan) => call(parts, &plan, &self.needs(spec).settings),
            More::Accept(listener) => answer(parts, listener.expect("this workload keeps listening")),
        }
    }
}

/// The client's end.
fn call(parts: Parts<'_>, plan: &ClientPlan, settings: &Settings) -> Result<EndpointOutcome, Error> {
    let counting = AtomicBool::new(false);
    let latency = Mutex::new(Latency::new());
    let task: Task<'_, ()> = Box::new(|station, ()| {
        let mut latency = latency.try_lock().expect("one worker only");
        calls(station, (plan, settings), |set_up| {
            if counting.load(Ordering::Relaxed) {
                latency.record(set_up);
            }
        })
    });
    let (mut measured, _) =
        crew::run(&parts.spec.cores, &[], vec![task], |crew| timed(parts.pace(crew), &counting))?;
    let connections = Connections(measured.counts[0]);
    let latency = vec![latency.into_inner().expect("the worker did not panic").export(Bytes(0))];
    Ok(EndpointOutcome { latency, ..outcome(&mut measured, &[]) }.with(connections))
}

/// One connection after the other until stopped. The kernel chooses the source ports: one and the same
/// could be taken again only when the server has seen the close.
fn calls(
    station: &Station<'_>,
    (plan, settings): (&ClientPlan, &Settings),
    mut set_up: impl FnMut(Nanos),
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
        match transport.connect(&call, &patience) {
            Ok(flow) => {
                set_up(flow.set_up());
                count += 1;
                station.tally.set(count);
            }
            Err(_) if station.stopped() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The server's end.
fn answer(parts: Parts<'_>, mut listener: Box<dyn Listener>) -> Result<EndpointOutcome, Error> {
    let task: Task<'_, ()> = Box::new(move |station, ()| {
        if !station.begin() {
            return Ok(());
        }
        let mut count = 0;
        while !station.stopped() {
            let patience = Patience { until: Instant::now() + ONE, cancel: station.stop() };
            match listener.accept(&patience) {
                Ok(_closed_at_once) => {
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
        crew::run(&parts.spec.cores, &[], vec![task], |crew| timed(parts.pace(crew), &counting))?;
    Ok(outcome(&mut measured, &[]))
}

/// Start, warm-up, window; `counting` is true while the window is open.
fn timed(mut pace: Pace<'_, '_>, counting: &AtomicBool) -> Result<Measured, Error> {
    let duration = Duration::from(DURATION.time(&pace.spec.workload.parameters));
    pace.crew.start();
    let first = pace.await_first()?;
    pace.until(first + Duration::from(pace.spec.warm_up_ns))?;
    let mark = pace.open();
    counting.store(true, Ordering::Relaxed);
    pace.until(Instant::now() + duration)?;
    counting.store(false, Ordering::Relaxed);
    pace.close(&mark)
}
