//! The end of a ping-pong that begins each round and measures it.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use landspeed_record::{EndpointOutcome, LatencyHistogram};
use landspeed_transport::Flow;
use landspeed_units::{Bytes, Nanos};

use super::Plan;
use super::exchange::Exchange;
use crate::Error;
use crate::crew::{self, Task};
use crate::end::{outcome, sum};
use crate::histogram::Latency;
use crate::pace::{Measured, Pace, Parts};
use crate::signal::Signal;

/// How often the coordinator looks whether a size is done, once its time is over.
const LOOK: Duration = Duration::from_millis(1);
/// How much longer than its time a size may take: its last round must come to its end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between coordinator and worker: sizes one way, histograms the other.
struct Desk {
    orders: mpsc::Sender<Bytes>,
    done: mpsc::Receiver<LatencyHistogram>,
}

pub(super) fn run(parts: Parts<'_>, plan: Plan<'_>) -> Result<EndpointOutcome, Error> {
    let flows = parts.flows;
    let (orders, ordered) = mpsc::channel();
    let (report, done) = mpsc::channel();
    let desk = Desk { orders, done };
    // The desk goes with the coordinator: once it is gone, the worker has no more orders and ends.
    let task = task(flows[0].as_ref(), plan, (ordered, report));
    let ((mut measured, latency), _) =
        crew::run(&parts.spec.cores, flows, vec![task], |crew| lead(parts.pace(crew), plan, desk))?;
    let bytes = sum(&measured.counts);
    Ok(EndpointOutcome {
        received_bytes: bytes,
        sent_bytes: bytes,
        flow_bytes: vec![bytes],
        latency,
        ..outcome(&mut measured, flows)
    })
}

fn lead(
    mut pace: Pace<'_, '_>,
    plan: Plan<'_>,
    desk: Desk,
) -> Result<(Measured, Vec<LatencyHistogram>), Error> {
    pace.crew.start();
    let mut mark = None;
    let mut histograms = Vec::with_capacity(plan.sizes.len());
    for size in plan.sizes {
        pace.say(Signal::Size(size.0))?;
        pace.expect("while it got ready for the next size", |said| {
            (said == Signal::Ready(size.0)).then_some(())
        })?;
        desk.orders.send(*size).map_err(|_| Error::Worker)?;
        if mark.is_none() {
            let first = pace.await_first()?;
            pace.until(first + plan.warm_up)?;
            mark = Some(pace.open());
        } else {
            pace.until(Instant::now() + plan.warm_up)?;
        }
        pace.until(Instant::now() + plan.duration)?;
        histograms.push(await_done(&mut pace, &desk)?);
    }
    let mark = mark.expect("a ping-pong has a size (checked)");
    Ok((pace.close(&mark)?, histograms))
}

fn await_done(pace: &mut Pace<'_, '_>, desk: &Desk) -> Result<LatencyHistogram, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match desk.done.try_recv() {
            Ok(histogram) => return Ok(histogram),
            Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => return Err(Error::Worker),
        }
        if Instant::now() > deadline {
            return Err(Error::PeerSilent {
                phase: "while the last answer was awaited",
                waited: PATIENCE.into(),
            });
        }
        pace.tick(LOOK)?;
    }
}

fn task<'a>(
    flow: &'a dyn Flow,
    plan: Plan<'a>,
    (ordered, report): (mpsc::Receiver<Bytes>, mpsc::Sender<LatencyHistogram>),
) -> Task<'a, ()> {
    Box::new(move |station, ()| {
        let mut exchange = Exchange::new(flow, station, (plan.receiver, plan.largest()))?;
        if !station.begin() {
            return Ok(());
        }
        let mut total = 0;
        let mut round = |exchange: &mut Exchange<'_>, size: usize| -> Result<bool, Error> {
            if !exchange.send(size)? || exchange.receive(|| size)?.is_none() {
                return Ok(false);
            }
            total += size as u64;
            station.tally.set(total);
            Ok(true)
        };
        while let Ok(size) = ordered.recv() {
            let mut latency = Latency::new();
            if !rounds(plan, &mut latency, || round(&mut exchange, size.0 as usize))? {
                break;
            }
            // Nobody listens any more where the coordinator gave up.
            let _ = report.send(latency.export(size));
        }
        Ok(())
    })
}

/// Rounds of one size: one clock read each, whose end is the next one's start. The first read of the
/// counted part follows the warm-up.
fn rounds(
    plan: Plan<'_>,
    latency: &mut Latency,
    mut round: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let mut before = Instant::now();
    let counted = before + plan.warm_up;
    let end = counted + plan.duration;
    while before < end {
        if !round()? {
            return Ok(false);
        }
        let now = Instant::now();
        if before >= counted {
            latency.record(Nanos::from(now - before));
        }
        before = now;
    }
    Ok(true)
}
