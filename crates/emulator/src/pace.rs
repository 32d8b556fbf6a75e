//! The line and what waits in front of it: when each segment has left, and how much is still to leave.

use std::collections::VecDeque;
use std::sync::Arc;

use landspeed_units::Nanos;

use super::plan::Room;
use super::trace::{Follower, Trace};

/// Nanoseconds in a second times bits in a byte: what a byte weighs on a line of one bit a second.
const BYTE_NANOS: u64 = 8_000_000_000;

/// What waits, the packet on the line included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Waiting {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Waiting {
    /// Whether a packet of this size still fits into `room`.
    pub(super) fn fits(self, size: u64, room: Room) -> bool {
        self.packets < room.packets && self.bytes.saturating_add(size) <= room.bytes
    }
}

/// A line of one direction. Where packets are counted or it follows a trace, each that waits is known; else what
/// waits follows from when the line will be idle.
#[derive(Debug, Clone)]
pub(super) struct Pacer {
    /// bit/s, where no trace says when packets leave.
    rate: u64,
    trace: Option<Follower>,
    /// When the line has sent all that it took.
    free_at: Nanos,
    /// What the whole nanoseconds of `free_at` leave out, in 1/rate of a nanosecond.
    remainder: u64,
    /// Each packet that waits: when it leaves, and its size.
    backlog: Option<(VecDeque<(Nanos, u32)>, Waiting)>,
}

impl Pacer {
    /// An idle line; `counts_packets` where a bound is in packets.
    pub(super) fn new(rate: u64, trace: Option<Arc<Trace>>, counts_packets: bool) -> Self {
        let backlog = (counts_packets || trace.is_some()).then(Default::default);
        Pacer { rate, trace: trace.map(Follower::new), free_at: Nanos(0), remainder: 0, backlog }
    }

    /// What waits at `now`. Times never go back. Bytes are rounded up; where packets are not counted, it is known only
    /// whether there are any.
    pub(super) fn waiting(&mut self, now: Nanos) -> Waiting {
        let Some((backlog, waiting)) = &mut self.backlog else {
            let busy = u128::from((self.free_at - now).0);
            let bytes = (busy * u128::from(self.rate)).div_ceil(u128::from(BYTE_NANOS));
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            return Waiting { packets: bytes.min(1), bytes };
        };
        while let Some((_, size)) = backlog.front().copied().filter(|(leaves, _)| *leaves <= now) {
            backlog.pop_front();
            waiting.packets -= 1;
            waiting.bytes -= u64::from(size);
        }
        *waiting
    }

    /// Takes a segment that arrives at `now`, behind all others; when it has left the line.
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
