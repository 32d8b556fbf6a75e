//! Files that are compared by content with those that are in place.
//!
//! Of a file in place, the source is asked for the digests of all pieces. Where all are the same, only mode and time are set.
//! Otherwise the pieces that differ are sent into an incomplete file, and those that are the same are taken from the file in
//! place when all are there, and are hashed again: another program may have written to it.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags, Stat};

use super::incoming::{IncomingFile, read_at, set_mode_and_times};
use super::{Receiving, kind};
use crate::digest::{self, Digest};
use crate::tree::FileIdentity;
use crate::wire::{Answer, EntryOutcome, Failure, OfferedEntry, Operation, PieceHeader};

/// What is known of a file in place that another one may replace.
#[derive(Debug, Default)]
pub(super) struct InPlace {
    /// The pieces that are the same, with their digests.
    same: Mutex<Vec<(u32, Digest)>>,
    /// True once a piece was written to the incomplete file.
    is_written: AtomicBool,
}

impl InPlace {
    pub(super) fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Acquire)
    }

    pub(super) fn write(&self) {
        self.is_written.store(true, Ordering::Release);
    }
}

impl Receiving {
    /// Returns true if the content of what is there is to be compared with that of the offered file.
    pub(super) fn compares_content(&self, size: u64, there: &Stat) -> bool {
        self.rules.by_content && kind(there) == FileType::RegularFile && FileIdentity::of(there).size == size
    }

    /// Answers the offer of a file of which the target has one of the same length in place.
    pub(super) fn ask_for_digests(&self, file: &IncomingFile) -> Result<Answer, Failure> {
        // What an interrupted copy has left is written to, and may have a mode that forbids it.
        self.work.left(file.own()).map_err(|error| Failure::of(Operation::Open, &error))?;
        Ok(Answer::Compare(vec![(0, file.pieces())]))
    }

    /// Compares a piece with that of the file in place.
    pub(super) fn compare_in_place(
        &self,
        file: &IncomingFile,
        there: &InPlace,
        header: &PieceHeader,
    ) -> Result<Option<EntryOutcome>, Failure> {
        let opened = self.opened_in_place(file);
        let is_same =
            |opened: &File| piece(opened, file, header.index).is_ok_and(|digest| digest == header.digest);
        let Some(opened) = opened.filter(is_same) else { return Ok(Some(EntryOutcome::Again(header.index))) };
        if file.pieces() == 1 {
            self.set(&opened, file.offered())?;
            self.forget(header.entry);
            return Ok(Some(EntryOutcome::Same));
        }
        let outcome = file.mark(header);
        if outcome.is_some() {
            there.same.lock().push((header.index, header.digest));
        }
        Ok(outcome)
    }

    /// Ends a file of several pieces that were all taken. Returns true if it is to be put in place of what is there, false
    /// if what is there is the same.
    pub(super) fn complete_in_place(&self, file: &IncomingFile, there: &InPlace) -> Result<bool, Failure> {
        let changed = || Failure::plain(Operation::Changed);
        // A file that is offered anew after a withdrawal writes to the same incomplete file.
        let _open = file.held_open().ok_or_else(changed)?;
        let opened = self.opened_in_place(file).ok_or_else(changed)?;
        if !there.is_written() {
            return self.set(&opened, file.offered()).map(|()| false);
        }
        let mut same = std::mem::take(&mut *there.same.lock());
        same.sort_unstable_by_key(|(index, _)| *index);
        let mut bytes = vec![0; digest::PIECE];
        for (index, digest) in same {
            let bytes = &mut bytes[..file.length(index)];
            let read = read_at(&opened, bytes, digest::offset(index));
            read.map_err(|error| Failure::of(Operation::Read, &error))?;
            if digest::of_piece(bytes, index, file.pieces()) != digest {
                return Err(changed());
            }
            file.write_piece(&self.work, bytes, digest::offset(index))?;
        }
        file.complete(&self.work).map(|()| true)
    }

    fn set(&self, opened: &File, offered: &OfferedEntry) -> Result<(), Failure> {
        set_mode_and_times(opened, offered).map_err(|error| Failure::of(Operation::SetModeAndTimes, &error))
    }

    /// Opens the file in place; `None` if it cannot be read, or is no file of this length any more. It is replaced then.
    fn opened_in_place(&self, file: &IncomingFile) -> Option<File> {
        // It never waits for another program, as a FIFO would.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.root.file(file.name(), flags).ok()?;
        let seen = rustix::fs::fstat(&opened).ok()?;
        let is_as_seen = kind(&seen) == FileType::RegularFile && FileIdentity::of(&seen).size == file.size();
        is_as_seen.then(|| File::from(opened))
    }
}

/// Returns the digest of a piece of the file in place.
fn piece(opened: &File, file: &IncomingFile, index: u32) -> io::Result<Digest> {
    let mut bytes = vec![0; file.length(index)];
    read_at(opened, &mut bytes, digest::offset(index))?;
    Ok(digest::of_piece(&bytes, index, file.pieces()))
}
