//! The end of a ping-pong that starts each round and measures it.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, LatencyHistogram, LostRounds};
use landspeed_transport::{Delivery, Flow};

use super::PingPongPlan;
use super::exchange::{Exchange, ReceiveOutcome};
use crate::Error;
use crate::end::{outcome, sum};
use crate::histogram::LatencyRecorder;
use crate::signal::TrialSignal;
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement};
use crate::workers::{self, WorkerTask};

/// Interval at which the coordinator checks whether a size is done, after the time of the size is over.
const LOOK: Duration = Duration::from_millis(1);

/// Channels between coordinator and worker: sizes in one direction, histograms in the other.
struct PingPongChannels {
    orders: mpsc::Sender<Bytes>,
    done: mpsc::Receiver<SizeResult>,
}

#[derive(Default)]
struct SizeResult {
    latency: LatencyHistogram,
    /// Rounds without an answer.
    lost: u64,
}

pub(super) fn run(parts: TrialParts<'_>, plan: &PingPongPlan) -> Result<EndpointOutcome, Error> {
    let flows = parts.flows;
    let (orders, ordered) = mpsc::channel();
    let (report, done) = mpsc::channel();
    let channels = PingPongChannels { orders, done };
    // The channels are dropped with the coordinator; the worker then gets no more orders and ends.
    let task = task(flows[0].as_ref(), plan, ordered, report);
    let ((mut measured, done), _) = workers::run(&parts.spec.cores, flows, vec![task], |workers| {
        lead(parts.trial(workers), plan, channels)
    })?;
    let bytes = sum(&measured.counts);
    let lost = LostRounds(done.iter().map(|done| done.lost).sum());
    Ok(EndpointOutcome {
        received_bytes: bytes,
        sent_bytes: bytes,
        latency: done.into_iter().map(|done| done.latency).collect(),
        ..outcome(&mut measured, flows)
    }
    .with(lost))
}

fn lead(
    mut trial: TrialCoordinator<'_, '_>,
    plan: &PingPongPlan,
    channels: PingPongChannels,
) -> Result<(WindowMeasurement, Vec<SizeResult>), Error> {
    trial.workers.start();
    let mut window_start = None;
    let mut all = Vec::with_capacity(plan.sizes.len());
    for size in &plan.sizes {
        trial.say(TrialSignal::Size(size.0))?;
        trial.expect("while it got ready for the next size", |said| {
            (said == TrialSignal::Ready(size.0)).then_some(())
        })?;
        channels.orders.send(*size).map_err(|_| Error::Worker)?;
        if window_start.is_none() {
            let first = trial.await_first()?;
            trial.until(first + plan.warm_up)?;
            window_start = Some(trial.open());
        } else {
            trial.until(Instant::now() + plan.warm_up)?;
        }
        trial.until(Instant::now() + plan.duration)?;
        all.push(await_done(&mut trial, &channels)?);
    }
    let window_start = window_start.expect("a ping-pong has a size (checked)");
    Ok((trial.close(&window_start)?, all))
}

fn await_done(
    trial: &mut TrialCoordinator<'_, '_>,
    channels: &PingPongChannels,
) -> Result<SizeResult, Error> {
    // Waits for the last round of the size to end.
    let patience = trial.patience();
    let deadline = Instant::now() + patience;
    loop {
        match channels.done.try_recv() {
            Ok(done) => return Ok(done),
            Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => return Err(Error::Worker),
        }
        if Instant::now() > deadline {
            return Err(Error::silent("while the last answer was awaited", patience));
        }
        trial.tick(LOOK)?;
    }
}

fn task<'a>(
    flow: &'a dyn Flow,
    plan: &'a PingPongPlan,
    ordered: mpsc::Receiver<Bytes>,
    report: mpsc::Sender<SizeResult>,
) -> WorkerTask<'a, ()> {
    Box::new(move |context, ()| {
        let mut exchange = Exchange::new(flow, context, plan)?;
        if !context.begin() {
            return Ok(());
        }
        let round = |exchange: &mut Exchange<'_>, size: usize, patience: Option<Duration>| {
            if !exchange.send(size)? {
                return Ok(ReceiveOutcome::Stop);
            }
            let received = exchange.answer(size, patience)?;
            if let ReceiveOutcome::Message(_) = received {
                context.tally.add(size as u64);
            }
            Ok(received)
        };
        while let Ok(size) = ordered.recv() {
            let mut latency = LatencyRecorder::new();
            let lost =
                rounds(plan, &mut latency, |patience| round(&mut exchange, size.0 as usize, patience))?;
            let Some(lost) = lost else { break };
            // The coordinator may have given up.
            let _ = report.send(SizeResult { latency: latency.export(size), lost });
        }
        Ok(())
    })
}

/// Runs the rounds of one size: first those of the warm-up, then those that count. Each round reads the clock once,
/// because the end of a round is the start of the next. Returns the number of lost rounds; `None` if the worker must
/// stop.
fn rounds(
    plan: &PingPongPlan,
    latency: &mut LatencyRecorder,
    mut round: impl FnMut(Option<Duration>) -> Result<ReceiveOutcome, Error>,
) -> Result<Option<u64>, Error> {
    let mut timeout = AnswerTimeout::new(plan.delivery);
    let mut lost = 0;
    let mut before = Instant::now();
    let counted = before + plan.warm_up;
    let end = counted + plan.duration;
    while before < end {
        let received = round(timeout.patience())?;
        let now = Instant::now();
        match received {
            ReceiveOutcome::Stop => return Ok(None),
            ReceiveOutcome::Message(_) => timeout.took(now - before),
            ReceiveOutcome::Nothing => {}
        }
        if before >= counted {
            match received {
                ReceiveOutcome::Message(_) => latency.record(Nanos::from(now - before)),
                _ => lost += 1,
            }
        }
        before = now;
    }
    Ok(Some(lost))
}

/// The time limit of the wait for an answer. Over a stream, the wait has no limit. Over datagrams it needs one,
/// because a lost datagram is not sent again.
struct AnswerTimeout {
    delivery: Delivery,
    /// Smoothed round-trip time (RFC 6298 section 2), after the first round trip.
    smoothed: Option<Duration>,
}

impl AnswerTimeout {
    /// The time limit before the first round trip is known: the initial timeout of RFC 6298.
    const INITIAL: Duration = Duration::from_secs(1);
    /// The time that is added to four smoothed round trips: Linux's smallest retransmission timeout (TCP_RTO_MIN).
    const LEAST: Duration = Duration::from_millis(200);

    fn new(delivery: Delivery) -> Self {
        AnswerTimeout { delivery, smoothed: None }
    }

    fn patience(&self) -> Option<Duration> {
        let patience = self.smoothed.map_or(Self::INITIAL, |smoothed| Self::LEAST + 4 * smoothed);
        (self.delivery == Delivery::Datagrams).then_some(patience)
    }

    fn took(&mut self, time: Duration) {
        if self.delivery != Delivery::Datagrams {
            return;
        }
        self.smoothed = Some(self.smoothed.map_or(time, |smoothed| (7 * smoothed + time) / 8));
    }
}
