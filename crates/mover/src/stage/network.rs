//! The TCP_INFO of the flows on which an end sends.

use std::sync::atomic::{AtomicU64, Ordering};

use landspeed_record::CopyNetworkTimes;
use landspeed_record::units::Nanos;
use landspeed_transport::TcpLimits;

use super::StageTotals;
use crate::wire::FrameWriter;

/// The sums over all flows.
#[derive(Debug, Default)]
pub(super) struct NetworkTotals {
    busy: AtomicU64,
    window: AtomicU64,
    buffer: AtomicU64,
    sent: AtomicU64,
    resent: AtomicU64,
    rtt: AtomicU64,
    least_rtt: AtomicU64,
}

impl NetworkTotals {
    pub(super) fn times(&self) -> CopyNetworkTimes {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CopyNetworkTimes {
            busy_ns: Nanos(get(&self.busy)),
            window_limited_ns: Nanos(get(&self.window)),
            buffer_limited_ns: Nanos(get(&self.buffer)),
            sent: get(&self.sent),
            resent: get(&self.resent),
            rtt_ns: Nanos(get(&self.rtt)),
            least_rtt_ns: Nanos(get(&self.least_rtt)),
        }
    }

    /// Adds what came between two readings of a flow.
    fn add(&self, before: &TcpLimits, now: &TcpLimits) {
        let add = |total: &AtomicU64, more: u64| {
            total.fetch_add(more, Ordering::Relaxed);
        };
        add(&self.busy, (now.busy - before.busy).0);
        add(&self.window, (now.window - before.window).0);
        add(&self.buffer, (now.buffer - before.buffer).0);
        add(&self.sent, now.sent.saturating_sub(before.sent));
        add(&self.resent, now.resent.saturating_sub(before.resent));
        // Before its first sample, the least round trip is the largest number.
        if now.least_rtt <= now.rtt {
            add(&self.rtt, now.rtt.0);
            add(&self.least_rtt, now.least_rtt.0);
        }
    }
}

/// Reads the TCP_INFO of one flow, also when it is dropped.
pub(crate) struct FlowMeter<'a> {
    writer: &'a FrameWriter<'a>,
    totals: &'a StageTotals,
    last: TcpLimits,
}

impl<'a> FlowMeter<'a> {
    pub(crate) fn new(writer: &'a FrameWriter<'a>, totals: &'a StageTotals) -> Self {
        FlowMeter { writer, totals, last: writer.limits().unwrap_or_default() }
    }

    pub(crate) fn read(&mut self) {
        if let Some(now) = self.writer.limits() {
            self.totals.network.add(&self.last, &now);
            self.last = now;
        }
    }
}

impl Drop for FlowMeter<'_> {
    fn drop(&mut self) {
        self.read();
    }
}
