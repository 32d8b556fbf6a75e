//! Files that are compared by content with those that are in place.
//!
//! Of a file in place, the source is asked for the digests of all pieces. Where all are the same, only what is kept beside the
//! content is set. Otherwise the pieces that differ are sent into an incomplete file, and those that are the same are taken from
//! the file in place when all are there, and are hashed again: another program may have written to it. Zeros are the same as a
//! hole.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_record::CopyStage;
use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags, Stat};

use super::hard_links::inode;
use super::incoming::{IncomingFile, read_at};
use super::{Receiving, kind};
use crate::digest::{self, Digest};
use crate::extents::{self, DataMap, are_zeros, bytes_of, is_hole, sparse};
use crate::identity::FileIdentity;
use crate::metadata::Place;
use crate::pages::PageBuffer;
use crate::stage;
use crate::tree::read_piece;
use crate::wire::{EntryOutcome, Failure, OfferedEntry, Operation, PieceHeader};

/// The state of a file in place that an offered one may replace.
#[derive(Debug, Default)]
pub(super) struct InPlace {
    /// The pieces that are the same, with their digests.
    same: Mutex<Vec<(u32, Digest)>>,
    /// The pieces that are holes at the source, and zeros here.
    holes: Mutex<Vec<(u32, u32)>>,
    /// True once the incomplete file differs from the file in place.
    is_written: AtomicBool,
}

impl InPlace {
    /// Returns true once the incomplete file differs from the file in place.
    pub(super) fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Acquire)
    }

    /// Notes that the incomplete file differs from the file in place from now on.
    pub(super) fn write(&self) {
        self.is_written.store(true, Ordering::Release);
    }
}

impl Receiving {
    /// Returns true if the content of what is there is to be compared with that of the offered file.
    pub(super) fn compares_content(&self, offered: &OfferedEntry, size: u64, there: &Stat) -> bool {
        self.rules.by_content && self.may_stay(offered, size, there)
    }

    /// Returns true if what is there is a file of this length that may stay if it has the same content.
    pub(super) fn may_stay(&self, offered: &OfferedEntry, size: u64, there: &Stat) -> bool {
        let is_of_length = kind(there) == FileType::RegularFile && FileIdentity::of(there).size == size;
        is_of_length && !self.keeper.is_to_be_new(offered, there)
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
            self.keep_in_place(&opened, file.offered())?;
            self.forget(header.entry);
            return Ok(Some(EntryOutcome::Same));
        }
        let outcome = file.mark(header);
        if outcome.is_some() {
            there.same.lock().push((header.index, header.digest));
        }
        Ok(outcome)
    }

    /// Takes the pieces that are holes at the source. Returns false if the file takes no more.
    pub(super) fn take_holes_in_place(
        &self,
        file: &IncomingFile,
        there: &InPlace,
        holes: &[(u32, u32)],
    ) -> Result<bool, Failure> {
        let opened = if file.may_have(holes) { self.opened_in_place(file) } else { None };
        if !opened.is_some_and(|opened| self.has_zeros(&opened, file, holes)) {
            return file.take_holes(&self.work, holes);
        }
        *there.holes.lock() = holes.to_vec();
        file.pass_holes(holes)
    }

    /// Returns true if the file in place has zeros in these pieces, which may be a terabyte: a hole is not read, and nothing is read
    /// after the end of the copy.
    fn has_zeros(&self, opened: &File, file: &IncomingFile, holes: &[(u32, u32)]) -> bool {
        let mut buffer = PageBuffer::default();
        let mut is_zero = |index: u32| {
            let bytes = buffer.front(file.length(index));
            let is_over = self.is_over.load(Ordering::Acquire);
            is_hole(opened, digest::offset(index), bytes.len())
                || (!is_over && read_piece(opened, index, bytes).is_ok() && are_zeros(bytes))
        };
        stage::enter(CopyStage::Read);
        let are_zero = holes.iter().all(|&(first, number)| {
            let bytes = bytes_of(file.size(), (first, number));
            is_hole(opened, digest::offset(first), bytes as usize)
                || (first..first + number).all(&mut is_zero)
        });
        stage::enter(CopyStage::Metadata);
        are_zero
    }

    /// Ends a file of several pieces that were all taken. Returns true if it is to be put in place of what is there, false
    /// if what is there is the same.
    pub(super) fn complete_in_place(&self, file: &IncomingFile, there: &InPlace) -> Result<bool, Failure> {
        let changed = || Failure::plain(Operation::Changed);
        // A file that is offered anew after a withdrawal writes to the same incomplete file.
        let _open = file.held_open().ok_or_else(changed)?;
        let opened = self.opened_in_place(file).ok_or_else(changed)?;
        if !there.is_written() {
            return self.keep_in_place(&opened, file.offered()).map(|()| false);
        }
        file.clear_holes(&self.work, &there.holes.lock())?;
        let mut same = std::mem::take(&mut *there.same.lock());
        same.sort_unstable_by_key(|(index, _)| *index);
        // Of a hole that another program makes from now on, the zeros are written.
        let map = DataMap::of(&opened, file.pieces());
        let mut buffer = PageBuffer::default();
        for (index, digest) in same {
            let bytes = buffer.front(file.length(index));
            stage::enter(CopyStage::Read);
            let read = read_at(&opened, bytes, digest::offset(index));
            read.map_err(|error| Failure::of(Operation::Read, &error))?;
            stage::enter(CopyStage::Hash);
            if digest::of_piece(bytes, index, file.pieces()) != digest {
                return Err(changed());
            }
            // A piece has at most digest::PIECE bytes.
            let is_dense = extents::has(&map.dense, index);
            let data = if is_dense { None } else { sparse(&opened, digest::offset(index), bytes) };
            let data = data.unwrap_or_else(|| vec![(0, bytes.len() as u32)]);
            file.write_piece(&self.work, bytes, &data, digest::offset(index))?;
        }
        file.complete(&self.work).map(|()| true)
    }

    /// Keeps the file in place, which has the offered content, and sets what differs beside it.
    fn keep_in_place(&self, opened: &File, offered: &OfferedEntry) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::of(Operation::SetModeAndTimes, &error);
        let there = rustix::fs::fstat(opened).map_err(|error| failed(error.into()))?;
        self.linkable.add(offered, inode(&there));
        let place = Place::Open(opened.as_fd());
        let attributes = self.keeper.attributes(&place);
        let attributes = attributes.map_err(|error| Failure::of(Operation::ReadAttributes, &error))?;
        match self.keeper.differences(offered, &there, &attributes).is_empty() {
            true => Ok(()),
            false => self.keeper.set_over(&place, offered, &there).map_err(failed),
        }
    }

    /// Opens the file in place; `None` if it cannot be read, or may not stay as it is now. It is replaced then.
    fn opened_in_place(&self, file: &IncomingFile) -> Option<File> {
        // It never waits for another program, as a FIFO would.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.root.file(file.name(), flags).ok()?;
        let seen = rustix::fs::fstat(&opened).ok()?;
        self.may_stay(file.offered(), file.size(), &seen).then(|| File::from(opened))
    }
}

/// Returns the digest of a piece of the file in place.
fn piece(opened: &File, file: &IncomingFile, index: u32) -> io::Result<Digest> {
    let mut buffer = PageBuffer::default();
    let bytes = buffer.front(file.length(index));
    stage::enter(CopyStage::Read);
    let read = read_at(opened, bytes, digest::offset(index));
    stage::enter(CopyStage::Hash);
    let digest = read.map(|()| digest::of_piece(bytes, index, file.pieces()));
    stage::enter(CopyStage::Metadata);
    digest
}
