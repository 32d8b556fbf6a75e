//! The end of a ping-pong that sends back each message.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::EndpointOutcome;
use landspeed_transport::Flow;

use super::Plan;
use super::exchange::{Exchange, Heard};
use crate::Error;
use crate::end::{outcome, sum};
use crate::signal::Signal;
use crate::trial::{Measured, Parts, Trial};
use crate::workers::{self, Task};

/// Interval at which the coordinator checks its peer before its window is open.
const LOOK: Duration = Duration::from_millis(1);
/// The interval between looks once the window is open, as long as possible.
const REST: Duration = Duration::from_millis(50);

pub(super) fn run(parts: Parts<'_>, plan: &Plan) -> Result<EndpointOutcome, Error> {
    let flows = parts.flows;
    let size = AtomicUsize::new(usize::MAX);
    let task = task(flows[0].as_ref(), plan, &size);
    let (mut measured, _) = workers::run(&parts.spec.cores, flows, vec![task], |workers| {
        lead(parts.trial(workers), plan, &size)
    })?;
    let bytes = sum(&measured.counts);
    Ok(EndpointOutcome { received_bytes: bytes, sent_bytes: bytes, ..outcome(&mut measured, flows) })
}

fn lead(mut trial: Trial<'_, '_>, plan: &Plan, size: &AtomicUsize) -> Result<Measured, Error> {
    trial.workers.start();
    let mut mark = None;
    let mut due = None;
    while !trial.peer_closed() {
        let said = trial.tick(if mark.is_some() { REST } else { LOOK })?;
        if let Some(Signal::Size(next)) = said {
            let next = usize::try_from(next).ok().filter(|&next| (1..=plan.largest()).contains(&next));
            let next = next.ok_or(Error::PeerGone { phase: "asking for a size that was not agreed" })?;
            size.store(next, Ordering::Release);
            trial.say(Signal::Ready(next as u64))?;
        }
        if due.is_none() && trial.started() {
            due = Some(Instant::now() + plan.warm_up);
        }
        if mark.is_none() && due.is_some_and(|due| Instant::now() >= due) {
            mark = Some(trial.open());
        }
    }
    let mark = mark.unwrap_or_else(|| trial.open());
    trial.close(&mark)
}

fn task<'a>(flow: &'a dyn Flow, plan: &'a Plan, size: &'a AtomicUsize) -> Task<'a, ()> {
    Box::new(move |station, ()| {
        let mut exchange = Exchange::new(flow, station, plan)?;
        if !station.begin() {
            return Ok(());
        }
        let mut total = 0;
        while let Heard::Message(got) = exchange.receive(|| size.load(Ordering::Acquire))? {
            if !exchange.send(got)? {
                break;
            }
            total += got as u64;
            station.tally.set(total);
        }
        Ok(())
    })
}
