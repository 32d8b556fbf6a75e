//! The sending end of a sweep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use landspeed_record::EndpointOutcome;
use landspeed_record::units::Bytes;
use landspeed_transport::{Flow, Sender};

use super::SweepPart;
use crate::Error;
use crate::buffer::PageBuffer;
use crate::end::{outcome, sum, zero_copied};
use crate::signal::TrialSignal;
use crate::stream::ZeroCopyResult;
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement};
use crate::workers::{self, WorkerContext, WorkerTask};

/// Interval at which the coordinator checks if a part has been sent.
const LOOK: Duration = Duration::from_millis(1);

/// Channels between coordinator and worker: parts to send in one direction, bytes sent in the other.
struct SweepChannels {
    orders: mpsc::Sender<SweepPart>,
    sent: mpsc::Receiver<u64>,
}

pub(super) fn run(parts: TrialParts<'_>) -> Result<EndpointOutcome, Error> {
    let flows = parts.flows;
    let plan = super::parts(parts.spec);
    let cut = AtomicBool::new(false);
    let (orders, ordered) = mpsc::channel();
    let (report, sent) = mpsc::channel();
    let channels = SweepChannels { orders, sent };
    let largest = plan.iter().map(|part| part.size.0 as usize).max().unwrap_or(1);
    let worker = SweepSender { flow: flows[0].as_ref(), largest, cut: &cut, ordered, report };
    // The channels are dropped with the coordinator; the worker then gets no more orders and ends.
    let (mut measured, zero_copy) = workers::run(&parts.spec.cores, flows, vec![worker.task()], |workers| {
        lead(parts.trial(workers), channels, &plan, &cut)
    })?;
    Ok(EndpointOutcome { sent_bytes: sum(&measured.counts), ..outcome(&mut measured, flows) }
        .with(zero_copied(zero_copy.iter().map(|l| (l.completions, l.mapped)))))
}

fn lead(
    mut trial: TrialCoordinator<'_, '_>,
    channels: SweepChannels,
    plan: &[SweepPart],
    cut: &AtomicBool,
) -> Result<WindowMeasurement, Error> {
    trial.workers.start();
    let mut window_start = None;
    let mut longest = trial.patience();
    for (number, part) in plan.iter().enumerate() {
        let number = number as u64;
        trial.expect_within(longest, "while it got ready for the next size", |said| {
            (said == TrialSignal::Ready(number)).then_some(())
        })?;
        if !part.warm_up && window_start.is_none() {
            window_start = Some(trial.open());
        }
        cut.store(false, Ordering::Release);
        channels.orders.send(*part).map_err(|_| Error::Worker)?;
        let sent = await_sent(&mut trial, &channels, cut)?;
        trial.say(TrialSignal::Sent(sent))?;
        longest = part.longest_take(trial.patience());
    }
    trial.expect_within(longest, "while it took the last bytes", |said| {
        (said == TrialSignal::Closed).then_some(())
    })?;
    let window_start = window_start.expect("a sweep has a size (checked)");
    trial.close(&window_start)
}

/// Waits until the worker has sent a part, and stops it if the receiver signals a cut. Returns the total of bytes
/// sent so far.
fn await_sent(
    trial: &mut TrialCoordinator<'_, '_>,
    channels: &SweepChannels,
    cut: &AtomicBool,
) -> Result<u64, Error> {
    loop {
        match channels.sent.try_recv() {
            Ok(sent) => return Ok(sent),
            Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => return Err(Error::Worker),
        }
        if trial.tick(LOOK)? == Some(TrialSignal::Cut) {
            cut.store(true, Ordering::Release);
        }
    }
}

struct SweepSender<'a> {
    flow: &'a dyn Flow,
    largest: usize,
    cut: &'a AtomicBool,
    ordered: mpsc::Receiver<SweepPart>,
    report: mpsc::Sender<u64>,
}

impl<'a> SweepSender<'a> {
    fn task(self) -> WorkerTask<'a, ZeroCopyResult> {
        Box::new(move |context, zero_copy| {
            let buffer = PageBuffer::new(self.largest);
            let mut sender = self.flow.sender()?;
            if !context.begin() {
                return Ok(());
            }
            while let Ok(part) = self.ordered.recv() {
                self.send(part, &buffer, sender.as_mut(), context)?;
                // The coordinator may have given up.
                let _ = self.report.send(context.tally.get());
            }
            zero_copy.completions = sender.completions();
            Ok(())
        })
    }

    /// Sends one part, until all its bytes are sent or the receiver cuts it.
    fn send(
        &self,
        part: SweepPart,
        buffer: &PageBuffer,
        sender: &mut dyn Sender,
        context: &WorkerContext<'_>,
    ) -> Result<(), Error> {
        let SweepPart { size, total: Bytes(mut left), .. } = part;
        while left > 0 && !context.stopped() && !self.cut.load(Ordering::Relaxed) {
            let rest = left.min(size.0);
            match sender.send(&buffer[..rest as usize], left / rest) {
                Ok(n) => {
                    left = left.saturating_sub(n as u64);
                    context.tally.add(n as u64);
                }
                Err(error) => context.judge("send on", error)?,
            }
        }
        Ok(())
    }
}
