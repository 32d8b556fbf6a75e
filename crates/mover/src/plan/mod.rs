//! Decides what the source does next. It knows which entries are offered, wanted, sent and settled, and touches neither
//! files nor flows. `settle` handles the target's messages, `settled` counts outcomes, `pieces` chooses the next
//! pieces, `install` finds whole files, `links` has the files with several names, `sparse` those with holes, `proven`
//! those whose copy is proven, `removal` plans the removal of extras, `room` checks the target's free space, `crew`
//! counts the flows that have work.

mod crew;
mod install;
mod links;
mod pieces;
mod proven;
mod removal;
mod room;
mod settle;
mod settled;
mod sparse;

use std::collections::{HashMap, VecDeque};

use landspeed_record::CopyProven;

use crate::digest::{Digest, DonePieces};
use crate::extras::FolderNames;
use crate::metadata::{self, AttributeRoom, HeldRoom};
use crate::name::RelativeName;
use crate::tree::FoundEntry;
use crate::wire::{Failure, MOST_OFFERED, OfferedEntry};
use crew::AwaitedAnswers;
use links::LinkGroups;
pub(crate) use pieces::PieceWork;
use removal::RemovalPlan;
pub(crate) use removal::{EmptySource, NotRemoved};
use room::TargetRoom;
pub(crate) use settled::{FailedEntry, Settled, UnlistedFailures};
pub(crate) use sparse::MapWork;

/// The number of entries that are under way at the most. It bounds the memory of both ends.
const MOST_OPEN: usize = 16_384;
/// Offers go before content while less than this waits to be sent, so that the target's answers arrive in time.
const LOW: u64 = 32 << 20;

/// The next step of a thread that sends.
#[derive(Debug, PartialEq)]
pub(crate) enum NextStep {
    Work(Work),
    /// Find where a file has data.
    Map(MapWork),
    /// Nothing can be done until an answer or a further entry arrives.
    Wait,
    /// The copy is over.
    Over,
}

/// A message that is to be sent.
#[derive(Debug, PartialEq)]
pub(crate) enum Work {
    Offer {
        first: u64,
        entries: Vec<OfferedEntry>,
        are_complete: bool,
    },
    /// Files of one piece, of at most [`crate::digest::PIECE`] bytes together.
    Small(Vec<PieceWork>),
    /// A piece of a file of several pieces. It is alone in its message, so that it arrives at the beginning of a page: a
    /// write past the page cache needs that.
    Piece(PieceWork),
    /// The pieces of a file that are holes, as ranges of (first, number).
    Holes {
        entry: u64,
        holes: Vec<(u32, u32)>,
    },
    Install {
        entry: u64,
        digest: Digest,
    },
    Withdraw {
        entry: u64,
    },
    /// Send the names in folders of the source.
    Names {
        number: u64,
        folders: Vec<FolderNames>,
        removes: bool,
    },
    /// Ask for the target's room; `again` if it was asked a moment ago.
    Room {
        again: bool,
    },
    /// Nothing is left for the flow now.
    Rest,
    Finish,
}

/// The phases of a copy, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Phase {
    /// The tree is walked, and its content is sent.
    Content,
    /// The target gets the names of all folders, and removes what only it has.
    Removing,
    /// The folders' modes and times are sent.
    Folders,
    /// The target was asked to finish.
    Finishing,
    Over,
}

/// The pieces of a file that are to be sent next, from `next` to before `end`.
#[derive(Debug)]
struct Cursor {
    entry: u64,
    next: u32,
    end: u32,
}

/// An entry that is offered and not settled.
#[derive(Debug)]
struct OpenEntry {
    found: FoundEntry,
    /// The digests of the pieces that were hashed, and that the target has not answered.
    awaited: HashMap<u32, Digest>,
    /// The digest of a file's only piece, once it was hashed.
    only: Option<Digest>,
    /// The pieces that the target has taken; `None` before it wants the file.
    done: Option<DonePieces>,
    /// The bytes of these pieces.
    taken: u64,
    /// The pieces that are holes and that the target is not known to have taken, and the bytes of all that are holes.
    holes: Vec<(u32, u32)>,
    hole_bytes: u64,
    /// The pieces that have nothing but data, as ranges of (first, number).
    dense: Vec<(u32, u32)>,
    /// True if the target wants the file, and has no part of it.
    is_new: bool,
    /// True if the target cannot make the link that was offered.
    is_apart: bool,
    /// True if the file changed while it was read, and is read for the second time.
    is_second: bool,
    /// The next step once the target has withdrawn the entry.
    after: Option<AfterWithdrawal>,
    /// The memory that the entry's attributes take at both ends.
    _room: HeldRoom,
}

