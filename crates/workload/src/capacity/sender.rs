//! The sending end, which searches for the highest load.

use std::os::fd::BorrowedFd;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use landspeed_record::EndpointOutcome;
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_transport::settings::WRITE_SIZE;
use landspeed_transport::{Flow, Sender};
use rustix::net::getsockname;

use super::result::{CapacityResult, CapacityTrial};
use super::search::{CapacitySearch, LoadTrial, LoadTrialResult, SearchGoal};
use super::{DURATION, LEAD, LIMIT, drops};
use crate::Error;
use crate::buffer::PageBuffer;
use crate::end::{outcome, sum};
use crate::signal::TrialSignal;
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement};
use crate::workers::{self, WorkerContext, WorkerTask};

/// Interval at which the coordinator checks if a trial has been sent.
const LOOK: Duration = Duration::from_millis(5);
/// Length of the header of IPv4, in bytes.
const IPV4: u64 = 20;
const IPV6: u64 = 40;
const UDP: u64 = 8;

/// An order to a worker to send at a load for the time `lasts`. If `lasts` is `None`, the worker sends until it is
/// stopped.
#[derive(Debug, Clone, Copy)]
struct SendOrder {
    load: BitRate,
    lasts: Option<Nanos>,
}

/// The result of an order.
#[derive(Debug, Clone, Copy)]
struct SendOrderResult {
    took: Nanos,
    /// Most bytes sent in one call.
    burst: u64,
}

pub(super) fn run(parts: TrialParts<'_>) -> Result<EndpointOutcome, Error> {
    let (flows, spec) = (parts.flows, parts.spec);
    let size = WRITE_SIZE.number(&spec.flow);
    let (report, reports) = mpsc::channel();
    let (orders, tasks): (Vec<_>, Vec<_>) =
        flows.iter().map(|flow| worker(flow.as_ref(), size as usize, report.clone())).unzip();
    // Only the workers hold senders of this channel now, so the channel closes once all workers have ended.
    drop(report);
    let ((mut measured, found), _) = workers::run(&spec.cores, flows, tasks, |workers| {
        let coordinator = SearchCoordinator { trial: parts.trial(workers), orders, reports, size, burst: 0 };
        coordinator.lead()
    })?;
    let sent_bytes = sum(&measured.counts);
    let headers = flows.first().map_or(0, |flow| headers(&flow.sockets()));
    let carried_ip_bps =
        found.carried_bps.map(|load| BitRate((load.0 * (size + headers) as f64 / size as f64).round()));
    let found = CapacityResult { carried_ip_bps, ..found };
    Ok(EndpointOutcome { sent_bytes, ..outcome(&mut measured, flows) }.with(found))
}

