//! A file that arrives in pieces.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use landspeed_record::CopyStage;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustix::io::Errno;

use super::in_place::InPlace;
use super::work_folder::{self, WorkFolder};
use crate::digest::{self, Digest, DonePieces};
use crate::extents::{MOST_RANGES, bytes_of, clear};
use crate::metadata::{self, HeldRoom, Keeper, Place, SPECIAL_BITS};
use crate::name::RelativeName;
use crate::pages::PageBuffer;
use crate::ranges::{are_ranges, between, range};
use crate::stage::{self, Pause};
use crate::wire::{EntryOutcome, Failure, HardLink, OfferedEntry, Operation, PieceHeader};

/// A file under way. Its pieces may arrive on several flows at a time. It is opened for each of them, because more files
/// may be under way than a process may have open.
#[derive(Debug)]
pub(super) struct IncomingFile {
    offered: OfferedEntry,
    size: u64,
    /// The name of the incomplete file in the folder for such files.
    own: Vec<u8>,
    /// The number of pieces.
    pieces: u32,
    /// The pieces that were taken.
    done: Mutex<DonePieces>,
    /// Held by the flow that writes to the file.
    turn: Mutex<()>,
    /// False once the file has failed or was withdrawn: no piece is written after that.
    is_open: RwLock<bool>,
    /// True if an earlier copy has left an incomplete file, which may have data where this one has holes.
    may_have_old: bool,
    /// The size on disk of the entry that it replaces.
    replaces: u64,
    /// The file of this length that is in place, if the content of both is compared.
    in_place: Option<InPlace>,
    keeper: Arc<Keeper>,
    /// The memory of its attributes.
    _room: HeldRoom,
}

impl IncomingFile {
    /// Returns a file of `size` bytes in `pieces` pieces, of which nothing has arrived.
    pub(super) fn new(
        entry: u64,
        offered: &OfferedEntry,
        size: u64,
        pieces: u32,
        keeper: &Arc<Keeper>,
    ) -> Self {
        let own = if pieces == 1 { work_folder::short(entry) } else { work_folder::part(&offered.name) };
        IncomingFile {
            offered: offered.clone(),
            size,
            own,
            pieces,
            done: Mutex::new(DonePieces::none_of(pieces)),
            turn: Mutex::new(()),
            is_open: RwLock::new(true),
            may_have_old: false,
            replaces: 0,
            in_place: None,
            keeper: Arc::clone(keeper),
            _room: keeper.room.hold(metadata::bytes(&offered.metadata.attributes)),
        }
    }

    /// Sets whether an earlier copy has left an incomplete file.
    pub(super) fn may_have_old(&mut self, may: bool) {
        self.may_have_old = may;
    }

    /// Sets the size on disk of the entry that it replaces.
    pub(super) fn replace(&mut self, bytes: u64) {
        self.replaces = bytes;
    }

    /// Returns the size on disk of the entry that it replaces.
    pub(super) fn replaces(&self) -> u64 {
        self.replaces
    }

    /// Sets the state of the file in place, if pieces are compared with its pieces.
    pub(super) fn beside(&mut self, in_place: Option<InPlace>) {
        self.in_place = in_place;
    }

    /// Returns the state of the file in place, if pieces are compared with its pieces.
    pub(super) fn in_place(&self) -> Option<&InPlace> {
        self.in_place.as_ref()
    }

