//! The line and what waits in front of it: when each segment has left, and how much is still to leave.

use std::collections::VecDeque;

use landspeed_units::Nanos;

use super::plan::{LineSpeed, Room};
use super::trace::Follower;

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

/// A line of one direction.
#[derive(Debug, Clone)]
pub(super) enum Pacer {
    /// Of a fixed rate, where bytes are all that is asked for: what waits follows from when it will be idle.
    Fixed(Fixed),
    /// Where packets are counted, or the rate is not fixed: each that waits is known.
    Counted { line: Counted, backlog: VecDeque<(Nanos, u32)>, waiting: Waiting },
}

/// How fast a line is whose backlog is kept.
#[derive(Debug, Clone)]
pub(super) enum Counted {
    Fixed(Fixed),
    Trace(Follower),
}

/// A line of a fixed rate.
#[derive(Debug, Clone)]
pub(super) struct Fixed {
    /// bit/s
    rate: u64,
    /// When the line has sent all that it took.
    free_at: Nanos,
    /// What the whole nanoseconds of `free_at` leave out, in 1/rate of a nanosecond.
    remainder: u64,
}

impl Fixed {
    fn occupy(&mut self, now: Nanos, size: u64) -> Nanos {
        if self.free_at < now {
            (self.free_at, self.remainder) = (now, 0);
        }
        let work = size * BYTE_NANOS + self.remainder;
        self.free_at += Nanos(work / self.rate);
        self.remainder = work % self.rate;
        self.free_at
    }

    /// Bytes that the line has still to send at `now`, rounded up; packets are not known, only if there are any.
    fn waiting(&self, now: Nanos) -> Waiting {
        let busy = u128::from((self.free_at - now).0);
        let bytes = (busy * u128::from(self.rate)).div_ceil(u128::from(BYTE_NANOS));
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        Waiting { packets: bytes.min(1), bytes }
    }
}

impl Pacer {
    /// An idle line; `counts_packets` where a bound is in packets.
    pub(super) fn new(speed: &LineSpeed, counts_packets: bool) -> Self {
        let line = match speed {
            LineSpeed::Rate(rate) => Counted::Fixed(Fixed { rate: *rate, free_at: Nanos(0), remainder: 0 }),
            LineSpeed::Trace(trace) => Counted::Trace(Follower::new(trace.clone())),
        };
        match line {
            Counted::Fixed(fixed) if !counts_packets => Pacer::Fixed(fixed),
            line => Pacer::Counted { line, backlog: VecDeque::new(), waiting: Waiting::default() },
        }
    }

    /// What waits at `now`. Times never go back.
    pub(super) fn waiting(&mut self, now: Nanos) -> Waiting {
        match self {
            Pacer::Fixed(fixed) => fixed.waiting(now),
            Pacer::Counted { backlog, waiting, .. } => {
                while let Some((_, size)) = backlog.front().copied().filter(|(leaves, _)| *leaves <= now) {
                    backlog.pop_front();
                    waiting.packets -= 1;
                    waiting.bytes -= u64::from(size);
                }
                *waiting
            }
        }
    }

    /// Takes a segment that arrives at `now`, behind all others; when it has left the line.
    pub(super) fn occupy(&mut self, now: Nanos, size: u32) -> Nanos {
        match self {
            Pacer::Fixed(fixed) => fixed.occupy(now, size.into()),
            Pacer::Counted { line, backlog, waiting } => {
                let leaves = match line {
                    Counted::Fixed(fixed) => fixed.occupy(now, size.into()),
                    Counted::Trace(follower) => follower.occupy(now, size.into()),
                };
                backlog.push_back((leaves, size));
                waiting.packets += 1;
                waiting.bytes += u64::from(size);
                leaves
            }
        }
    }
}
