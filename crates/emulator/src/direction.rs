//! Carries frames in one direction: applies to their bytes what [`Path`] decides. Touches no socket and no clock.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use landspeed_units::Nanos;

use super::batch::Given;
use super::frame::{Frame, Superpacket, look};
use super::ip::{has_payload, is_ect, mark_ce};
use super::path::{Arrival, Fate, Path, Segment};
use super::piece::Run;
use super::plan::WayPlan;
use super::ring::{Due, FrameRing};
use super::samples::Sampler;
use super::split::{piece_len, write_piece};
use super::stats::{Counters, count};
use super::virtio::VIRTIO_LEN;

/// The ring that a frame waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Main,
    /// Frames that are held back, all for the same time, so that they too leave in order.
    Held,
}

impl Lane {
    fn of(arrival: &Arrival) -> Self {
        if arrival.is_held { Lane::Held } else { Lane::Main }
    }
}

/// The caller's remaining task for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Nothing: the frame is under way, or was dropped.
    Done,
    /// Pass the frame on now, because it is not traffic of the path.
    PassOn,
}

/// One direction of a link.
#[derive(Debug)]
pub(super) struct Direction {
    path: Path,
    main: FrameRing,
    held: FrameRing,
    counters: Arc<Counters>,
    sampler: Sampler,
    /// The number of the current run ([`Counters::run`]).
    run: u64,
}

impl Direction {
    /// Allocates, and touches, all the memory that the direction will need.
    pub(super) fn new(plan: &WayPlan, counters: Arc<Counters>) -> Self {
        let (main, held) = plan.memory();
        let (main, held) = (FrameRing::new(main), FrameRing::new(held));
        Direction { path: Path::new(plan), main, held, counters, sampler: Sampler::default(), run: 0 }
    }

    /// Returns the bytes of memory that a direction takes.
    pub(super) fn footprint(plan: &WayPlan) -> usize {
        let (main, held) = plan.memory();
        FrameRing::footprint(main).saturating_add(FrameRing::footprint(held))
    }

    /// Takes a frame that arrived at `at`, with its virtio header first. Times never decrease.
    pub(super) fn take(&mut self, at: Nanos, buffer: &[u8]) -> Taken {
        self.look_at_the_queue(at);
        match look(buffer) {
            Some(Frame::Neighbours) => {
                count(&self.counters.neighbours, 1);
                return Taken::PassOn;
            }
            Some(Frame::Packet(size)) => self.take_packet(at, size, buffer),
            Some(Frame::Super(whole)) => self.take_super(at, &whole, buffer),
            None => self.refuse(),
        }
        let waiting = self.path.waiting(at).bytes;
        self.counters.most_queued.fetch_max(waiting, Relaxed);
        self.counters.most_lately.store(self.sampler.saw(waiting), Relaxed);
        Taken::Done
    }

    /// Starts new counts if a run began, and adds the samples of the queue that are due, before anything else
    /// happens.
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

    /// Decides the fate of one segment and counts it.
    fn admit(&mut self, at: Nanos, segment: Segment) -> Option<Arrival> {
        let fate = self.path.admit(at, segment);
        count(&self.counters.arrived, 1);
        match fate {
            Fate::Arrives(arrival) => {
                let counters = [&self.counters.held, &self.counters.marked, &self.counters.copied];
                let what = [arrival.is_held, arrival.is_marked, arrival.is_doubled];
                counters
                    .into_iter()
                    .zip(what)
                    .filter(|(_, is)| *is)
                    .for_each(|(counter, _)| count(counter, 1));
                return Some(arrival);
            }
            Fate::TooLarge => count(&self.counters.too_large, 1),
            Fate::NoRoom => count(&self.counters.no_room, 1),
            Fate::Lost => count(&self.counters.lost, 1),
        }
        None
    }

    fn take_packet(&mut self, at: Nanos, size: u32, buffer: &[u8]) {
        let frame = &buffer[VIRTIO_LEN..];
        let segment = Segment { size, has_payload: has_payload(frame), is_ect: is_ect(frame) };
        let Some(arrival) = self.admit(at, segment) else { return };
        let lane = Lane::of(&arrival);
        for _ in 0..=u8::from(arrival.is_doubled) {
            let Some(room) = self.room(lane, arrival.at, buffer.len(), 1) else { continue };
            room.copy_from_slice(buffer);
            if arrival.is_marked {
                mark_ce(&mut room[VIRTIO_LEN..]);
            }
        }
    }