/// Returns the length of the headers before each datagram, in bytes.
fn headers(sockets: &[BorrowedFd<'_>]) -> u64 {
    let address = sockets.first().and_then(|socket| getsockname(socket).ok());
    let is_v6 = address.is_some_and(|address| address.address_family() == rustix::net::AddressFamily::INET6);
    UDP + if is_v6 { IPV6 } else { IPV4 }
}

/// The coordinator and its workers.
struct SearchCoordinator<'c, 'p> {
    trial: TrialCoordinator<'c, 'p>,
    orders: Vec<mpsc::Sender<SendOrder>>,
    reports: mpsc::Receiver<SendOrderResult>,
    size: u64,
    /// Most bytes sent in one call of the last trial.
    burst: u64,
}

impl SearchCoordinator<'_, '_> {
    fn lead(mut self) -> Result<(WindowMeasurement, CapacityResult), Error> {
        let asked = &self.trial.spec.workload.parameters;
        let (limit, time) = (Duration::from(LIMIT.time(asked)), Duration::from(DURATION.time(asked)));
        let mut search = CapacitySearch::new(SearchGoal::of(asked));
        self.trial.workers.start();
        let begun = Instant::now();
        let (mut trials, mut burst_bytes) = (Vec::new(), 0);
        let mut is_cut = false;
        while let Some(load_trial) = search.next() {
            is_cut = begun.elapsed() + Duration::from(load_trial.lasts) > limit;
            if is_cut {
                break;
            }
            let result = self.offer(load_trial)?;
            search.take(&result);
            trials.push(CapacityTrial::of(load_trial.load, &result));
            if search.found().carried == Some(load_trial.load) {
                burst_bytes = self.burst;
            }
        }
        let found = CapacityResult::of(search.found(), is_cut);
        let (took_ns, burst_datagrams) = (begun.elapsed().into(), burst_bytes / self.size);
        let measured = self.hold(search.held(), time)?;
        Ok((measured, CapacityResult { took_ns, burst_datagrams, trials, ..found }))
    }

    /// Runs one trial: sends at its load, reports to the server how many datagrams were sent, and receives the
    /// server's counts.
    fn offer(&mut self, load_trial: LoadTrial) -> Result<LoadTrialResult, Error> {
        let (before, unsent) = (self.sent(), drops::sent());
        self.order(load_trial.load, Some(load_trial.lasts))?;
        let mut sending = Nanos(0);
        self.burst = 0;
        for _ in 0..self.orders.len() {
            let done = self.report()?;
            sending = sending.max(done.took);
            self.burst = self.burst.max(done.burst);
        }
        let (sent, unsent) = (self.sent() - before, drops::sent().saturating_sub(unsent));
        self.trial.say(TrialSignal::Count(sent))?;
        let mut count = || {
            self.trial.expect("while it counted what came", |said| match said {
                TrialSignal::Count(count) => Some(count),
                _ => None,
            })
        };
        let (received, dropped, arriving) = (count()?, count()?, Nanos(count()?));
        let joined = self.burst / self.size;
        Ok(LoadTrialResult { sent, unsent, received, dropped, joined, sending, arriving, size: self.size })
    }

    /// Sends at `load` for [`LEAD`] and through the measured window, which lasts `time`.
    fn hold(&mut self, load: BitRate, time: Duration) -> Result<WindowMeasurement, Error> {
        self.trial.say(TrialSignal::Ready(0))?;
        self.order(load, None)?;
        self.trial.until(Instant::now() + LEAD)?;
        let window_start = self.trial.open();
        self.trial.until(Instant::now() + time)?;
        self.trial.close(&window_start)
    }

    /// Orders each flow to send an equal part of the load.
    fn order(&self, load: BitRate, lasts: Option<Nanos>) -> Result<(), Error> {
        let order = SendOrder { load: BitRate(load.0 / self.orders.len() as f64), lasts };
        self.orders.iter().try_for_each(|orders| orders.send(order).map_err(|_| Error::Worker))
    }

    fn report(&mut self) -> Result<SendOrderResult, Error> {
        loop {
            match self.reports.try_recv() {
                Ok(done) => return Ok(done),
                Err(mpsc::TryRecvError::Empty) => _ = self.trial.tick(LOOK)?,
                Err(mpsc::TryRecvError::Disconnected) => return Err(Error::Worker),
            }
        }
    }

    /// Returns the datagrams that all flows have sent since they began.
    fn sent(&self) -> u64 {
        self.trial.datagrams().iter().map(|datagrams| datagrams.sent).sum()
    }
}

/// Returns the channel of a worker's orders, and the worker's task, which sends over `flow` in datagrams of `size`
/// bytes.
fn worker(
    flow: &dyn Flow,
    size: usize,
    report: mpsc::Sender<SendOrderResult>,
) -> (mpsc::Sender<SendOrder>, WorkerTask<'_, Bytes>) {
    let (orders, ordered) = mpsc::channel();
    let task: WorkerTask<'_, Bytes> = Box::new(move |context, _| {
        let buffer = PageBuffer::new(size);
        let mut sender = flow.sender()?;
        if !context.begin() {
            return Ok(());
        }
        while let Ok(order) = ordered.recv() {
            let done = carry_out(order, &buffer, sender.as_mut(), context)?;
            // The coordinator may have given up.
            let _ = report.send(done);
        }
        Ok(())
    });
    (orders, task)
}

fn carry_out(
    order: SendOrder,
    buffer: &PageBuffer,
    sender: &mut dyn Sender,
    context: &WorkerContext<'_>,
) -> Result<SendOrderResult, Error> {
    sender.pace(order.load).map_err(|source| Error::refused("pace", "a flow", source))?;
    let begun = Instant::now();
    let lasts = order.lasts.map(Duration::from);
    let mut burst = 0;
    while !context.stopped() && lasts.is_none_or(|lasts| begun.elapsed() < lasts) {
        match sender.send(buffer, u64::MAX) {
            Ok(n) => {
                burst = burst.max(n as u64);
                context.tally.add(n as u64);
            }
            Err(error) => context.judge("send on", error)?,
        }
    }
    Ok(SendOrderResult { took: begun.elapsed().into(), burst })
}
