//! The end of a ping-pong that sends back each message.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::EndpointOutcome;
use landspeed_transport::Flow;

use super::PingPongPlan;
use super::exchange::{Exchange, ReceiveOutcome};
use crate::Error;
use crate::end::{outcome, sum};
use crate::signal::TrialSignal;
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement};
use crate::workers::{self, WorkerTask};

/// Interval at which the coordinator checks its peer before its window is open.
const LOOK: Duration = Duration::from_millis(1);
/// Interval at which the coordinator checks for signals of its peer while its window is open. It is long, to disturb
/// the worker as little as possible.
const REST: Duration = Duration::from_millis(50);

pub(super) fn run(parts: TrialParts<'_>, plan: &PingPongPlan) -> Result<EndpointOutcome, Error> {
    let flows = parts.flows;
    let size = AtomicUsize::new(usize::MAX);
    let task = task(flows[0].as_ref(), plan, &size);
    let (mut measured, _) = workers::run(&parts.spec.cores, flows, vec![task], |workers| {
        lead(parts.trial(workers), plan, &size)
    })?;
    let bytes = sum(&measured.counts);
    Ok(EndpointOutcome { received_bytes: bytes, sent_bytes: bytes, ..outcome(&mut measured, flows) })
}

fn lead(
    mut trial: TrialCoordinator<'_, '_>,
    plan: &PingPongPlan,
    size: &AtomicUsize,
) -> Result<WindowMeasurement, Error> {
    trial.workers.start();
    let mut window_start = None;
    let mut due = None;
    while !trial.peer_closed() {
        let said = trial.tick(if window_start.is_some() { REST } else { LOOK })?;
        if let Some(TrialSignal::Size(next)) = said {
            let next = usize::try_from(next).ok().filter(|&next| (1..=plan.largest()).contains(&next));
            let next = next.ok_or(Error::PeerGone { phase: "asking for a size that was not agreed" })?;
            size.store(next, Ordering::Release);
            trial.say(TrialSignal::Ready(next as u64))?;
        }
        if due.is_none() && trial.started() {
            due = Some(Instant::now() + plan.warm_up);
        }
        if window_start.is_none() && due.is_some_and(|due| Instant::now() >= due) {
            window_start = Some(trial.open());
        }
    }
    let window_start = window_start.unwrap_or_else(|| trial.open());
    trial.close(&window_start)
}

fn task<'a>(flow: &'a dyn Flow, plan: &'a PingPongPlan, size: &'a AtomicUsize) -> WorkerTask<'a, ()> {
    Box::new(move |context, ()| {
        let mut exchange = Exchange::new(flow, context, plan)?;
        if !context.begin() {
            return Ok(());
        }
        let mut total = 0;
        while let ReceiveOutcome::Message(got) = exchange.receive(|| size.load(Ordering::Acquire))? {
            if !exchange.send(got)? {
                break;
            }
            total += got as u64;
            context.tally.set(total);
        }
        Ok(())
    })
}
