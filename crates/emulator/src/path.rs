//! One direction of the link as a state machine: what becomes of a segment that arrives now. Pure: times
//! are passed in, chance comes from a seed.
//!
//! In the order of a real path: a router refuses what is larger than its next link takes; a queue of
//! bounded size drops what does not fit (tail drop), and marks what comes while much waits; a line takes its
//! time over each segment; the line loses some, and keeps some longer than others; the rest arrives a fixed
//! time later, and up to the jitter later still, but never before one that left earlier. A lost segment has
//! used the line: loss does not make the link faster. One that arrives twice was doubled behind the line.

use landspeed_stats::Random;
use landspeed_units::Nanos;

use super::loss::Loss;
use super::pace::{Pacer, Waiting};
use super::plan::{Room, WayPlan};

/// A segment that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Bytes of its IP packet.
    pub(super) size: u32,
    /// It carries bytes of a TCP stream or a UDP datagram.
    pub(super) has_payload: bool,
    /// Its sender understands marks (ECN).
    pub(super) is_ect: bool,
}

/// How a segment reaches the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) at: Nanos,
    /// It was kept longer than those before and behind it.
    pub(super) is_held: bool,
    /// It is to be marked.
    pub(super) is_marked: bool,
    /// And another one like it right behind.
    pub(super) is_doubled: bool,
}

/// What became of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It reaches the other end.
    Arrives(Arrival),
    /// Larger than the path takes.
    TooLarge,
    /// The queue was full.
    NoRoom,
    /// Lost on the line.
    Lost,
}

/// Chance that is about one thing alone, so that one parameter does not change what another does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Loss,
    Reorder,
    Jitter,
    Duplicate,
}

/// One direction.
#[derive(Debug, Clone)]
pub(super) struct Path {
    line: Pacer,
    queue: Room,
    mark_above: Option<Room>,
    delay: Nanos,
    largest: u64,
    loss: Loss,
    jitter: (Nanos, Random),
    reorder: (f64, Random),
    held_for: Nanos,
    duplicate: (f64, Random),
    /// When the last segment arrives that was not held.
    last: Nanos,
}

impl Path {
    /// A direction of its own chance: two directions of one link lose different segments.
    pub(super) fn new(plan: &WayPlan) -> Self {
        let random = |about: About| Random::stream(plan.seed, plan.number + 2 * about as u64);
        Path {
            line: Pacer::new(plan.mean_bps, plan.trace.clone(), plan.counts_packets()),
            queue: plan.queue,
            mark_above: plan.mark_above,
            delay: plan.delay,
            largest: plan.way.drop_above.map_or(u64::MAX, |size| size.0),
            loss: Loss::new(plan, random(About::Loss)),
            jitter: (plan.way.jitter, random(About::Jitter)),
            reorder: (plan.way.reorder.as_f64(), random(About::Reorder)),
            held_for: plan.way.reorder_delay,
            duplicate: (plan.way.duplicate.as_f64(), random(About::Duplicate)),
            last: Nanos(0),
        }
    }

    /// Takes a segment that arrives at `now`. Times never go back.
    pub(super) fn admit(&mut self, now: Nanos, segment: Segment) -> Fate {
        let size = u64::from(segment.size);
        if size > self.largest {
            return Fate::TooLarge;
        }
        let waiting = self.line.waiting(now);
        // A line that stands idle takes any segment: the queue holds what waits for it.
        if waiting.bytes > 0 && !waiting.fits(size, self.queue) {
            return Fate::NoRoom;
        }
        // A step, as RFC 8257 (section 4.1) wants it.
        let is_marked = segment.is_ect && self.mark_above.is_some_and(|room| !waiting.fits(size, room));
        let leaves = self.line.occupy(now, segment.size);
        if self.loss.takes(segment.has_payload) {
            return Fate::Lost;
        }
        let is_held = self.reorder.1.happens(self.reorder.0);
        let is_doubled = self.duplicate.1.happens(self.duplicate.0);
        let at = self.arrives(leaves) + if is_held { self.held_for } else { Nanos(0) };
        Fate::Arrives(Arrival { at, is_held, is_marked, is_doubled })
    }

    /// When a segment arrives that left the line at this time.
    fn arrives(&mut self, leaves: Nanos) -> Nanos {
        let (most, random) = &mut self.jitter;
        // Draws nothing where there is no jitter: a division of all there is into equal steps.
        let extra = match most.0 {
            0 => 0,
            most => (u128::from(random.draw()) * (u128::from(most) + 1)) >> 64,
        };
        self.last = self.last.max(leaves + self.delay + Nanos(extra as u64));
        self.last
    }

    /// What waits in front of the line at `now`. Times never go back.
    pub(super) fn waiting(&mut self, now: Nanos) -> Waiting {
        self.line.waiting(now)
    }

    /// A run begins: losses by number count from 1 again.
    pub(super) fn count_anew(&mut self) {
        self.loss.count_anew();
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
