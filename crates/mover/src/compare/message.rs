//! The questions of a comparison, and their answers.

use std::fs::File;

use landspeed_record::CopyEntryKind;
use serde::{Deserialize, Serialize};

use super::Seen;
use crate::digest::{self, Digest};
use crate::extents::{are_zeros, is_hole};
use crate::extras::FolderNames;
use crate::name::RelativeName;
use crate::pages::PageBuffer;
use crate::tree::{ReadProblem, read_piece};
use crate::wire::{Failure, MOST_PIECES, OfferedEntry, Operation, few, offered};

/// A message of the source to the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Question {
    /// How do these entries differ? Answered with [`Answer::Seen`].
    Look(#[serde(deserialize_with = "offered")] Vec<OfferedEntry>),
    /// Both ends read these pieces now. Not answered: [`Question::Compare`] follows.
    Read(#[serde(deserialize_with = "few")] Vec<PieceRange>),
    /// Are the pieces of the last [`Question::Read`] the same? Carries the source's digests, range by range. Answered
    /// with [`Answer::Compared`].
    Compare(#[serde(deserialize_with = "few")] Vec<Vec<Digest>>),
    /// Which entries does only the target have in these folders? Answered with [`Answer::Extras`], as often as it
    /// takes.
    Names(#[serde(deserialize_with = "few")] Vec<FolderNames>),
}

/// A message of the target to the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// How the entries differ, in the order of the question.
    Seen(#[serde(deserialize_with = "few")] Vec<Seen>),
    /// True for each range whose pieces are the same, in the order of the question.
    Compared(#[serde(deserialize_with = "few")] Vec<Result<bool, Failure>>),
    /// Entries that only the target has, and what could not be looked into.
    Extras {
        #[serde(deserialize_with = "few")]
        entries: Vec<(RelativeName, CopyEntryKind)>,
        #[serde(deserialize_with = "few")]
        failures: Vec<(RelativeName, Failure)>,
        is_last: bool,
    },
}

/// Successive pieces of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PieceRange {
    pub(super) name: RelativeName,
    /// The length of the file.
    pub(super) size: u64,
    pub(super) first: u32,
    /// The number of pieces.
    pub(super) number: u32,
}

impl PieceRange {
    /// Returns true if the file has these pieces, and a question may have as many.
    pub(super) fn fits(&self) -> bool {
        let end = self.first.checked_add(self.number);
        let has = |pieces| end.is_some_and(|end| end <= pieces);
        (1..=MOST_PIECES as u32).contains(&self.number) && digest::pieces(self.size).is_some_and(has)
    }

    /// Returns the number of bytes of the pieces.
    pub(super) fn bytes(&self) -> u64 {
        let all = u64::from(self.number) * digest::PIECE as u64;
        self.size.saturating_sub(digest::offset(self.first)).min(all)
    }

    /// Reads and hashes the pieces. A hole is not read, and zeros are not hashed: they are equal, whether they are written or
    /// not. `buffer` is used again.
    pub(super) fn digests(&self, file: &File, buffer: &mut PageBuffer) -> Result<Vec<Digest>, ReadProblem> {
        let too_long = ReadProblem::Failed(Failure::plain(Operation::Read));
        let pieces = digest::pieces(self.size).ok_or(too_long)?;
        let read = |index| -> Result<Digest, ReadProblem> {
            let length = digest::length(self.size, index);
            if is_hole(file, digest::offset(index), length) {
                return Ok(digest::HOLE);
            }
            let bytes = buffer.front(length);
            read_piece(file, index, bytes)?;
            Ok(if are_zeros(bytes) { digest::HOLE } else { digest::of_piece(bytes, index, pieces) })
        };
        (self.first..).take(self.number as usize).map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn range(size: u64, first: u32, number: u32) -> PieceRange {
        PieceRange { name: RelativeName::root(), size, first, number }
    }

    #[test]
    fn a_range_lies_in_its_file() {
        let size = 2 * digest::PIECE as u64 + 5;
        assert!(range(size, 0, 3).fits() && range(size, 2, 1).fits() && range(1, 0, 1).fits());
        for (first, number) in [(0, 4), (3, 1), (0, 0), (u32::MAX, 2)] {
            assert!(!range(size, first, number).fits(), "{first} {number}");
        }
        assert!(!range(1 << 40, 0, MOST_PIECES as u32 + 1).fits() && !range(u64::MAX, 0, 1).fits());
        assert_eq!(range(size, 0, 3).bytes(), size);
        assert_eq!((range(size, 1, 1).bytes(), range(size, 2, 1).bytes()), (1 << 20, 5));
    }

    #[test]
    fn digests_are_those_of_a_copy() {
        let bytes: Vec<u8> = (0..digest::PIECE + 3).map(|n| (n % 251) as u8).collect();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        let (size, mut buffer) = (bytes.len() as u64, PageBuffer::default());
        let digests = range(size, 0, 2).digests(&file, &mut buffer).unwrap();
        let [one, other] = [&bytes[..digest::PIECE], &bytes[digest::PIECE..]];
        assert_eq!(digests, [digest::of_piece(one, 0, 2), digest::of_piece(other, 1, 2)]);
        file.write_all_at(&[0; 3], digest::PIECE as u64).unwrap();
        let zeros = range(size, 1, 1).digests(&file, &mut buffer).unwrap();
        file.set_len(digest::PIECE as u64).and_then(|()| file.set_len(size)).unwrap();
        assert_eq!((range(size, 1, 1).digests(&file, &mut buffer).unwrap(), zeros.len()), (zeros, 1));
        let shorter = range(size + 1, 1, 1).digests(&file, &mut buffer);
        assert_eq!(shorter, Err(ReadProblem::Changed));
    }
}