impl OpenEntry {
    fn new(mut found: FoundEntry, is_second: bool, room: &AttributeRoom) -> Self {
        // They are in the offer, and are read anew for another one.
        let attributes = std::mem::take(&mut found.offered.metadata.attributes);
        let room = room.hold(metadata::bytes(&attributes));
        OpenEntry {
            found,
            awaited: HashMap::new(),
            only: None,
            done: None,
            taken: 0,
            holes: Vec::new(),
            hole_bytes: 0,
            dense: Vec::new(),
            is_new: false,
            is_apart: false,
            is_second,
            after: None,
            _room: room,
        }
    }
}

/// What follows the withdrawal of an entry.
#[derive(Debug)]
enum AfterWithdrawal {
    Fail(Failure),
    /// Offer the entry once more, as it is now.
    Offer(Box<FoundEntry>),
}

/// The work of the source: its entries from the walk until they are settled.
#[derive(Debug)]
pub(crate) struct Plan {
    phase: Phase,
    is_walked: bool,
    /// The number of the next entry.
    next: u64,
    offers: VecDeque<(u64, Vec<OfferedEntry>)>,
    awaited: AwaitedAnswers,
    open: HashMap<u64, OpenEntry>,
    /// The room for the attributes of what is open or waits.
    room: AttributeRoom,
    /// Files of one piece, each with its length.
    small: VecDeque<(u64, u64)>,
    /// Such files that the target may have already.
    small_held: VecDeque<(u64, u64)>,
    large: VecDeque<Cursor>,
    /// Pieces that the target may have already.
    held: VecDeque<Cursor>,
    /// Files of several pieces of which it is not known where they have data.
    unmapped: VecDeque<MapWork>,
    /// Files whose holes are to be named.
    holes: VecDeque<u64>,
    links: LinkGroups,
    installs: VecDeque<u64>,
    withdrawals: VecDeque<u64>,
    /// The bytes of content that wait to be sent.
    waiting: u64,
    is_target_full: bool,
    target_room: TargetRoom,
    removal: Option<RemovalPlan>,
    /// The files whose copy is proven; `None` if they are not to be listed.
    proven: Option<Vec<CopyProven>>,
    settled: Settled,
}

impl Plan {
    pub(crate) fn new() -> Self {
        let room = AttributeRoom::default();
        Plan {
            phase: Phase::Content,
            is_walked: false,
            next: 0,
            offers: VecDeque::new(),
            awaited: AwaitedAnswers::default(),
            open: HashMap::new(),
            small: VecDeque::new(),
            small_held: VecDeque::new(),
            large: VecDeque::new(),
            held: VecDeque::new(),
            unmapped: VecDeque::new(),
            holes: VecDeque::new(),
            links: LinkGroups::new(&room),
            room,
            installs: VecDeque::new(),
            withdrawals: VecDeque::new(),
            waiting: 0,
            is_target_full: false,
            target_room: TargetRoom::default(),
            removal: None,
            proven: None,
            settled: Settled::default(),
        }
    }

    /// Returns true if no further entry is to be added now.
    pub(crate) fn is_full(&self) -> bool {
        self.open.len() + self.links.waiting() >= MOST_OPEN || self.room.is_full()
    }

    /// Returns true if the target has no room, so that no further entry is to be found.
    pub(crate) fn has_given_up(&self) -> bool {
        self.is_target_full
    }

    /// Adds entries that the walk has found, at most [`MOST_OFFERED`].
    pub(crate) fn add(&mut self, found: Vec<FoundEntry>) {
        let found = found.into_iter().filter_map(|one| self.links.sort(one)).collect();
        self.add_as(found, false);
    }

