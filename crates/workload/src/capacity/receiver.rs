//! The receiving end, which counts what arrives.

use std::time::{Duration, Instant};

use landspeed_record::EndpointOutcome;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_transport::Flow;
use landspeed_transport::settings::READ_SIZE;
use rustix::net::sockopt;

use super::result::ReceiveBufferReport;
use super::{DURATION, LEAD, drops};
use crate::Error;
use crate::end::{outcome, sum};
use crate::moment::AtomicMoment;
use crate::signal::TrialSignal;
use crate::stream::{ReceiveLoop, ZeroCopyResult};
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement};
use crate::workers::{self, WorkerTask};

/// Time without arrivals after which missing datagrams count as lost, once the peer has reported how many it sent. A
/// search is therefore valid only on paths with shorter queueing delays. (RFC 2544 section 23 waits for two seconds.)
const SILENCE: Duration = Duration::from_millis(200);
/// Interval at which the coordinator checks if a trial has arrived.
const LOOK: Duration = Duration::from_millis(2);
/// Receive buffer of a socket in bytes, 16 ms at 2 Gb/s. It is large enough that the search measures the path and not
/// the buffer.
const ROOM: usize = 4 << 20;

pub(super) fn run(parts: TrialParts<'_>) -> Result<EndpointOutcome, Error> {
    let (flows, spec) = (parts.flows, parts.spec);
    let report = ReceiveBufferReport { receive_buffer_bytes: make_room(flows, spec.flow.get("rcvbuf")) };
    let first = AtomicMoment::none();
    let size = READ_SIZE.number(&spec.flow) as usize;
    let tasks = flows.iter().map(|flow| task(flow.as_ref(), size, &first)).collect();
    let (mut measured, _) = workers::run(&spec.cores, flows, tasks, |workers| {
        let trial = parts.trial(workers).telling(flows.len());
        lead(trial, &first)
    })?;
    let received: Vec<Bytes> = measured.counts.iter().copied().map(Bytes).collect();
    Ok(EndpointOutcome {
        received_bytes: sum(&measured.counts),
        flow_bytes: received,
        ..outcome(&mut measured, flows)
    }
    .with(report))
}

/// Sets the receive buffers to [`ROOM`], unless `asked`, the user's value, sets another size. net.core.rmem_max
/// limits the size only if this process may not exceed it. Returns the size of the smallest buffer.
fn make_room(flows: &[Box<dyn Flow>], asked: Option<&String>) -> Bytes {
    let sockets = || flows.iter().flat_map(|flow| flow.sockets());
    if asked.is_none_or(|asked| asked == "0") {
        for socket in sockets() {
            let _ = sockopt::set_socket_recv_buffer_size_force(socket, ROOM)
                .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, ROOM));
        }
    }
    // The kernel returns twice the requested size: socket(7).
    let least = sockets().filter_map(|socket| sockopt::socket_recv_buffer_size(socket).ok()).min();
    Bytes(least.unwrap_or(0) as u64 / 2)
}

fn task<'a>(flow: &'a dyn Flow, size: usize, first: &'a AtomicMoment) -> WorkerTask<'a, ZeroCopyResult> {
    Box::new(move |context, zero_copy| {
        let passed = |_, _| first.note();
        zero_copy.mapped = ReceiveLoop { flow, size, passed, is_end: |_| false }.run(context)?;
        Ok(())
    })
}

/// Reports the counts of each trial of the search to the client, and then runs the window. `first` is the arrival of
/// the current trial's first datagram.
fn lead(mut trial: TrialCoordinator<'_, '_>, first: &AtomicMoment) -> Result<WindowMeasurement, Error> {
    trial.workers.start();
    let mut before = counts(&trial);
    loop {
        // This loop has no time limit of its own, because a trial may last longer than the usual wait for a silent
        // peer.
        let sent = match trial.tick(LOOK)? {
            Some(TrialSignal::Count(sent)) => sent,
            Some(TrialSignal::Ready(_)) => return hold(trial),
            _ => continue,
        };
        drain(&mut trial, before.received + sent)?;
        let now = counts(&trial);
        let arrivals = first.get().zip(now.last);
        let arriving =
            arrivals.map_or(Nanos(0), |(first, last)| last.saturating_duration_since(first).into());
        first.set(None);
        // The counts are taken before the peer continues.
        for count in [now.received - before.received, now.dropped - before.dropped, arriving.0] {
            trial.say(TrialSignal::Count(count))?;
        }
        before = now;
    }
}

/// Waits until `all` datagrams have arrived since the flows began, or the missing ones count as lost.
fn drain(trial: &mut TrialCoordinator<'_, '_>, all: u64) -> Result<(), Error> {
    let (mut seen, mut since) = (counts(trial).received, Instant::now());
    while seen < all && since.elapsed() < SILENCE {
        trial.tick(LOOK)?;
        let received = counts(trial).received;
        if received != seen {
            (seen, since) = (received, Instant::now());
        }
    }
    Ok(())
}

fn hold(mut trial: TrialCoordinator<'_, '_>) -> Result<WindowMeasurement, Error> {
    let time = DURATION.time(&trial.spec.workload.parameters);
    trial.until(Instant::now() + LEAD)?;
    let window_start = trial.open();
    trial.until(Instant::now() + Duration::from(time))?;
    trial.close(&window_start)
}

/// Counts of all flows since they began.
#[derive(Debug, Clone, Copy)]
struct ReceiveCounts {
    received: u64,
    /// Datagrams dropped by the flows' sockets, and buffers dropped by this host outside them.
    dropped: u64,
    last: Option<Instant>,
}

fn counts(trial: &TrialCoordinator<'_, '_>) -> ReceiveCounts {
    let flows = trial.datagrams();
    ReceiveCounts {
        received: flows.iter().map(|flow| flow.received).sum(),
        dropped: flows.iter().map(|flow| flow.overflowed).sum::<u64>() + drops::received(),
        last: flows.iter().filter_map(|flow| flow.last).max(),
    }
}
