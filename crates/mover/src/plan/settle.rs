//! Handles the target's messages, and files that changed or cannot be read.

use landspeed_record::CopyKept;

use super::{AfterWithdrawal, Cursor, FailedEntry, OpenEntry, Phase, PieceWork, Plan, Settled};
use crate::digest::{self, Digest, DonePieces};
use crate::metadata::LostKind;
use crate::tree::FoundEntry;
use crate::wire::{Answer, EntryKind, EntryOutcome, Failure, HardLink, Operation, numbered};

impl Plan {
    /// Takes the digest of a piece, before the piece is sent. Of a file's only piece that is sent, no answer is awaited: the
    /// target puts such a file in place without asking for the digest of the whole. `sent` is the number of its bytes that are
    /// sent.
    pub(crate) fn hashed(&mut self, piece: &PieceWork, digest: Digest, sent: u64) {
        let Some(open) = self.open.get_mut(&piece.entry) else { return };
        if piece.pieces == 1 {
            open.only = Some(digest);
        }
        if piece.pieces > 1 || !piece.is_sent {
            open.awaited.insert(piece.index, digest);
        }
        self.settled.sent_bytes += sent;
    }

    /// Takes the target's answers to an offer. An answer to an entry that is not open is ignored.
    pub(crate) fn answered(&mut self, first: u64, answers: Vec<Answer>) {
        self.awaited.answered(first);
        for (entry, answer) in numbered(first, answers) {
            match answer {
                Answer::Unchanged | Answer::Made if self.phase != Phase::Content => {
                    self.open.remove(&entry);
                }
                Answer::Unchanged => self.settle_there(entry, |settled| &mut settled.unchanged),
                Answer::Made => self.settle_there(entry, |settled| &mut settled.made),
                Answer::Send => self.want(entry, &[]),
                Answer::Compare(held) => self.want(entry, &held),
                Answer::Failed(failure) => self.fail(entry, failure, true),
            }
        }
    }

    /// Settles an entry that the target has without any content that is sent, and counts it.
    fn settle_there(&mut self, entry: u64, count: impl FnOnce(&mut Settled) -> &mut u64) {
        self.prove_link(entry);
        self.settle(entry, |settled, open| {
            *count(settled) += 1;
            settled.moved_bytes += open.found.size();
        });
    }

    /// Plans to send a file, and to compare the pieces of the ranges `held`, each as (first, number).
    fn want(&mut self, entry: u64, held: &[(u32, u32)]) {
        let Some(open) = self.open.get_mut(&entry).filter(|open| open.done.is_none()) else { return };
        let EntryKind::File { size } = open.found.offered.kind else { return };
        let Some(pieces) = digest::pieces(size) else { return };
        open.done = Some(DonePieces::none_of(pieces));
        open.is_new = held.is_empty();
        if pieces == 1 {
            self.want_small(entry, size, held.is_empty());
            return;
        }
        let place = open.found.place.clone();
        self.want_map(entry, pieces, place, held);
    }

    /// Plans to send a file of one piece, or to compare it.
    fn want_small(&mut self, entry: u64, size: u64, is_sent: bool) {
        match is_sent {
            true => self.small.push_back((entry, size)),
            false => self.small_held.push_back((entry, size)),
        }
        self.waiting += if is_sent { size } else { 0 };
    }

    /// Plans to send the pieces from `next` to before `end`.
    pub(super) fn send(&mut self, entry: u64, next: u32, end: u32) {
        if next < end {
            self.waiting += u64::from(end - next) * digest::PIECE as u64;
            self.large.push_back(Cursor { entry, next, end });
        }
    }

    /// Takes the outcome of a piece or an entry. An outcome of an entry that is not open is ignored: it is late, or the
    /// target is wrong. So is an answer to a piece that was not sent.
    pub(crate) fn became(&mut self, entry: u64, outcome: EntryOutcome) {
        match outcome {
            EntryOutcome::Taken(index) => self.taken(entry, index),
            EntryOutcome::Again(index) => {
                if self.open.get_mut(&entry).is_some_and(|open| open.awaited.remove(&index).is_some()) {
                    self.send(entry, index, index + 1);
                }
            }
            EntryOutcome::Installed => {
                self.prove(entry);
                self.settle(entry, |settled, open| {
                    settled.copied += 1;
                    settled.copied_bytes += open.found.size() - open.hole_bytes;
                    settled.moved_bytes += open.found.size() - open.taken;
                });
            }
            EntryOutcome::Same => {
                self.prove(entry);
                self.settle(entry, |settled, open| {
                    settled.unchanged += 1;
                    settled.moved_bytes += open.found.size() - open.taken;
                });
            }
            EntryOutcome::Withdrawn => self.withdrawn(entry),
            EntryOutcome::Failed(failure) => self.fail(entry, failure, true),
            EntryOutcome::Holes => self.holes_taken(entry),
            EntryOutcome::Apart => {
                if let Some(open) = self.open.get_mut(&entry) {
                    open.is_apart = matches!(open.found.offered.link, HardLink::To(_));
                }
            }
        }
    }

