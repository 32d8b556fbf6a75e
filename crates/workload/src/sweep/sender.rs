//! The sending end of a sweep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use landspeed_record::EndpointOutcome;
use landspeed_transport::{Flow, Sender};
use landspeed_units::Bytes;

use super::Part;
use crate::Error;
use crate::buffer::Buffer;
use crate::end::{outcome, sum, zero_copied};
use crate::signal::Signal;
use crate::stream::Left;
use crate::trial::{Measured, Parts, Trial};
use crate::workers::{self, Station, Task};

/// Interval at which the coordinator checks whether a part has been sent.
const LOOK: Duration = Duration::from_millis(1);

/// Channels between coordinator and worker: parts to send in one direction, bytes sent in the other.
struct Channels {
    orders: mpsc::Sender<Part>,
    sent: mpsc::Receiver<u64>,
}

pub(super) fn run(parts: Parts<'_>) -> Result<EndpointOutcome, Error> {
    let flows = parts.flows;
    let plan = super::parts(parts.spec);
    let cut = AtomicBool::new(false);
    let (orders, ordered) = mpsc::channel();
    let (report, sent) = mpsc::channel();
    let channels = Channels { orders, sent };
    let largest = plan.iter().map(|part| part.size.0 as usize).max().unwrap_or(1);
    let worker = Worker { flow: flows[0].as_ref(), largest, cut: &cut, ordered, report };
    // The channels are dropped with the coordinator; the worker then gets no more orders and ends.
    let (mut measured, left) = workers::run(&parts.spec.cores, flows, vec![worker.task()], |workers| {
        lead(parts.trial(workers), channels, &plan, &cut)
    })?;
    Ok(EndpointOutcome { sent_bytes: sum(&measured.counts), ..outcome(&mut measured, flows) }
        .with(zero_copied(left.iter().map(|l| (l.completions, l.mapped)))))
}

fn lead(
    mut trial: Trial<'_, '_>,
    channels: Channels,
    plan: &[Part],
    cut: &AtomicBool,
) -> Result<Measured, Error> {
    trial.workers.start();
    let mut mark = None;
    for (number, part) in plan.iter().enumerate() {
        let number = number as u64;
        trial.expect("while it got ready for the next size", |said| {
            (said == Signal::Ready(number)).then_some(())
        })?;
        if !part.warm_up && mark.is_none() {
            mark = Some(trial.open());
        }
        cut.store(false, Ordering::Release);
        channels.orders.send(*part).map_err(|_| Error::Worker)?;
        let sent = await_sent(&mut trial, &channels, cut)?;
        trial.say(Signal::Sent(sent))?;
    }
    trial.expect("while it took the last bytes", |said| (said == Signal::Closed).then_some(()))?;
    let mark = mark.expect("a sweep has a size (checked)");
    trial.close(&mark)
}

/// Waits until the worker has sent a part, and forwards the receiver's signal to cut it.
fn await_sent(trial: &mut Trial<'_, '_>, channels: &Channels, cut: &AtomicBool) -> Result<u64, Error> {
    loop {
        match channels.sent.try_recv() {
            Ok(sent) => return Ok(sent),
            Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => return Err(Error::Worker),
        }
        if trial.tick(LOOK)? == Some(Signal::Cut) {
            cut.store(true, Ordering::Release);
        }
    }
}

struct Worker<'a> {
    flow: &'a dyn Flow,
    largest: usize,
    cut: &'a AtomicBool,
    ordered: mpsc::Receiver<Part>,
    report: mpsc::Sender<u64>,
}

impl<'a> Worker<'a> {
    fn task(self) -> Task<'a, Left> {
        Box::new(move |station, left| {
            let buffer = Buffer::new(self.largest);
            let mut sender = self.flow.sender()?;
            if !station.begin() {
                return Ok(());
            }
            let mut total = 0;
            while let Ok(part) = self.ordered.recv() {
                self.send(part, &buffer, sender.as_mut(), (station, &mut total))?;
                // The coordinator may have given up.
                let _ = self.report.send(total);
            }
            left.completions = sender.completions();
            Ok(())
        })
    }

    /// Sends one part, until its end or until it is cut.
    fn send(
        &self,
        part: Part,
        buffer: &Buffer,
        sender: &mut dyn Sender,
        (station, total): (&Station<'_>, &mut u64),
    ) -> Result<(), Error> {
        let Part { size, total: Bytes(wanted), .. } = part;
        let end = *total + wanted;
        while *total < end && !station.stopped() && !self.cut.load(Ordering::Relaxed) {
            let rest = (end - *total).min(size.0);
            match sender.send(&buffer[..rest as usize], (end - *total) / rest) {
                Ok(n) => {
                    *total += n as u64;
                    station.tally.set(*total);
                }
                Err(error) => station.judge("send on", error)?,
            }
        }
        Ok(())
    }
}