    fn add_as(&mut self, found: Vec<FoundEntry>, is_second: bool) {
        debug_assert!(found.len() <= MOST_OFFERED);
        if found.is_empty() {
            return;
        }
        let first = self.next;
        let entries: Vec<OfferedEntry> = found.iter().map(|one| one.offered.clone()).collect();
        self.awaited.offered(first, &entries);
        for found in found {
            self.open.insert(self.next, OpenEntry::new(found, is_second, &self.room));
            self.next += 1;
        }
        self.offers.push_back((first, entries));
    }

    /// Counts an entry that could not be offered.
    pub(crate) fn add_failed(&mut self, name: RelativeName, failure: Failure) {
        self.settled.fail(FailedEntry { name, failure, is_at_target: false });
    }

    /// Counts an entry that could not be offered for the second time, unless it failed before. If not all failures are listed,
    /// it may have.
    pub(crate) fn add_failed_again(&mut self, name: RelativeName, failure: Failure) {
        if self.settled.lists_all() && !self.has_failed(&name) {
            self.add_failed(name, failure);
        }
    }

    /// Counts entries that could not be offered for the second time, and whose names are not known.
    pub(crate) fn add_failed_unnamed(&mut self, failure: Failure, entries: u64) {
        if entries > 0 {
            self.settled.fail_unlisted(failure, false, entries);
        }
    }

    /// Returns true if the list of failures has this name.
    fn has_failed(&self, name: &RelativeName) -> bool {
        self.settled.failures.iter().any(|failed| failed.name == *name)
    }

    /// The walk is over: of all entries, then of the folders, once or more often.
    pub(crate) fn walked(&mut self) {
        self.is_walked = true;
    }

    /// Returns true once all entries but the folders' modes and times are settled.
    pub(crate) fn wants_folders(&self) -> bool {
        self.phase >= Phase::Folders
    }

    /// Returns true once the target was asked to finish.
    pub(crate) fn is_finishing(&self) -> bool {
        self.phase == Phase::Finishing
    }

    /// Returns true if the copy is over.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Ends the copy.
    pub(crate) fn finish(&mut self) {
        self.phase = Phase::Over;
    }

    pub(crate) fn settled(&self) -> &Settled {
        &self.settled
    }

    /// Returns the next step. The caller carries out the work that it gets.
    pub(crate) fn step(&mut self) -> NextStep {
        if self.is_over() {
            return NextStep::Over;
        }
        if let Some(work) = self.work() {
            return NextStep::Work(work);
        }
        if let Some(map) = self.next_map() {
            return NextStep::Map(map);
        }
        if let Some(piece) = self.piece(true) {
            return NextStep::Work(piece);
        }
        // Pieces of files that have ended may have been all that a further file has waited for.
        if let Some(map) = self.next_map() {
            return NextStep::Map(map);
        }
        let held = self.small_files(false).or_else(|| self.piece(false));
        match held.or_else(|| self.offer()) {
            Some(work) => NextStep::Work(work),
            None => self.next_phase(),
        }
    }

    /// Returns work that is done before the content of longer files is sent.
    fn work(&mut self) -> Option<Work> {
        if let Some(entry) = self.withdrawals.pop_front() {
            return Some(Work::Withdraw { entry });
        }
        let first = self.ask_for_room().or_else(|| self.install()).or_else(|| self.names());
        if let Some(first) = first.or_else(|| self.next_holes()) {
            return Some(first);
        }
        if self.waiting < LOW
            && let Some(offer) = self.offer()
        {
            return Some(offer);
        }
        self.small_files(true)
    }

    fn offer(&mut self) -> Option<Work> {
        let (first, entries) = self.offers.pop_front()?;
        Some(Work::Offer { first, entries, are_complete: self.phase == Phase::Folders })
    }

    /// Goes to the next phase if this one is over.
    fn next_phase(&mut self) -> NextStep {
        if !self.is_walked || !self.open.is_empty() || self.awaits_answers() {
            return NextStep::Wait;
        }
        match self.phase {
            phase @ (Phase::Content | Phase::Removing) => {
                let next = if phase == Phase::Content { self.after_content() } else { self.after_names() };
                (self.phase, self.is_walked) = (next, false);
                NextStep::Wait
            }
            Phase::Folders => {
                self.phase = Phase::Finishing;
                NextStep::Work(Work::Finish)
            }
            Phase::Finishing | Phase::Over => NextStep::Wait,
        }
    }
}

#[cfg(test)]
mod tests;