    /// Returns a guard that the end of the file waits for; `None` after the end.
    pub(super) fn held_open(&self) -> Option<RwLockReadGuard<'_, bool>> {
        Some(self.is_open.read()).filter(|is_open| **is_open)
    }

    pub(super) fn offered(&self) -> &OfferedEntry {
        &self.offered
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the length of a piece.
    pub(super) fn length(&self, index: u32) -> usize {
        digest::length(self.size, index)
    }

    /// Returns true if others may become links to this file.
    pub(super) fn is_first(&self) -> bool {
        self.offered.link == HardLink::First
    }

    pub(super) fn name(&self) -> &RelativeName {
        &self.offered.name
    }

    /// Returns the name of the incomplete file.
    pub(super) fn own(&self) -> &[u8] {
        &self.own
    }

    pub(super) fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Returns true if a piece is one of this file.
    pub(super) fn fits(&self, header: &PieceHeader) -> bool {
        header.index < self.pieces && header.length as usize == digest::length(self.size, header.index)
    }

    /// Takes the bytes of a piece, if they have its digest. Returns what became of it; `None` if it was taken before, or if
    /// the file takes no more.
    pub(super) fn take(
        &self,
        work: &WorkFolder,
        header: &PieceHeader,
        bytes: &[u8],
    ) -> Result<Option<EntryOutcome>, Failure> {
        self.take_data(work, header, bytes, &[(0, header.length)])
    }

    /// Takes the data of a piece with holes, if it has the digest with zeros in its holes. `data` are ranges of the piece, and
    /// `bytes` what is in them. Returns what [`IncomingFile::take`] returns.
    pub(super) fn take_sparse(
        &self,
        work: &WorkFolder,
        header: &PieceHeader,
        data: &[(u32, u32)],
        mut bytes: &[u8],
    ) -> Result<Option<EntryOutcome>, Failure> {
        let mut piece = vec![0; header.length as usize];
        for &(first, number) in data {
            let (own, rest) = bytes.split_at(number as usize);
            piece[range(first, number)].copy_from_slice(own);
            bytes = rest;
        }
        self.take_data(work, header, &piece, data)
    }

    /// Takes the bytes of a piece, and writes those in the ranges `data`.
    fn take_data(
        &self,
        work: &WorkFolder,
        header: &PieceHeader,
        bytes: &[u8],
        data: &[(u32, u32)],
    ) -> Result<Option<EntryOutcome>, Failure> {
        stage::enter(CopyStage::Hash);
        let is_right = digest::of_piece(bytes, header.index, self.pieces) == header.digest;
        stage::enter(CopyStage::Metadata);
        if !is_right {
            return Err(Failure::plain(Operation::Damaged));
        }
        let is_open = self.is_open.read();
        if !*is_open || self.done.lock().has(header.index) {
            return Ok(None);
        }
        match self.pieces {
            1 => self.write_whole(work, bytes, data)?,
            _ => self.write_piece(work, bytes, data, digest::offset(header.index))?,
        }
        Ok(self.mark(header))
    }

    /// Returns true if pieces may be holes that an honest source names so. A file of one piece has its holes in it. Around the
    /// most ranges of data is one hole more.
    pub(super) fn may_have(&self, holes: &[(u32, u32)]) -> bool {
        self.pieces > 1 && holes.len() <= MOST_RANGES + 1 && are_ranges(holes, self.pieces)
    }

    /// Takes all pieces that are holes, as ranges of (first, number). Returns false if the file takes no more.
    pub(super) fn take_holes(&self, work: &WorkFolder, holes: &[(u32, u32)]) -> Result<bool, Failure> {
        let Some(_open) = self.held_open() else { return Ok(false) };
        let file = self.file(work).map_err(|error| Failure::of(Operation::Create, &error))?;
        self.add_holes(holes)?;
        self.in_place.iter().for_each(InPlace::write);
        self.clear_old(&file, holes).map(|()| true)
    }

    /// Takes such pieces as they are in the file in place, which has zeros there. The incomplete file gets its holes only if it is
    /// needed ([`IncomingFile::clear_holes`]).
    pub(super) fn pass_holes(&self, holes: &[(u32, u32)]) -> Result<bool, Failure> {
        let Some(_open) = self.held_open() else { return Ok(false) };
        self.add_holes(holes).map(|()| true)
    }

    fn add_holes(&self, holes: &[(u32, u32)]) -> Result<(), Failure> {
        match self.may_have(holes) && self.done.lock().add_holes(holes) {
            true => Ok(()),
            false => Err(Failure::plain(Operation::Damaged)),
        }
    }

    /// Makes holes of these pieces in the incomplete file, which has been written to.
    pub(super) fn clear_holes(&self, work: &WorkFolder, holes: &[(u32, u32)]) -> Result<(), Failure> {
        let file = self.file(work).map_err(|error| Failure::of(Operation::Create, &error))?;
        self.clear_old(&file, holes)
    }

    fn clear_old(&self, file: &File, holes: &[(u32, u32)]) -> Result<(), Failure> {
        stage::enter(CopyStage::Write);
        let clear = |hole: &(u32, u32)| clear(file, digest::offset(hole.0), bytes_of(self.size, *hole));
        let cleared = holes.iter().filter(|_| self.may_have_old).try_for_each(clear);
        stage::enter(CopyStage::Metadata);
        cleared.map_err(|error| Failure::of(Operation::Write, &error))
    }

    /// Writes a file of one piece. It opens the incomplete file once: the file is new, so that nothing else can be in
    /// it.
    fn write_whole(&self, work: &WorkFolder, bytes: &[u8], data: &[(u32, u32)]) -> Result<(), Failure> {
        let failed = |operation| move |error: io::Error| Failure::of(operation, &error);
        let mode = self.keeper.short_file_mode(&self.offered);
        let file = File::from(work.new_file(&self.own, mode).map_err(failed(Operation::Create))?);
        stage::enter(CopyStage::Write);
        write_ranges(&file, bytes, data, 0).map_err(failed(Operation::Write))?;
        if data.last().is_none_or(|(first, number)| first + number < self.size as u32) {
            // It ends with a hole.
            file.set_len(self.size).map_err(failed(Operation::Write))?;
        }
        stage::enter(CopyStage::Metadata);
        self.keeper.set_new_file(file.as_fd(), &self.offered);
        Ok(())
    }

    /// Writes the ranges `data` of a piece.
    pub(super) fn write_piece(
        &self,
        work: &WorkFolder,
        bytes: &[u8],
        data: &[(u32, u32)],
        offset: u64,
    ) -> Result<(), Failure> {
        let written = |error: io::Error| Failure::of(Operation::Write, &error);
        let file = self.file(work).map_err(|error| Failure::of(Operation::Create, &error))?;
        stage::enter(CopyStage::Write);
        // A piece has at most digest::PIECE bytes.
        for (first, number) in between(data, bytes.len() as u32).into_iter().filter(|_| self.may_have_old) {
            clear(&file, offset + u64::from(first), number.into()).map_err(written)?;
        }
        let is_whole = matches!(data, [(0, number)] if *number as usize == bytes.len());
        if !is_whole || !work.direct.write(&file, bytes, offset).map_err(written)? {
            self.write_in_turn(&file, bytes, data, offset).map_err(written)?;
            start_writeback(&file, offset, bytes.len());
        }
        self.in_place.iter().for_each(InPlace::write);
        stage::enter(CopyStage::Metadata);
        Ok(())
    }

    /// Writes ranges of a piece once no other flow writes to the file. The kernel lets one in at a time anyway, and those that
    /// wait for its lock of the inode spin; here they sleep. Such a flow is idle: fewer flows would do as well for this file.
    /// Meanwhile it takes nothing from its receive buffer, as while it spins; the wait is as long. Only a file system that lets
    /// several writers into a file at a time (ZFS, Lustre) would be faster without this.
    fn write_in_turn(&self, file: &File, bytes: &[u8], data: &[(u32, u32)], offset: u64) -> io::Result<()> {
        let _turn = stage::wait(Pause::Idle, || self.turn.lock());
        write_ranges(file, bytes, data, offset)
    }

    /// Takes a piece that an interrupted copy has left, if it has the digest. Returns what became of it; `None` if the file
    /// takes no more. Of a file of one piece, nothing is ever left.
    pub(super) fn compare(
        &self,
        work: &WorkFolder,
        header: &PieceHeader,
    ) -> Result<Option<EntryOutcome>, Failure> {
        let is_open = self.is_open.read();
        if !*is_open {
            return Ok(None);
        }
        if self.pieces == 1 {
            return Ok(Some(EntryOutcome::Again(header.index)));
        }
        let file = self.file(work).map_err(|error| Failure::of(Operation::Create, &error))?;
        let mut buffer = PageBuffer::default();
        let bytes = buffer.front(header.length as usize);
        stage::enter(CopyStage::Read);
        let read = read_at(&file, bytes, digest::offset(header.index));
        stage::enter(CopyStage::Hash);
        let is_same = read.is_ok() && digest::of_piece(bytes, header.index, self.pieces) == header.digest;
        stage::enter(CopyStage::Metadata);
        Ok(if is_same { self.mark(header) } else { Some(EntryOutcome::Again(header.index)) })
    }

    /// Marks a piece as done. Returns what became of it; `None` if it was done before.
    pub(super) fn mark(&self, header: &PieceHeader) -> Option<EntryOutcome> {
        let is_new = self.done.lock().add(header.index, header.digest);
        is_new.then_some(EntryOutcome::Taken(header.index))
    }

    /// Returns the digest of the whole file; `None` while pieces are missing.
    pub(super) fn digest(&self) -> Option<Digest> {
        self.done.lock().digest()
    }

    /// Gives the incomplete file of several pieces its length and what is kept beside its content.
    pub(super) fn complete(&self, work: &WorkFolder) -> Result<(), Failure> {
        let written = |error: io::Error| Failure::of(Operation::Write, &error);
        let file = self.file(work).map_err(written)?;
        // An incomplete file of an earlier copy may be longer.
        rustix::fs::ftruncate(&file, self.size).map_err(io::Error::from).map_err(written)?;
        let failed = |error: io::Error| Failure::of(Operation::ReadAttributes, &error);
        let look = || rustix::fs::fstat(&file).map_err(io::Error::from).map_err(failed);
        let (place, mut there) = (Place::Open(file.as_fd()), look()?);
        if self.may_have_old {
            self.keeper
                .shed_old(&place, &self.offered, &there)
                .map_err(|error| Failure::of(Operation::SetModeAndTimes, &error))?;
            there = look()?;
        }
        // Metadata that another copy has set do not count.
        there.st_mode &= !SPECIAL_BITS;
        self.keeper.set_over(&place, &self.offered, &there).map_err(failed)
    }

    /// Ends the file: waits for pieces that are being written, and takes no more. A short one is removed.
    pub(super) fn close(&self, work: &WorkFolder) {
        *self.is_open.write() = false;
        if self.pieces == 1 {
            work.remove(&self.own);
        }
    }

    /// Opens the incomplete file. It is created for the first piece alone, because a file that is missing later has lost
    /// what was taken.
    fn file(&self, work: &WorkFolder) -> io::Result<File> {
        // What was taken of a file in place is not in it.
        let has_any = match &self.in_place {
            Some(in_place) => in_place.is_written(),
            None => self.done.lock().has_any(),
        };
        match has_any {
            true => work.left(&self.own)?.map(File::from).ok_or_else(|| Errno::NOENT.into()),
            false => work.file(&self.own, self.keeper.file_mode(&self.offered)).map(File::from),
        }
    }
}

/// Writes ranges of the bytes of a piece that begins at `offset`.
fn write_ranges(file: &File, bytes: &[u8], ranges: &[(u32, u32)], offset: u64) -> io::Result<()> {
    let write = |&(first, number): &(u32, u32)| {
        file.write_all_at(&bytes[range(first, number)], offset + u64::from(first))
    };
    ranges.iter().try_for_each(write)
}

/// Fills `into` from a file. What lies beyond its end stays as it is.
pub(super) fn read_at(file: impl AsFd, mut into: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !into.is_empty() {
        match rustix::io::pread(&file, &mut *into, offset) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                into = &mut into[read..];
                offset += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Asks the kernel to begin to write these bytes to the disk, so that the last sync has little to do. It need not succeed.
fn start_writeback(file: impl AsFd, offset: u64, length: usize) {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the arguments are numbers, and the descriptor is open for the time of the call.
    unsafe { libc::sync_file_range(fd, offset as i64, length as i64, libc::SYNC_FILE_RANGE_WRITE) };
}

#[cfg(test)]
mod tests;
