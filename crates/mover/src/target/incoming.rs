//! A file that arrives in pieces.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustix::fs::{Mode, SeekFrom, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::in_place::InPlace;
use super::work_folder::{self, WorkFolder};
use crate::digest::{self, Digest, DonePieces};
use crate::name::RelativeName;
use crate::wire::{EntryOutcome, Failure, OfferedEntry, Operation, PieceHeader, Timestamp};

/// The largest number of ranges of data that are listed of an incomplete file. What follows counts as one range. The
/// answers to an offer fit a message even if each has as many.
const MOST_RANGES: usize = 1_024;

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
    /// False once the file has failed or was withdrawn: no piece is written after that.
    is_open: RwLock<bool>,
    /// The file of this length that is in place, if the content of both is compared.
    in_place: Option<InPlace>,
}

impl IncomingFile {
    /// Returns a file of `size` bytes in `pieces` pieces, of which nothing has arrived.
    pub(super) fn new(entry: u64, offered: &OfferedEntry, size: u64, pieces: u32) -> Self {
        let own = if pieces == 1 { work_folder::short(entry) } else { work_folder::part(&offered.name) };
        IncomingFile {
            offered: offered.clone(),
            size,
            own,
            pieces,
            done: Mutex::new(DonePieces::none_of(pieces)),
            is_open: RwLock::new(true),
            in_place: None,
        }
    }

    /// Returns the file with pieces that are compared with those of the file in place.
    pub(super) fn beside(self, in_place: InPlace) -> Self {
        IncomingFile { in_place: Some(in_place), ..self }
    }

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
        if digest::of_piece(bytes, header.index, self.pieces) != header.digest {
            return Err(Failure::plain(Operation::Damaged));
        }
        let is_open = self.is_open.read();
        if !*is_open || self.done.lock().has(header.index) {
            return Ok(None);
        }
        match self.pieces {
            1 => self.write_whole(work, bytes)?,
            _ => self.write_piece(work, bytes, digest::offset(header.index))?,
        }
        Ok(self.mark(header))
    }

    /// Writes a file of one piece, which needs its incomplete file open for one time alone: the file is new, so that nothing
    /// else can be in it.
    fn write_whole(&self, work: &WorkFolder, bytes: &[u8]) -> Result<(), Failure> {
        let failed = |operation| move |error: io::Error| Failure::of(operation, &error);
        let file = File::from(work.new_file(&self.own).map_err(failed(Operation::Create))?);
        file.write_all_at(bytes, 0).map_err(failed(Operation::Write))?;
        set(&file, self.offered.mode & 0o777, self.offered.modified)
            .map_err(failed(Operation::SetModeAndTimes))
    }

    pub(super) fn write_piece(&self, work: &WorkFolder, bytes: &[u8], offset: u64) -> Result<(), Failure> {
        let file = self.file(work).map_err(|error| Failure::of(Operation::Create, &error))?;
        file.write_all_at(bytes, offset).map_err(|error| Failure::of(Operation::Write, &error))?;
        self.in_place.iter().for_each(InPlace::write);
        start_writeback(&file, offset, bytes.len());
        Ok(())
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
        let mut bytes = vec![0; header.length as usize];
        let read = read_at(&file, &mut bytes, digest::offset(header.index));
        let is_same = read.is_ok() && digest::of_piece(&bytes, header.index, self.pieces) == header.digest;
        Ok(if is_same { self.mark(header) } else { Some(EntryOutcome::Again(header.index)) })
    }

    pub(super) fn mark(&self, header: &PieceHeader) -> Option<EntryOutcome> {
        let is_new = self.done.lock().add(header.index, header.digest);
        is_new.then_some(EntryOutcome::Taken(header.index))
    }

    /// Returns the digest of the whole file; `None` while pieces are missing.
    pub(super) fn digest(&self) -> Option<Digest> {
        self.done.lock().digest()
    }

    /// Gives the incomplete file of several pieces its length, mode and time.
    pub(super) fn complete(&self, work: &WorkFolder) -> Result<(), Failure> {
        let written = |error: io::Error| Failure::of(Operation::Write, &error);
        let file = self.file(work).map_err(written)?;
        // An incomplete file of an earlier copy may be longer.
        rustix::fs::ftruncate(&file, self.size).map_err(io::Error::from).map_err(written)?;
        set_mode_and_times(&file, &self.offered)
            .map_err(|error| Failure::of(Operation::SetModeAndTimes, &error))
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
            false => work.file(&self.own).map(File::from),
        }
    }
}

/// Sets permissions and modification time as they were offered. A folder keeps its sticky bit and its set-group-ID bit.
pub(super) fn set_mode_and_times(file: impl AsFd, offered: &OfferedEntry) -> io::Result<()> {
    let own = rustix::fs::fstat(&file)?.st_mode & 0o7000;
    set(&file, own | (offered.mode & 0o777), offered.modified)
}

fn set(file: impl AsFd, mode: u32, modified: Timestamp) -> io::Result<()> {
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    Ok(rustix::fs::futimens(&file, &times(modified))?)
}

