//! Frames in, frames out, one direction: what [`Path`] decides is done to the bytes. Touches no socket and
//! no clock.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use landspeed_units::Nanos;

use super::batch::Given;
use super::frame::{ETHERNET, Frame, Superpacket, look};
use super::line::{Due, Line};
use super::path::{Fate, Path};
use super::spec::WanSpec;
use super::split::{piece_len, write_piece};
use super::stats::{Counters, count};
use super::virtio::VIRTIO_LEN;

/// A superpacket stays in one piece for at most so long on the line: its first segment waits for its last.
/// Below 500 Mb/s the largest superpackets are therefore cut, down to single segments at 10 Mb/s.
const LONGEST_PIECE: Nanos = Nanos::millis(1);
/// The largest frame that leaves: what an IP packet's length field can say.
const LARGEST_PIECE: usize = VIRTIO_LEN + ETHERNET + 65_535;

/// Which line a frame is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Main,
    /// Frames that are held back; all for equally long, so that they too leave in order.
    Held,
}

/// What to do with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Nothing more: it is under way, or gone.
    Done,
    /// It is no traffic of the path: pass it on now.
    PassOn,
}

/// One direction of a link.
#[derive(Debug)]
pub(super) struct Direction {
    path: Path,
    main: Line,
    held: Line,
    counters: Arc<Counters>,
}

/// Neighbouring segments of a superpacket that arrive together.
struct Run {
    segments: Range<u32>,
    /// When the first of them would arrive, and the last.
    first: Nanos,
    last: Nanos,
}

/// Bytes of memory for frames, in the main line and among those held back. Frames take a little more room
/// than their IP packets (their headers), and some is lost at the end of the ring.
fn capacities(spec: &WanSpec) -> (usize, usize) {
    let over = |time: Nanos| u128::from(spec.rate_bps()) * u128::from(time.0) / 8_000_000_000;
    let room = |bytes: u128| usize::try_from(bytes * 5 / 4).unwrap_or(usize::MAX / 8) + 4 * LARGEST_PIECE;
    let queue = u128::from(spec.queue().0);
    let main = room(over(spec.one_way()) + queue);
    if spec.reorder().is_zero() {
        return (main, 0);
    }
    let all = over(spec.one_way() + spec.reorder_delay()) + queue;
    // Four times their share: chance bunches them.
    let share = (spec.reorder().as_f64() * 4.0).min(1.0);
    (main, room((all as f64 * share) as u128))
}

impl Direction {
    /// Takes, and touches, all the memory that it will need.
    pub(super) fn new(spec: &WanSpec, number: u64, counters: Arc<Counters>) -> Self {
        let (main, held) = capacities(spec);
        Direction { path: Path::new(spec, number), main: Line::new(main), held: Line::new(held), counters }
    }

    /// Memory that a direction takes.
    pub(super) fn footprint(spec: &WanSpec) -> usize {
        let (main, held) = capacities(spec);
        Line::footprint(main).saturating_add(Line::footprint(held))
    }

    /// Takes a frame, virtio header first, that came in at this time. Times never go back.
    pub(super) fn take(&mut self, at: Nanos, buffer: &[u8]) -> Taken {
        match look(buffer) {
            Some(Frame::Neighbours) => {
                count(&self.counters.neighbours, 1);
                return Taken::PassOn;
            }
            Some(Frame::Packet(size)) => self.take_packet(at, size, buffer),
            Some(Frame::Super(whole)) => self.take_super(at, &whole, buffer),
            None => self.refuse(),
        }
        self.counters.most_queued.fetch_max(self.path.waiting(at).0, Relaxed);
        Taken::Done
    }

    /// Counts a frame that cannot be carried.
    pub(super) fn refuse(&self) {
        count(&self.counters.arrived, 1);
        count(&self.counters.refused, 1);
    }

    /// One segment's fate, counted.
    fn admit(&mut self, at: Nanos, size: u32) -> Fate {
        let fate = self.path.admit(at, size);
        count(&self.counters.arrived, 1);
        match fate {
            Fate::Arrives(_) => {}
            Fate::Held(_) => count(&self.counters.held, 1),
            Fate::TooLarge => count(&self.counters.too_large, 1),
            Fate::NoRoom => count(&self.counters.no_room, 1),
            Fate::Lost => count(&self.counters.lost, 1),
        }
        fate
    }

    fn take_packet(&mut self, at: Nanos, size: u32, buffer: &[u8]) {
        let (lane, leaves) = match self.admit(at, size) {
            Fate::Arrives(leaves) => (Lane::Main, leaves),
            Fate::Held(leaves) => (Lane::Held, leaves),
            _ => return,
        };
        if let Some(room) = self.room(lane, leaves, buffer.len(), 1) {
            room.copy_from_slice(buffer);
        }
    }

    fn take_super(&mut self, at: Nanos, whole: &Superpacket, buffer: &[u8]) {
        let mut run: Option<Run> = None;
        for n in 0..whole.count() {
            let fate = self.admit(at, whole.ip_len(n));
            if let (Fate::Arrives(last), Some(run)) = (fate, &mut run)
                && last - run.first <= LONGEST_PIECE
                && piece_len(whole, &(run.segments.start..n + 1)) <= LARGEST_PIECE
            {
                (run.segments.end, run.last) = (n + 1, last);
                continue;
            }
            if let Some(run) = run.take() {
                self.store(Lane::Main, whole, &run, buffer);
            }
            let new = |at| Run { segments: n..n + 1, first: at, last: at };
            match fate {
                Fate::Arrives(at) => run = Some(new(at)),
                Fate::Held(at) => self.store(Lane::Held, whole, &new(at), buffer),
                _ => {}
            }
        }
        if let Some(run) = run {
            self.store(Lane::Main, whole, &run, buffer);
        }
    }

    fn store(&mut self, lane: Lane, whole: &Superpacket, run: &Run, buffer: &[u8]) {
        let segments = run.segments.end - run.segments.start;
        if segments == whole.count() {
            if let Some(room) = self.room(lane, run.last, buffer.len(), segments) {
                room.copy_from_slice(buffer);
                whole.virtio.with_headers(whole.headers).write(room);
            }
            return;
        }
        let len = piece_len(whole, &run.segments);
        if let Some(room) = self.room(lane, run.last, len, segments) {
            write_piece(whole, &buffer[VIRTIO_LEN..], &run.segments, room);
        }
    }

    /// Room in a line; counts the segments as overrun where there is none.
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

    /// When the next frame leaves.
    pub(super) fn next(&self) -> Option<Nanos> {
        [self.main.next(), self.held.next()].into_iter().flatten().min()
    }

    /// The line that has the next frame to leave by `now`, and until when it is that line's turn.
    pub(super) fn turn(&self, now: Nanos) -> Option<(Lane, Nanos)> {
        let next = self.next().filter(|next| *next <= now)?;
        let (lane, other) = match self.main.next() == Some(next) {
            true => (Lane::Main, self.held.next()),
            false => (Lane::Held, self.main.next()),
        };
        Some((lane, other.map_or(now, |other| other.min(now))))
    }

    /// The frames of a line that leave by `until`, first to last.
    pub(super) fn due(&self, lane: Lane, until: Nanos) -> impl Iterator<Item = Due<'_>> {
        self.line(lane).due(until)
    }

    /// Lets go of what was given to the other side at `now`.
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

    fn line(&self, lane: Lane) -> &Line {
        match lane {
            Lane::Main => &self.main,
            Lane::Held => &self.held,
        }
    }
}

#[cfg(test)]
#[path = "direction_tests.rs"]
mod tests;
