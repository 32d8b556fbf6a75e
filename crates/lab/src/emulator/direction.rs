//! Carries frames in one direction of the link, by the decisions of [`EmulatedPath`]. Uses no socket and no clock.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use landspeed_record::units::Nanos;

use super::batch::SendOutcome;
use super::frame::{ParsedFrame, Superpacket, look};
use super::ip::{has_payload, is_ect, is_far, mark_ce};
use super::path::{EmulatedPath, Segment, SegmentArrival, SegmentFate};
use super::piece::SegmentRun;
use super::plan::DirectionPlan;
use super::ring::{DueFrame, FrameRing};
use super::samples::QueueSampler;
use super::split::{piece_len, write_piece};
use super::stats::{DirectionCounters, count};
use super::virtio::VIRTIO_LEN;

/// The ring in which a frame waits until it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameLane {
    Main,
    /// The ring of frames that arrive later than the others: those that are held back, or those of the second round
    /// trip. A link has only one of the two kinds. All have the same extra delay, so they leave in order too.
    Held,
}

impl FrameLane {
    fn of(arrival: &SegmentArrival) -> Self {
        if arrival.is_held || arrival.is_far { FrameLane::Held } else { FrameLane::Main }
    }
}

/// The caller's remaining task for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameHandling {
    /// Nothing: the frame was stored or dropped.
    Done,
    /// Pass the frame on now, because it is not traffic of the path.
    PassOn,
}

/// One direction of a link.
#[derive(Debug)]
pub(super) struct LinkDirection {
    path: EmulatedPath,
    main: FrameRing,
    held: FrameRing,
    counters: Arc<DirectionCounters>,
    sampler: QueueSampler,
    /// The number of the current run ([`DirectionCounters::run`]).
    run: u64,
}

impl LinkDirection {
    /// Creates a direction, and allocates and touches all the memory that it will need.
    pub(super) fn new(plan: &DirectionPlan, counters: Arc<DirectionCounters>) -> Self {
        let (main, held) = plan.memory();
        let (main, held) = (FrameRing::new(main), FrameRing::new(held));
        LinkDirection {
            path: EmulatedPath::new(plan),
            main,
            held,
            counters,
            sampler: QueueSampler::default(),
            run: 0,
        }
    }

    /// Returns the memory that a direction needs, in bytes.
    pub(super) fn footprint(plan: &DirectionPlan) -> usize {
        let (main, held) = plan.memory();
        FrameRing::footprint(main).saturating_add(FrameRing::footprint(held))
    }

    /// Takes a frame that arrived at `at`, in a buffer that begins with its virtio header. `at` must never decrease.
    pub(super) fn take(&mut self, at: Nanos, buffer: &[u8]) -> FrameHandling {
        self.look_at_the_queue(at);
        match look(buffer) {
            Some(ParsedFrame::Neighbours) => {
                count(&self.counters.neighbours, 1);
                return FrameHandling::PassOn;
            }
            Some(ParsedFrame::Packet(size)) => self.take_packet(at, size, buffer),
            Some(ParsedFrame::Super(whole)) => self.take_super(at, &whole, buffer),
            None => self.refuse(),
        }
        let waiting = self.path.waiting(at).bytes;
        self.counters.most_queued.fetch_max(waiting, Relaxed);
        self.counters.crossed(self.path.cross());
        self.counters.most_lately.store(self.sampler.saw(waiting), Relaxed);
        FrameHandling::Done
    }

    /// Resets the state of a run if a new one has begun, and adds the samples of the queue that are due. Call it before
    /// the frame is admitted.
    fn look_at_the_queue(&mut self, at: Nanos) {
        let run = self.counters.run.load(Relaxed);
        if run != self.run {
            self.run = run;
            self.path.count_anew();
            self.sampler.restart();
        }
        let drops = self.counters.no_room.load(Relaxed);
        self.sampler.look(at, &self.counters.samples, drops, |then| self.path.waiting(then).bytes);
    }

    /// Counts a frame that cannot be carried.
    pub(super) fn refuse(&self) {
        count(&self.counters.arrived, 1);
        count(&self.counters.refused, 1);
    }

    /// Decides the fate of one segment and counts it. Returns its arrival; `None` if it was dropped or lost.
    fn admit(&mut self, at: Nanos, segment: Segment) -> Option<SegmentArrival> {
        let fate = self.path.admit(at, segment);
        count(&self.counters.arrived, 1);
        match fate {
            SegmentFate::Arrives(arrival) => {
                let counters = [&self.counters.held, &self.counters.marked, &self.counters.copied];
                let what = [arrival.is_held, arrival.is_marked, arrival.is_doubled];
                counters
                    .into_iter()
                    .zip(what)
                    .filter(|(_, is)| *is)
                    .for_each(|(counter, _)| count(counter, 1));
                return Some(arrival);
            }
            SegmentFate::TooLarge => count(&self.counters.too_large, 1),
            SegmentFate::NoRoom => count(&self.counters.no_room, 1),
            SegmentFate::Lost => count(&self.counters.lost, 1),
        }
        None
    }