    fn taken(&mut self, entry: u64, index: u32) {
        let Some(open) = self.open.get_mut(&entry) else { return };
        let (Some(own), Some(done)) = (open.awaited.remove(&index), open.done.as_mut()) else { return };
        if !done.add(index, own) {
            return;
        }
        let length = digest::length(open.found.size(), index) as u64;
        open.taken += length;
        self.settled.moved_bytes += length;
        self.settled.taken_bytes += length;
        self.install_if_whole(entry);
    }

    /// The file differs from what was offered: offers it once more, as it is `now`. A file that has changed twice, or that
    /// is gone or a file no more, fails.
    pub(crate) fn changed(&mut self, entry: u64, now: Result<FoundEntry, Failure>) {
        let Some(open) = self.open.get(&entry) else { return };
        let after = match now {
            Ok(found) if !open.is_second && matches!(found.offered.kind, EntryKind::File { .. }) => {
                AfterWithdrawal::Offer(Box::new(found))
            }
            Ok(_) => AfterWithdrawal::Fail(Failure::plain(Operation::Unsteady)),
            Err(failure) => AfterWithdrawal::Fail(failure),
        };
        self.withdraw(entry, after);
    }

    /// The source cannot read the file.
    pub(crate) fn unreadable(&mut self, entry: u64, failure: Failure) {
        self.withdraw(entry, AfterWithdrawal::Fail(failure));
    }

    /// Keeps the losses that the target reports, at most one for each kind.
    pub(crate) fn lost(&mut self, mut lost: Vec<LostKind>) {
        lost.truncate(CopyKept::ALL.len());
        self.settled.lost = lost;
    }

    fn withdraw(&mut self, entry: u64, after: AfterWithdrawal) {
        if let Some(open) = self.open.get_mut(&entry).filter(|open| open.after.is_none()) {
            open.after = Some(after);
            self.withdrawals.push_back(entry);
        }
    }

    fn withdrawn(&mut self, entry: u64) {
        match self.open.get_mut(&entry).and_then(|open| open.after.take()) {
            Some(AfterWithdrawal::Fail(failure)) => self.fail(entry, failure, false),
            Some(AfterWithdrawal::Offer(found)) => {
                if let Some(open) = self.open.remove(&entry) {
                    self.settled.moved_bytes -= open.taken;
                    self.offer_again(&open.found, *found);
                }
            }
            None => {}
        }
    }

    fn settle(&mut self, entry: u64, count: impl FnOnce(&mut Settled, &OpenEntry)) {
        let Some(open) = self.open.remove(&entry) else { return };
        count(&mut self.settled, &open);
        if open.is_apart {
            self.settled.apart += 1;
            self.settled.first_apart.get_or_insert_with(|| open.found.offered.name.clone());
        }
        self.offer_links(&open);
    }

    /// Settles an entry as failed. If the target has no room, all that is open fails for the same reason.
    fn fail(&mut self, entry: u64, failure: Failure, is_at_target: bool) {
        let Some(open) = self.open.remove(&entry) else { return };
        self.is_target_full |= failure.is_full();
        // A folder that could not be made has no mode to set.
        if self.phase == Phase::Content || !self.has_failed(&open.found.offered.name) {
            self.give_up(open, failure, is_at_target);
        }
        if failure.is_full() {
            self.fail_all(failure, is_at_target);
        }
    }

    /// Settles all that is open as failed, because the target has no room.
    pub(super) fn fail_all(&mut self, failure: Failure, is_at_target: bool) {
        self.is_target_full = true;
        self.offers.clear();
        self.awaited.clear();
        let open = std::mem::take(&mut self.open);
        open.into_values().for_each(|open| self.give_up(open, failure, is_at_target));
        let names = self.links.take_waiting().into_iter().map(|one| one.offered.name);
        names.for_each(|name| self.settled.fail(FailedEntry { name, failure, is_at_target }));
    }

    fn give_up(&mut self, open: OpenEntry, failure: Failure, is_at_target: bool) {
        self.settled.moved_bytes -= open.taken;
        if !self.is_target_full {
            self.offer_next_name(&open.found);
        }
        self.settled.fail(FailedEntry { name: open.found.offered.name, failure, is_at_target });
    }
}
