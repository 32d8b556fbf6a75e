//! What the source does next. It knows which entries are offered, wanted, sent and settled, and touches neither files nor
//! flows. `settle` has what follows from the target's messages, `removal` what only the target has.

mod proven;
mod removal;
mod settle;

use std::collections::{HashMap, VecDeque};

use landspeed_record::CopyProven;

use crate::digest::{self, Digest, DonePieces};
use crate::extras::FolderNames;
use crate::name::RelativeName;
use crate::tree::{FoundEntry, SourcePlace};
use crate::wire::{Failure, MOST_OFFERED, MOST_PIECES, OfferedEntry};
pub(crate) use removal::NotRemoved;
use removal::RemovalPlan;

/// The number of entries that are under way at the most. It bounds the memory of both ends.
const MOST_OPEN: usize = 16_384;
/// Offers go before content while less than this waits to be sent, so that the target's answers arrive in time.
const LOW: u64 = 32 << 20;
/// The number of failures that are listed, which fit a reply even if all names are as long as names can be. Further ones are
/// counted.
pub(crate) const MOST_LISTED: usize = 400;

/// The next step of a thread that sends.
#[derive(Debug, PartialEq)]
pub(crate) enum NextStep {
    Work(Work),
    /// Nothing can be done before an answer or a further entry arrives.
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
    /// Files of one piece, of at most [`digest::PIECE`] bytes together.
    Small(Vec<PieceWork>),
    /// A piece of a file of several pieces.
    Piece(PieceWork),
    Install {
        entry: u64,
        digest: Digest,
    },
    Withdraw {
        entry: u64,
    },
    /// What folders of the source have.
    Names {
        number: u64,
        folders: Vec<FolderNames>,
        removes: bool,
    },
    Finish,
}

/// A piece that is to be read and hashed, and to be sent unless the target has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PieceWork {
    pub(crate) entry: u64,
    pub(crate) index: u32,
    /// The number of pieces of the file.
    pub(crate) pieces: u32,
    pub(crate) length: usize,
    pub(crate) place: SourcePlace,
    pub(crate) is_sent: bool,
}

/// An entry that failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FailedEntry {
    pub(crate) name: RelativeName,
    pub(crate) failure: Failure,
    /// True if it failed at the target, false if at the source.
    pub(crate) is_at_target: bool,
}

/// The entries that were settled, by result.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Settled {
    /// Files whose content was sent, and their bytes.
    pub(crate) copied: u64,
    pub(crate) copied_bytes: u64,
    /// Bytes of content that were sent.
    pub(crate) sent_bytes: u64,
    /// Bytes of content that the target has taken so far, or had already.
    pub(crate) moved_bytes: u64,
    /// Folders and symbolic links that the target made.
    pub(crate) made: u64,
    /// Entries that the target had already.
    pub(crate) unchanged: u64,
    pub(crate) failed: u64,
    /// The first failures.
    pub(crate) failures: Vec<FailedEntry>,
    /// Entries that only the target had, and that it has removed.
    pub(crate) deleted: u64,
    /// Why it has removed none although that was asked for.
    pub(crate) not_removed: Option<NotRemoved>,
}

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
    /// True if the file changed while it was read, and is read for the second time.
    is_second: bool,
    /// What is to follow once the target has withdrawn the entry.
    after: Option<AfterWithdrawal>,
}

impl OpenEntry {
    fn new(found: FoundEntry, is_second: bool) -> Self {
        OpenEntry { found, awaited: HashMap::new(), only: None, done: None, taken: 0, is_second, after: None }
    }
}

#[derive(Debug)]
enum AfterWithdrawal {
    Fail(Failure),
    /// Offer the entry once more, as it is now.
    Offer(Box<FoundEntry>),
}

#[derive(Debug)]
pub(crate) struct Plan {
    phase: Phase,
    is_walked: bool,
    /// The number of the next entry.
    next: u64,
    offers: VecDeque<(u64, Vec<OfferedEntry>)>,
    open: HashMap<u64, OpenEntry>,
    /// Files of one piece, each with its length.
    small: VecDeque<(u64, u64)>,
    /// Such files that the target may have already.
    small_held: VecDeque<(u64, u64)>,
    large: VecDeque<Cursor>,
    /// Pieces that the target may have already.
    held: VecDeque<Cursor>,
    installs: VecDeque<u64>,
    withdrawals: VecDeque<u64>,
    /// The bytes of content that wait to be sent.
    waiting: u64,
    is_target_full: bool,
    removal: Option<RemovalPlan>,
    /// The files whose copy is proven; `None` if they are not to be listed.
    proven: Option<Vec<CopyProven>>,
    settled: Settled,
}

impl Plan {
    pub(crate) fn new() -> Self {
        Plan {
            phase: Phase::Content,
            is_walked: false,
            next: 0,
            offers: VecDeque::new(),
            open: HashMap::new(),
            small: VecDeque::new(),
            small_held: VecDeque::new(),
            large: VecDeque::new(),
            held: VecDeque::new(),
            installs: VecDeque::new(),
            withdrawals: VecDeque::new(),
            waiting: 0,
            is_target_full: false,
            removal: None,
            proven: None,
            settled: Settled::default(),
        }
    }

