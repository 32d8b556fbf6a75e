//! Models the transmission line and the queue in front of it: when each segment has left, and how much still waits.

use std::collections::VecDeque;
use std::sync::Arc;

use landspeed_record::units::Nanos;

use super::plan::QueueBound;
use super::trace::{DeliveryTrace, TraceFollower};

/// The time of one byte on a line of 1 bit/s, in nanoseconds.
const BYTE_NANOS: u64 = 8_000_000_000;

/// The contents of the queue, including the packet on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct QueueContents {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl QueueContents {
    /// Returns true if a packet of this size still fits within `bound`.
    pub(super) fn fits(self, size: u64, bound: QueueBound) -> bool {
        self.packets < bound.packets && self.bytes.saturating_add(size) <= bound.bytes
    }
}

/// The line of one direction. If packets are counted or the line follows a trace, each waiting packet is tracked.
/// Otherwise the queue is computed from the time at which the line becomes idle.
#[derive(Debug, Clone)]
pub(super) struct LinePacer {
    /// The rate in bit/s, used if there is no trace.
    rate: u64,
    trace: Option<TraceFollower>,
    /// The time at which the line has sent all segments that it accepted.
    free_at: Nanos,
    /// The fraction of a nanosecond by which `free_at` is too early, in units of 1/rate.
    remainder: u64,
    /// The waiting packets, each with the time when it leaves and its size in bytes, and their sum; `None` if packets
    /// are not tracked.
    backlog: Option<(VecDeque<(Nanos, u32)>, QueueContents)>,
}

impl LinePacer {
    /// Creates an idle line of `rate` bit/s, or one that follows `trace`. `counts_packets` is true if a bound is in
    /// packets.
    pub(super) fn new(rate: u64, trace: Option<Arc<DeliveryTrace>>, counts_packets: bool) -> Self {
        let backlog = (counts_packets || trace.is_some()).then(Default::default);
        LinePacer { rate, trace: trace.map(TraceFollower::new), free_at: Nanos(0), remainder: 0, backlog }
    }

    /// Returns the packets and bytes that wait at `now`, which must never decrease. If packets are not tracked, the
    /// bytes are rounded up, and the number of packets is 1 if any bytes wait.
    pub(super) fn waiting(&mut self, now: Nanos) -> QueueContents {
        let Some((backlog, waiting)) = &mut self.backlog else {
            let busy = u128::from((self.free_at - now).0);
            let bytes = (busy * u128::from(self.rate)).div_ceil(u128::from(BYTE_NANOS));
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            return QueueContents { packets: bytes.min(1), bytes };
        };
        while let Some((_, size)) = backlog.front().copied().filter(|(leaves, _)| *leaves <= now) {
            backlog.pop_front();
            waiting.packets -= 1;
            waiting.bytes -= u64::from(size);
        }
        *waiting
    }

    /// Adds a segment of `size` bytes that arrives at `now` to the end of the queue. Returns when it has left the line.
    pub(super) fn occupy(&mut self, now: Nanos, size: u32) -> Nanos {
        let leaves = match &mut self.trace {
            Some(follower) => follower.occupy(now, size.into()),
            None => self.occupy_at_rate(now, size.into()),
        };
        if let Some((backlog, waiting)) = &mut self.backlog {
            backlog.push_back((leaves, size));
            waiting.packets += 1;
            waiting.bytes += u64::from(size);
        }
        leaves
    }

    fn occupy_at_rate(&mut self, now: Nanos, size: u64) -> Nanos {
        if self.free_at < now {
            (self.free_at, self.remainder) = (now, 0);
        }
        let work = size * BYTE_NANOS + self.remainder;
        self.free_at += Nanos(work / self.rate);
        self.remainder = work % self.rate;
        self.free_at
    }
}