/// Returns the times that set the modification time, and leave that of the last access.
pub(super) fn times(modified: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanos.min(999_999_999).into(),
        },
    }
}

/// Returns the pieces of a file in which an interrupted copy has left data, as ranges of (first, number).
pub(super) fn left_pieces(file: impl AsFd, pieces: u32) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let mut from = 0;
    while let Ok(data) = rustix::fs::seek(&file, SeekFrom::Data(from)) {
        let is_full = ranges.len() >= MOST_RANGES;
        let hole = rustix::fs::seek(&file, SeekFrom::Hole(data)).unwrap_or(u64::MAX);
        let first = piece_at(data);
        let end = piece_at(hole.saturating_add(digest::PIECE as u64 - 1));
        match ranges.last_mut() {
            Some((start, number)) if *start + *number >= first || is_full => {
                *number = end.max(*start + *number) - *start;
            }
            _ => ranges.push((first, end - first)),
        }
        if hole <= data {
            break;
        }
        from = hole;
    }
    ranges.retain(|(first, number)| *number > 0 && *first < pieces);
    ranges
}

/// Returns the index of the piece at this offset.
fn piece_at(offset: u64) -> u32 {
    u32::try_from(offset / digest::PIECE as u64).unwrap_or(u32::MAX)
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
mod tests {
    use super::*;

    #[test]
    fn pieces_with_data_are_found_between_holes() {
        let file = tempfile::tempfile().unwrap();
        assert!(left_pieces(&file, 9).is_empty());
        file.set_len(9 << 20).unwrap();
        file.write_all_at(&[1], 2 << 20).unwrap();
        file.write_all_at(&[1], (5 << 20) - 1).unwrap();
        let ranges = left_pieces(&file, 9);
        let has = |piece: u32| ranges.iter().any(|(first, number)| (*first..first + number).contains(&piece));
        assert!(has(2) && has(4), "{ranges:?}");
        // A file system without holes tells all of a file as data.
        assert!(ranges == [(0, 9)] || !has(8), "{ranges:?}");
    }

    #[test]
    fn a_piece_is_taken_only_with_its_digest_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = crate::beneath::Root::open(folder.path()).unwrap();
        let work = WorkFolder::open(&root, folder.path()).unwrap();
        let offered = OfferedEntry {
            name: RelativeName::parse(b"a").expect("a name"),
            kind: crate::wire::EntryKind::File { size: 3 },
            mode: 0o640,
            modified: Timestamp { seconds: -5, nanos: 7 },
        };
        let file = IncomingFile::new(0, &offered, 3, 1);
        let header = |digest| PieceHeader { entry: 0, index: 0, length: 3, digest, is_sent: true };
        let wrong = file.take(&work, &header(Digest([0; 32])), b"abc").unwrap_err();
        assert_eq!(wrong.operation, Operation::Damaged);
        assert_eq!(file.digest(), None);
        let right = digest::of_piece(b"abc", 0, 1);
        let taken = file.take(&work, &header(right), b"abc").unwrap();
        assert_eq!((taken, file.digest()), (Some(EntryOutcome::Taken(0)), Some(right)));
        assert_eq!(file.take(&work, &header(right), b"abc").unwrap(), None);
        let seen = rustix::fs::fstat(work.left(file.own()).unwrap().expect("a file")).unwrap();
        assert_eq!(seen.st_mode & 0o7777, 0o640);
        assert_eq!(crate::tree::FileIdentity::of(&seen).modified, offered.modified);
        let compared = file.compare(&work, &PieceHeader { is_sent: false, ..header(right) });
        assert_eq!(compared.unwrap(), Some(EntryOutcome::Again(0)), "a short file is never left");
        file.close(&work);
        assert_eq!(file.take(&work, &header(right), b"abc").unwrap(), None);
        assert!(work.left(file.own()).unwrap().is_none(), "nothing is written after the end");
        assert!(!file.fits(&PieceHeader { index: 1, ..header(right) }));
    }

    /// What was taken of it is gone, so a new one would have zeros in its place.
    #[test]
    fn an_incomplete_file_that_vanished_is_not_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let root = crate::beneath::Root::open(folder.path()).unwrap();
        let work = WorkFolder::open(&root, folder.path()).unwrap();
        let (size, bytes) = (2 << 20, vec![7_u8; 1 << 20]);
        let offered = OfferedEntry {
            name: RelativeName::parse(b"a").expect("a name"),
            kind: crate::wire::EntryKind::File { size },
            mode: 0o640,
            modified: Timestamp { seconds: 5, nanos: 7 },
        };
        let file = IncomingFile::new(0, &offered, size, 2);
        let header = |index| {
            let digest = digest::of_piece(&bytes, index, 2);
            PieceHeader { entry: 0, index, length: 1 << 20, digest, is_sent: true }
        };
        file.take(&work, &header(0), &bytes).unwrap();
        work.remove(file.own());
        let lost = file.take(&work, &header(1), &bytes).unwrap_err();
        assert_eq!((lost.operation, lost.errno), (Operation::Create, libc::ENOENT));
        assert!(file.complete(&work).is_err());
    }
}