    /// Returns true if no further entry is to be added now.
    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= MOST_OPEN
    }

    /// Returns true if the target has no room, so that no further entry is to be found.
    pub(crate) fn has_given_up(&self) -> bool {
        self.is_target_full
    }

    /// Adds entries that the walk has found, at most [`MOST_OFFERED`].
    pub(crate) fn add(&mut self, found: Vec<FoundEntry>) {
        self.add_as(found, false);
    }

    fn add_as(&mut self, found: Vec<FoundEntry>, is_second: bool) {
        debug_assert!(found.len() <= MOST_OFFERED);
        let first = self.next;
        let entries = found.iter().map(|one| one.offered.clone()).collect();
        for found in found {
            self.open.insert(self.next, OpenEntry::new(found, is_second));
            self.next += 1;
        }
        self.offers.push_back((first, entries));
    }

    /// Counts an entry that could not be offered.
    pub(crate) fn add_failed(&mut self, name: RelativeName, failure: Failure) {
        self.count_failed(FailedEntry { name, failure, is_at_target: false });
    }

    fn count_failed(&mut self, entry: FailedEntry) {
        self.settled.failed += 1;
        if self.settled.failures.len() < MOST_LISTED {
            self.settled.failures.push(entry);
        }
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
        match self.work() {
            Some(work) => NextStep::Work(work),
            None => self.next_phase(),
        }
    }

    fn work(&mut self) -> Option<Work> {
        if let Some(entry) = self.withdrawals.pop_front() {
            return Some(Work::Withdraw { entry });
        }
        if let Some(first) = self.install().or_else(|| self.names()) {
            return Some(first);
        }
        if self.waiting < LOW
            && let Some(offer) = self.offer()
        {
            return Some(offer);
        }
        let sent = self.small_files(true).or_else(|| self.piece(true));
        let held = sent.or_else(|| self.small_files(false)).or_else(|| self.piece(false));
        held.or_else(|| self.offer())
    }

    fn offer(&mut self) -> Option<Work> {
        let (first, entries) = self.offers.pop_front()?;
        Some(Work::Offer { first, entries, are_complete: self.phase == Phase::Folders })
    }

    /// Returns the installation of a file whose pieces were all taken.
    fn install(&mut self) -> Option<Work> {
        loop {
            let entry = self.installs.pop_front()?;
            let digest = self.open.get(&entry).and_then(|open| open.done.as_ref()?.digest());
            if let Some(digest) = digest {
                return Some(Work::Install { entry, digest });
            }
        }
    }

    fn small_of(&mut self, is_sent: bool) -> &mut VecDeque<(u64, u64)> {
        if is_sent { &mut self.small } else { &mut self.small_held }
    }

    /// Returns small files for one message: to send, or to compare.
    fn small_files(&mut self, is_sent: bool) -> Option<Work> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some((entry, size)) = self.small_of(is_sent).front().copied() {
            let is_full = batch.len() >= MOST_PIECES || bytes + size > digest::PIECE as u64;
            if is_full && !batch.is_empty() {
                break;
            }
            self.small_of(is_sent).pop_front();
            self.waiting = self.waiting.saturating_sub(if is_sent { size } else { 0 });
            if let Some(work) = self.piece_of(entry, 0, is_sent) {
                bytes += size;
                batch.push(work);
            }
        }
        (!batch.is_empty()).then_some(Work::Small(batch))
    }

    /// Returns the next piece of a longer file: one to send, or one to compare.
    fn piece(&mut self, is_sent: bool) -> Option<Work> {
        loop {
            let cursors = if is_sent { &mut self.large } else { &mut self.held };
            let cursor = cursors.front_mut()?;
            let (entry, index) = (cursor.entry, cursor.next);
            let is_open = self.open.get(&entry).is_some_and(|open| open.after.is_none());
            if !is_open || index >= cursor.end {
                let rest = u64::from(cursor.end - index.min(cursor.end));
                cursors.pop_front();
                if is_sent {
                    self.waiting = self.waiting.saturating_sub(rest * digest::PIECE as u64);
                }
                continue;
            }
            cursor.next += 1;
            if is_sent {
                self.waiting = self.waiting.saturating_sub(digest::PIECE as u64);
            }
            return self.piece_of(entry, index, is_sent).map(Work::Piece);
        }
    }

    fn piece_of(&self, entry: u64, index: u32, is_sent: bool) -> Option<PieceWork> {
        let open = self.open.get(&entry).filter(|open| open.after.is_none())?;
        let (pieces, length) = (open.done.as_ref()?.count(), digest::length(open.found.size(), index));
        Some(PieceWork { entry, index, pieces, length, place: open.found.place.clone(), is_sent })
    }

    /// Goes to the next phase if this one is over.
    fn next_phase(&mut self) -> NextStep {
        if !self.is_walked || !self.open.is_empty() || self.awaits_answers() {
            return NextStep::Wait;
        }
        match self.phase {
            Phase::Content => {
                (self.phase, self.is_walked) = (self.after_content(), false);
                NextStep::Wait
            }
            Phase::Removing => {
                (self.phase, self.is_walked) = (self.after_names(), false);
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
