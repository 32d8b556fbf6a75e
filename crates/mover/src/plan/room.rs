//! Checks whether the target has room for the data that wait to be sent, so that a clear shortage ends the copy before
//! the disk is full.
//!
//! Only bytes that will certainly be written count: whole pieces without holes that no flow has taken yet, of files of
//! which the target has no part. If they need more than the target is known to have, it is asked. Until it answers, no
//! further file is looked at as long as there is something to send, so that its answer is about all of them. A shortage
//! counts once several answers name it: a file system may give back the room of files that were removed a moment later.

use super::{Cursor, LOW, OpenEntry, Plan, Work};
use crate::digest::PIECE;
use crate::wire::{Failure, Operation};

/// The least shortage in bytes that counts, and the least need of which the target is asked. While more waits, nothing is offered:
/// no later entry, which could make room by getting shorter, would come before the disk is full.
const LEAST: u64 = LOW;
/// The number of answers in a row that must name a shortage.
const ANSWERS: u32 = 4;

/// The last known free space of the target.
#[derive(Debug, Default)]
pub(super) struct TargetRoom {
    /// The bytes that could be written when the target was asked last.
    free: u64,
    question: RoomQuestion,
    /// The number of answers in a row that named a shortage.
    short: u32,
    /// True if the target was asked before, and has named a shortage.
    is_again: bool,
    /// True if what a file replaces may be missing in the answer: it was looked at after the question, or was offered before it
    /// and not answered.
    is_late: bool,
    /// True if the target is never asked.
    is_ignored: bool,
}

/// The state of the question for the target's room.
#[derive(Debug, Default, PartialEq, Eq)]
enum RoomQuestion {
    #[default]
    None,
    /// The target is to be asked.
    Waits,
    /// The target was asked, and has not answered.
    Asked,
}

impl TargetRoom {
    /// Returns true from the need of an answer on until it is there.
    pub(super) fn is_open(&self) -> bool {
        self.question != RoomQuestion::None
    }
}

impl Plan {
    /// Returns a plan that ignores a shortage of room at the target, if this is asked for.
    pub(crate) fn ignoring_room(mut self, ignores_room: bool) -> Self {
        self.target_room.is_ignored = ignores_room;
        self
    }

    /// Plans to ask the target, if what waits needs more than it is known to have.
    pub(super) fn consider_room(&mut self) {
        let needed = self.least_needed();
        let room = &mut self.target_room;
        room.is_late = room.is_open();
        if !room.is_ignored && !room.is_open() && needed > room.free.max(LEAST) {
            room.question = RoomQuestion::Waits;
        }
    }

    /// Returns the question, if the target is to be asked.
    pub(super) fn ask_for_room(&mut self) -> Option<Work> {
        let room = &mut self.target_room;
        if room.question != RoomQuestion::Waits {
            return None;
        }
        room.question = RoomQuestion::Asked;
        room.is_late = self.awaited.offers() > self.offers.len();
        Some(Work::Room { again: room.is_again })
    }

    /// Takes the target's answer: this number of bytes can be written. One to a question that was not asked is ignored.
    pub(crate) fn has_room(&mut self, free: u64) {
        if self.target_room.question != RoomQuestion::Asked {
            return;
        }
        let is_short = self.least_needed() > free.saturating_add(self.least_shortage());
        let TargetRoom { short, is_late, is_ignored, .. } = self.target_room;
        let short = if is_short { short + u32::from(!is_late) } else { 0 };
        let is_certain = short >= ANSWERS;
        let question = if is_short && !is_certain { RoomQuestion::Waits } else { RoomQuestion::None };
        self.target_room =
            TargetRoom { free, question, short, is_again: is_short, is_late: false, is_ignored };
        if is_certain {
            self.fail_all(Failure { operation: Operation::Create, errno: libc::ENOSPC }, true);
        }
    }

    /// Returns the number of bytes that the target will have to write at the least.
    fn least_needed(&self) -> u64 {
        let dense = |cursor: &Cursor| {
            let open = self.open.get(&cursor.entry).filter(|open| open.is_new && open.after.is_none());
            open.map_or(0, |open| common(&open.dense, cursor, open.found.size() / PIECE as u64))
        };
        self.large.iter().map(dense).sum::<u64>() * PIECE as u64
    }

    /// Returns the least shortage in bytes that counts. XFS preallocates up to twice the size of a file that grows, and
    /// frees that space once the file system is otherwise full.
    fn least_shortage(&self) -> u64 {
        let sent = |open: &OpenEntry| open.taken + open.awaited.len() as u64 * PIECE as u64;
        self.open.values().map(sent).fold(LEAST, |all, sent| all.saturating_add(2 * sent))
    }
}

/// Returns the number of pieces that are in one of these ranges, before a cursor, and among the first `whole` ones.
fn common(ranges: &[(u32, u32)], cursor: &Cursor, whole: u64) -> u64 {
    let common = |&(first, number): &(u32, u32)| {
        let (begin, end) = (first.max(cursor.next), (first + number).min(cursor.end));
        u64::from(end).min(whole).saturating_sub(begin.into())
    };
    ranges.iter().map(common).sum()
}
