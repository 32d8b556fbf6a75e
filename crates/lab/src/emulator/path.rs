//! One direction of the link as a state machine that decides the fate of each arriving segment. It is pure: times are
//! arguments, and random numbers come from a seed.
//!
//! The steps follow the order of a real path. A router refuses packets that are larger than the MTU of its next link. A
//! bounded queue drops packets that do not fit (tail drop), and marks packets (ECN) that arrive while the queue is
//! above a threshold. The line transmits each segment at its rate, loses some, and holds some back. A segment arrives
//! after a fixed delay and a random jitter, but never before one that left the line earlier. A segment that was held
//! back arrives later still, and so does one of the second round trip. A lost segment has used the line, so loss does not
//! make the link faster. A duplicated segment is copied after the line.

use landspeed_record::units::Nanos;
use landspeed_stats::{Random, TrafficCounts};

use super::cross::CrossSources;
use super::loss::LossModel;
use super::pace::{LinePacer, QueueContents};
use super::plan::{DirectionPlan, QueueBound};

/// A segment that arrives at the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Length of its IP packet, in bytes.
    pub(super) size: u32,
    /// True if it carries bytes of a TCP stream or a UDP datagram.
    pub(super) has_payload: bool,
    /// True if its sender supports ECN, so that it may be marked.
    pub(super) is_ect: bool,
    /// True if its flow takes the second round trip, where the link has one.
    pub(super) is_far: bool,
}

/// The arrival of a segment at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentArrival {
    pub(super) at: Nanos,
    /// True if it was held back, so that later segments may overtake it.
    pub(super) is_held: bool,
    /// True if it arrives later than others because its flow takes the second round trip.
    pub(super) is_far: bool,
    /// True if it must be marked "congestion experienced".
    pub(super) is_marked: bool,
    /// True if a copy follows directly behind it.
    pub(super) is_doubled: bool,
}

/// The fate of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentFate {
    /// It reaches the other end.
    Arrives(SegmentArrival),
    /// It was dropped, because it is larger than the path accepts.
    TooLarge,
    /// It was dropped, because the queue was full.
    NoRoom,
    /// It was lost on the line.
    Lost,
}

/// The purpose of a random generator. Each purpose has its own generator, so that one parameter does not change the
/// random numbers of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RandomUse {
    Loss,
    Reorder,
    Jitter,
    Duplicate,
    Cross,
}

/// The state of one direction.
#[derive(Debug, Clone)]
pub(super) struct EmulatedPath {
    line: LinePacer,
    queue: QueueBound,
    mark_above: Option<QueueBound>,
    delay: Nanos,
    largest: u64,
    loss: LossModel,
    jitter: (Nanos, Random),
    reorder: (f64, Random),
    held_for: Nanos,
    /// Time by which segments of the second round trip arrive later than others; zero if the link has one round trip.
    farther: Nanos,
    duplicate: (f64, Random),
    cross: CrossSources,
    /// The latest arrival time so far, without the extra time of held segments and of those of the second round trip.
    last: Nanos,
}

impl EmulatedPath {
    /// Makes a direction with its own random generators, so that the two directions of a link lose different segments.
    pub(super) fn new(plan: &DirectionPlan) -> Self {
        let random = |about: RandomUse| Random::stream(plan.seed, plan.number + 2 * about as u64);
        EmulatedPath {
            line: LinePacer::new(plan.mean_bps, plan.trace.clone(), plan.counts_packets()),
            queue: plan.queue,
            mark_above: plan.mark_above,
            delay: plan.delay,
            largest: plan.direction.drop_above.map_or(u64::MAX, |size| size.0),
            loss: LossModel::new(plan, random(RandomUse::Loss)),
            jitter: (plan.direction.jitter, random(RandomUse::Jitter)),
            reorder: (plan.direction.reorder.as_f64(), random(RandomUse::Reorder)),
            held_for: plan.direction.reorder_delay,
            farther: plan.farther,
            duplicate: (plan.direction.duplicate.as_f64(), random(RandomUse::Duplicate)),
            cross: CrossSources::new(&plan.cross().sources(&mut random(RandomUse::Cross))),
            last: Nanos(0),
        }
    }

    /// Decides the fate of a segment that arrives at `now`, which must never decrease.
    pub(super) fn admit(&mut self, now: Nanos, segment: Segment) -> SegmentFate {
        let size = u64::from(segment.size);
        if size > self.largest {
            return SegmentFate::TooLarge;
        }
        let waiting = self.waiting(now);
        // An idle line accepts a segment of any size. The queue's bound applies only while the line is busy.
        if waiting.bytes > 0 && !waiting.fits(size, self.queue) {
            return SegmentFate::NoRoom;
        }
        // Marking starts at one threshold (a step), as in RFC 8257 (section 4.1).
        let is_marked = segment.is_ect && self.mark_above.is_some_and(|bound| !waiting.fits(size, bound));
        let leaves = self.line.occupy(now, segment.size);
        if self.loss.loses(segment.has_payload) {
            return SegmentFate::Lost;
        }
        let is_held = self.reorder.1.happens(self.reorder.0);
        let is_doubled = self.duplicate.1.happens(self.duplicate.0);
        let is_far = segment.is_far && self.farther > Nanos(0);
        let held = if is_held { self.held_for } else { Nanos(0) };
        let farther = if is_far { self.farther } else { Nanos(0) };
        let at = self.arrives(leaves) + held + farther;
        SegmentFate::Arrives(SegmentArrival { at, is_held, is_far, is_marked, is_doubled })
    }

    /// Returns when a segment that left the line at `leaves` arrives.
    fn arrives(&mut self, leaves: Nanos) -> Nanos {
        let (most, random) = &mut self.jitter;
        // Draws no random number if there is no jitter. Otherwise the product maps 64 random bits to 0 to `most`
        // nanoseconds, uniformly.
        let extra = match most.0 {
            0 => 0,
            most => (u128::from(random.draw()) * (u128::from(most) + 1)) >> 64,
        };
        self.last = self.last.max(leaves + self.delay + Nanos(extra as u64));
        self.last
    }

    /// Returns the contents of the queue at `now`, which must never decrease.
    pub(super) fn waiting(&mut self, now: Nanos) -> QueueContents {
        self.cross.advance(now);
        while let Some(packet) = self.cross.take(now) {
            let waiting = self.line.waiting(packet.at);
            let has_room = waiting.bytes == 0 || waiting.fits(packet.size.into(), self.queue);
            if has_room {
                self.line.occupy(packet.at, packet.size);
            }
            self.cross.count(packet, has_room);
        }
        self.line.waiting(now)
    }

    /// Returns the counts of the cross traffic.
    pub(super) fn cross(&self) -> TrafficCounts {
        self.cross.counts()
    }

    /// Begins a run, in which losses by number count from 1 again.
    pub(super) fn count_anew(&mut self) {
        self.loss.count_anew();
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