    fn take_super(&mut self, at: Nanos, whole: &Superpacket, buffer: &[u8]) {
        let is_ect = is_ect(&buffer[VIRTIO_LEN..]);
        let mut run: Option<Run> = None;
        for n in 0..whole.count() {
            // Every segment of a superpacket has payload.
            let arrival = self.admit(at, Segment { size: whole.ip_len(n), has_payload: true, is_ect });
            match (&mut run, arrival) {
                (Some(run), Some(next)) if run.takes(n, next, whole) => {
                    (run.segments.end, run.last) = (n + 1, next);
                }
                (_, arrival) => {
                    let ended = std::mem::replace(&mut run, arrival.map(|arrival| Run::of(n, arrival)));
                    self.store(ended, whole, buffer);
                }
            }
            if let Some(doubled) = arrival.filter(|arrival| arrival.is_doubled) {
                self.store(run.take(), whole, buffer);
                self.store(Some(Run::of(n, doubled)), whole, buffer);
            }
        }
        self.store(run, whole, buffer);
    }

    fn store(&mut self, run: Option<Run>, whole: &Superpacket, buffer: &[u8]) {
        let Some(run) = run else { return };
        let segments = run.segments.end - run.segments.start;
        let is_whole = segments == whole.count();
        let len = if is_whole { buffer.len() } else { piece_len(whole, &run.segments) };
        let Some(room) = self.room(Lane::of(&run.last), run.last.at, len, segments) else { return };
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

    /// Returns room for a frame in one ring; counts the segments as overrun if there is none.
    fn room(&mut self, lane: Lane, leaves: Nanos, len: usize, segments: u32) -> Option<&mut [u8]> {
        let line = match lane {
            Lane::Main => &mut self.main,
            Lane::Held => &mut self.held,
        };
        let room = line.push(leaves, len, segments);
        if room.is_none() {
            count(&self.counters.overrun, segments.into());
        }
        room
    }

    /// Returns when the next frame leaves.
    pub(super) fn next(&self) -> Option<Nanos> {
        [self.main.next(), self.held.next()].into_iter().flatten().min()
    }

    /// Returns the ring with the next frame that leaves by `now`, and the time until which its frames leave before
    /// those of the other ring.
    pub(super) fn turn(&self, now: Nanos) -> Option<(Lane, Nanos)> {
        let next = self.next().filter(|next| *next <= now)?;
        let (lane, other) = match self.main.next() == Some(next) {
            true => (Lane::Main, self.held.next()),
            false => (Lane::Held, self.main.next()),
        };
        Some((lane, other.map_or(now, |other| other.min(now))))
    }

    /// Returns the frames of one ring that leave by `until`, in order.
    pub(super) fn due(&self, lane: Lane, until: Nanos) -> impl Iterator<Item = Due<'_>> {
        self.line(lane).due(until)
    }

    /// Removes the frames that were sent to the other link at `now`, and counts them.
    pub(super) fn given(&mut self, lane: Lane, given: Given, now: Nanos) {
        for (n, due) in self.line(lane).due(Nanos(u64::MAX)).take(given.done).enumerate() {
            if given.refused && n + 1 == given.done {
                count(&self.counters.refused, due.segments.into());
                continue;
            }
            count(&self.counters.forwarded, due.segments.into());
            count(&self.counters.forwarded_bytes, (due.frame.len() - VIRTIO_LEN) as u64);
            self.counters.late.add(now - due.leaves, 1);
        }
        match lane {
            Lane::Main => self.main.pop(given.done),
            Lane::Held => self.held.pop(given.done),
        }
    }

    fn line(&self, lane: Lane) -> &FrameRing {
        match lane {
            Lane::Main => &self.main,
            Lane::Held => &self.held,
        }
    }
}

#[cfg(test)]
#[path = "direction_tests.rs"]
mod tests;
