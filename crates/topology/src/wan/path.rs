//! One direction of the link as a state machine: what becomes of a segment that arrives now. Pure: times
//! are passed in, chance comes from a seed.
//!
//! In the order of a real path: a router refuses what is larger than its next link takes; a queue of
//! bounded size drops what does not fit (tail drop); a line of fixed rate takes its time over each
//! segment; the line loses some, and keeps some longer than others; the rest arrives a fixed time later.
//! A lost segment has used the line: loss does not make the link faster.

use landspeed_stats::Random;
use landspeed_units::{Bytes, Nanos};

use super::loss::Loss;
use super::spec::WanSpec;

/// Nanoseconds in a second times bits in a byte: what a byte weighs on a line of one bit a second.
const BYTE_NANOS: u64 = 8_000_000_000;

/// What became of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It reaches the other end at this time.
    Arrives(Nanos),
    /// As [`Fate::Arrives`], but kept longer than those before and behind it.
    Held(Nanos),
    /// Larger than the path takes.
    TooLarge,
    /// The queue was full.
    NoRoom,
    /// Lost on the line.
    Lost,
}

/// One direction.
#[derive(Debug, Clone)]
pub(super) struct Path {
    /// bit/s
    rate: u64,
    queue: u64,
    delay: Nanos,
    largest: u64,
    loss: Loss,
    reorder: f64,
    held_for: Nanos,
    random: Random,
    /// When the line has sent all that it took.
    free_at: Nanos,
    /// What the whole nanoseconds of `free_at` leave out, in 1/rate of a nanosecond.
    remainder: u64,
}

impl Path {
    /// A direction of its own chance: two directions of one link lose different segments.
    pub(super) fn new(spec: &WanSpec, direction: u64) -> Self {
        Path {
            rate: spec.rate_bps(),
            queue: spec.queue().0,
            delay: spec.one_way(),
            largest: spec.drop_above().map_or(u64::MAX, |size| size.0),
            loss: Loss::new(spec.loss().as_f64(), spec.loss_burst()),
            reorder: spec.reorder().as_f64(),
            held_for: spec.reorder_delay(),
            // Far apart in the generator's cycle, whatever the seed.
            random: Random::stream(spec.seed(), direction),
            free_at: Nanos(0),
            remainder: 0,
        }
    }

    /// Takes a segment of so many bytes (of its IP packet) that arrives at `now`. Times never go back.
    pub(super) fn admit(&mut self, now: Nanos, size: u32) -> Fate {
        let size = u64::from(size);
        if size > self.largest {
            return Fate::TooLarge;
        }
        let waiting = self.waiting(now).0;
        // A line that stands idle takes any segment: the queue holds what waits for it.
        if waiting > 0 && waiting + size > self.queue {
            return Fate::NoRoom;
        }
        self.occupy(now, size);
        if self.loss.takes(&mut self.random) {
            return Fate::Lost;
        }
        let arrives = self.free_at + self.delay;
        match self.random.happens(self.reorder) {
            true => Fate::Held(arrives + self.held_for),
            false => Fate::Arrives(arrives),
        }
    }

    /// Bytes that the line has still to send at `now`, rounded up.
    pub(super) fn waiting(&self, now: Nanos) -> Bytes {
        let busy = u128::from((self.free_at - now).0);
        let bytes = (busy * u128::from(self.rate)).div_ceil(u128::from(BYTE_NANOS));
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    fn occupy(&mut self, now: Nanos, size: u64) {
        if self.free_at < now {
            (self.free_at, self.remainder) = (now, 0);
        }
        let work = size * BYTE_NANOS + self.remainder;
        self.free_at += Nanos(work / self.rate);
        self.remainder = work % self.rate;
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