    fn take_packet(&mut self, at: Nanos, size: u32, buffer: &[u8]) {
        let frame = &buffer[VIRTIO_LEN..];
        let (is_ect, is_far) = (is_ect(frame), is_far(frame));
        let segment = Segment { size, has_payload: has_payload(frame), is_ect, is_far };
        let Some(arrival) = self.admit(at, segment) else { return };
        let lane = FrameLane::of(&arrival);
        for _ in 0..=u8::from(arrival.is_doubled) {
            let Some(room) = self.room(lane, arrival.at, buffer.len(), 1) else { continue };
            room.copy_from_slice(buffer);
            if arrival.is_marked {
                mark_ce(&mut room[VIRTIO_LEN..]);
            }
        }
    }

    fn take_super(&mut self, at: Nanos, whole: &Superpacket, buffer: &[u8]) {
        let frame = &buffer[VIRTIO_LEN..];
        let (is_ect, is_far) = (is_ect(frame), is_far(frame));
        let mut run: Option<SegmentRun> = None;
        for n in 0..whole.count() {
            // Every segment of a superpacket has payload.
            let segment = Segment { size: whole.ip_len(n), has_payload: true, is_ect, is_far };
            let arrival = self.admit(at, segment);
            match (&mut run, arrival) {
                (Some(run), Some(next)) if run.takes(n, next, whole) => {
                    (run.segments.end, run.last) = (n + 1, next);
                }
                (_, arrival) => {
                    let ended =
                        std::mem::replace(&mut run, arrival.map(|arrival| SegmentRun::of(n, arrival)));
                    self.store(ended, whole, buffer);
                }
            }
            if let Some(doubled) = arrival.filter(|arrival| arrival.is_doubled) {
                self.store(run.take(), whole, buffer);
                self.store(Some(SegmentRun::of(n, doubled)), whole, buffer);
            }
        }
        self.store(run, whole, buffer);
    }

    fn store(&mut self, run: Option<SegmentRun>, whole: &Superpacket, buffer: &[u8]) {
        let Some(run) = run else { return };
        let segments = run.segments.end - run.segments.start;
        let is_whole = segments == whole.count();
        let len = if is_whole { buffer.len() } else { piece_len(whole, &run.segments) };
        let Some(room) = self.room(FrameLane::of(&run.last), run.last.at, len, segments) else { return };
        if is_whole {
            room.copy_from_slice(buffer);
            whole.virtio.with_headers(whole.headers).write(room);
        } else {
            write_piece(whole, &buffer[VIRTIO_LEN..], &run.segments, room);
        }
        if run.last.is_marked {
            mark_ce(&mut room[VIRTIO_LEN..]);
        }
    }

    /// Returns memory for a frame of `len` bytes in one ring. If there is none, counts its segments as overrun.
    fn room(&mut self, lane: FrameLane, leaves: Nanos, len: usize, segments: u32) -> Option<&mut [u8]> {
        let ring = match lane {
            FrameLane::Main => &mut self.main,
            FrameLane::Held => &mut self.held,
        };
        let room = ring.push(leaves, len, segments);
        if room.is_none() {
            count(&self.counters.overrun, segments.into());
        }
        room
    }

    /// Returns when the next frame leaves; `None` if no frame waits.
    pub(super) fn next(&self) -> Option<Nanos> {
        [self.main.next(), self.held.next()].into_iter().flatten().min()
    }

    /// Returns the ring that has the next due frame, and the time until which its frames leave before those of the
    /// other ring. Returns `None` if no frame is due by `now`.
    pub(super) fn turn(&self, now: Nanos) -> Option<(FrameLane, Nanos)> {
        let next = self.next().filter(|next| *next <= now)?;
        let (lane, other) = match self.main.next() == Some(next) {
            true => (FrameLane::Main, self.held.next()),
            false => (FrameLane::Held, self.main.next()),
        };
        Some((lane, other.map_or(now, |other| other.min(now))))
    }

    /// Returns the frames of one ring that leave by `until`, in order.
    pub(super) fn due(&self, lane: FrameLane, until: Nanos) -> impl Iterator<Item = DueFrame<'_>> {
        self.ring(lane).due(until)
    }

    /// Removes the frames that were sent or refused at `now`, and counts them.
    pub(super) fn sent(&mut self, lane: FrameLane, sent: SendOutcome, now: Nanos) {
        for (n, due) in self.ring(lane).due(Nanos(u64::MAX)).take(sent.done).enumerate() {
            if sent.refused && n + 1 == sent.done {
                count(&self.counters.refused, due.segments.into());
                continue;
            }
            count(&self.counters.forwarded, due.segments.into());
            count(&self.counters.forwarded_bytes, (due.frame.len() - VIRTIO_LEN) as u64);
            self.counters.late.add(now - due.leaves, 1);
        }
        match lane {
            FrameLane::Main => self.main.pop(sent.done),
            FrameLane::Held => self.held.pop(sent.done),
        }
    }

    fn ring(&self, lane: FrameLane) -> &FrameRing {
        match lane {
            FrameLane::Main => &self.main,
            FrameLane::Held => &self.held,
        }
    }
}

#[cfg(test)]
#[path = "direction_tests.rs"]
mod tests;
