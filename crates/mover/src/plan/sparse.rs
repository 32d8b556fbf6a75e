//! Files with holes: which pieces need not be sent.

use super::{Cursor, Plan, Work};
use crate::digest;
use crate::extents::{DataMap, MOST_RANGES, bytes_of};
use crate::ranges::between;
use crate::tree::SourcePlace;

/// The number of ranges of pieces that wait to be sent, beyond which no further file is looked at. It bounds the memory for
/// ranges, and keeps the time short between the look at a file and its sending.
const MOST_WAITING: usize = 64;

/// A file of several pieces of which it is not yet known where it has data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MapWork {
    pub(crate) entry: u64,
    /// The number of pieces of the file.
    pub(crate) pieces: u32,
    pub(crate) place: SourcePlace,
    /// The pieces that the target may have already, as ranges of (first, number).
    held: Vec<(u32, u32)>,
}

impl Plan {
    /// Plans to find where a file has data. Until then, all its pieces count as waiting, so that offers do not outrun content.
    pub(super) fn want_map(&mut self, entry: u64, pieces: u32, place: SourcePlace, held: &[(u32, u32)]) {
        self.waiting += all_bytes(pieces);
        let held = held[..held.len().min(MOST_RANGES)].to_vec();
        self.unmapped.push_back(MapWork { entry, pieces, place, held });
    }

    /// Returns the next file of which it is to be found where it has data.
    pub(super) fn next_map(&mut self) -> Option<MapWork> {
        // What replaces a file that is looked at now may be missing in the target's answer.
        let most = if self.target_room.is_open() { 1 } else { MOST_WAITING };
        while self.large.len() < most {
            let map = self.unmapped.pop_front()?;
            self.waiting = self.waiting.saturating_sub(all_bytes(map.pieces));
            if self.open.get(&map.entry).is_some_and(|open| open.after.is_none()) {
                return Some(map);
            }
        }
        None
    }

    /// Plans to send the pieces of a file that have data, to compare those of them that the target may have, and to name the
    /// others as holes.
    pub(crate) fn mapped(&mut self, map: &MapWork, found: DataMap) {
        let DataMap { with_data: data, dense } = found;
        let Some(open) = self.open.get_mut(&map.entry).filter(|open| open.after.is_none()) else { return };
        let (size, holes) = (open.found.size(), between(&data, map.pieces));
        open.dense = dense;
        open.hole_bytes = holes.iter().map(|range| bytes_of(size, *range)).sum();
        if !holes.is_empty() {
            self.holes.push_back(map.entry);
        }
        open.holes = holes;
        for &(first, number) in &data {
            self.send_or_compare(map, first, first + number);
        }
        self.consider_room();
    }

    /// Plans to send the pieces from `next` to before `end`, and to compare those that the target may have.
    fn send_or_compare(&mut self, map: &MapWork, mut next: u32, end: u32) {
        let entry = map.entry;
        for &(first, number) in &map.held {
            let (first, held_end) = (first.max(next), first.saturating_add(number).min(end));
            if first < held_end {
                self.send(entry, next, first);
                self.held.push_back(Cursor { entry, next: first, end: held_end });
                next = held_end;
            }
        }
        self.send(entry, next, end);
    }

    /// Returns a message that names the holes of a file.
    pub(super) fn next_holes(&mut self) -> Option<Work> {
        loop {
            let entry = self.holes.pop_front()?;
            let open = self.open.get(&entry).filter(|open| open.after.is_none() && !open.holes.is_empty());
            if let Some(open) = open {
                return Some(Work::Holes { entry, holes: open.holes.clone() });
            }
        }
    }

    /// The target has taken the holes of a file.
    pub(super) fn holes_taken(&mut self, entry: u64) {
        let Some(open) = self.open.get_mut(&entry) else { return };
        let holes = std::mem::take(&mut open.holes);
        let bytes = open.hole_bytes;
        if open.done.as_mut().is_some_and(|done| done.add_holes(&holes)) {
            open.taken += bytes;
            self.settled.moved_bytes += bytes;
            self.install_if_whole(entry);
        }
    }
}

fn all_bytes(pieces: u32) -> u64 {
    u64::from(pieces) * digest::PIECE as u64
}
