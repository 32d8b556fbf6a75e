//! Where a file has data, and where it has holes (lseek(2), SEEK_DATA and SEEK_HOLE). Where a file system cannot say, all is
//! data. A range is one of [`crate::ranges`].

mod map;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

use crate::digest::{self, PIECE};
use crate::ranges::{between, range};
pub(crate) use map::{DataMap, has};

/// The largest number of ranges that are listed of a file. What follows counts as one range. The answers to an offer
/// fit a message even if each has this number of ranges.
pub(crate) const MOST_RANGES: usize = 1_024;
/// The largest number of ranges of data that are listed of a piece. What follows counts as data.
pub(crate) const MOST_IN_PIECE: usize = 256;
/// The least length of a hole, but for one at the end of a file.
const BLOCK: usize = 512;
/// Zeros that bytes are compared with, and that are written where a hole cannot be made.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Returns the pieces of a file that have data.
pub(crate) fn pieces_with_data(file: impl AsFd, pieces: u32) -> Vec<(u32, u32)> {
    DataMap::of(file, pieces).with_data
}

/// Returns the data in a piece that begins at `offset` and was read as `bytes`; `None` if it has no hole. What was read of a
/// hole must be zeros: a piece of which the kernel says otherwise counts as data.
pub(crate) fn sparse(file: impl AsFd, offset: u64, bytes: &[u8]) -> Option<Vec<(u32, u32)>> {
    // tmpfs looks at all pages up to the next hole, which is slow in a long file without holes. A caller that has a map
    // of the file asks only of pieces that are not dense in it.
    if !bytes.chunks(BLOCK).any(are_zeros) {
        return None;
    }
    // A piece has at most PIECE bytes.
    let length = bytes.len() as u32;
    let data = data_in(|from| next_data(&file, from), offset, length);
    let holes = between(&data, length);
    let is_zero = |&(first, number): &(u32, u32)| are_zeros(&bytes[range(first, number)]);
    (!holes.is_empty() && holes.iter().all(is_zero)).then_some(data)
}

/// Returns the data in a piece. `next` returns the next data at an offset or after it, and the hole after them.
fn data_in(next: impl Fn(u64) -> Option<(u64, u64)>, offset: u64, length: u32) -> Vec<(u32, u32)> {
    let end = offset + u64::from(length);
    let (mut ranges, mut from): (Vec<(u32, u32)>, u64) = (Vec::new(), offset);
    while let Some((data, hole)) = next(from).filter(|(data, _)| *data < end) {
        from = if ranges.len() + 1 < MOST_IN_PIECE { hole.min(end) } else { end };
        // Both are within the piece.
        let (first, number) = ((data - offset) as u32, (from - data) as u32);
        match ranges.last_mut() {
            // The hole between them has just been filled. The other end takes no ranges without one.
            Some((start, before)) if *start + *before == first => *before += number,
            _ => ranges.push((first, number)),
        }
        if from >= end {
            break;
        }
    }
    ranges
}

/// Returns true if these bytes of a file are a hole. The file must be long enough to have them.
pub(crate) fn is_hole(file: impl AsFd, offset: u64, length: usize) -> bool {
    let end = offset + length as u64;
    let has_none = data_after(&file, offset).is_none_or(|data| data >= end);
    has_none && rustix::fs::seek(&file, SeekFrom::End(0)).is_ok_and(|size| size >= end)
}

pub(crate) fn are_zeros(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()])
}

/// Makes a hole of what a file has in this range; where the file system has none, zeros.
pub(crate) fn clear(file: &File, offset: u64, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::io::retry_on_intr(|| rustix::fs::fallocate(file, flags, offset, length)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, offset, length),
        cleared => Ok(cleared?),
    }
}

/// Writes zeros where a file has data. It gets no longer.
fn write_zeros(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let end = file.metadata()?.len().min(offset + length);
    let mut from = offset;
    while from < end
        && let Some((data, hole)) = next_data(file, from).filter(|(data, _)| *data < end)
    {
        // The number is at most that of ZEROS.
        let number = (hole.min(end) - data).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..number as usize], data)?;
        from = data + number;
    }
    Ok(())
}

/// Returns where the next data at `from` or after it begin; `None` if there are no more.
fn data_after(file: impl AsFd, from: u64) -> Option<u64> {
    match rustix::fs::seek(&file, SeekFrom::Data(from)) {
        Ok(data) => Some(data.max(from)),
        Err(Errno::NXIO) => None,
        Err(_) => (from < u64::MAX).then_some(from),
    }
}

/// Returns the next data at `from` or after it, and the hole after them; `None` if there are no more.
fn next_data(file: impl AsFd, from: u64) -> Option<(u64, u64)> {
    let data = data_after(&file, from)?;
    let hole = rustix::fs::seek(&file, SeekFrom::Hole(data)).ok().filter(|hole| *hole > data);
    Some((data, hole.unwrap_or(u64::MAX)))
}

/// Returns the index of the piece at this offset.
fn piece_at(offset: u64) -> u32 {
    u32::try_from(offset / PIECE as u64).unwrap_or(u32::MAX)
}

/// Returns the number of bytes of a range of pieces in a file of `size` bytes.
pub(crate) fn bytes_of(size: u64, (first, number): (u32, u32)) -> u64 {
    let end = (digest::offset(first) + u64::from(number) * PIECE as u64).min(size);
    end.saturating_sub(digest::offset(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::are_ranges;

    /// Returns a file of `size` bytes that has data at these offsets; `None` where the file system has no holes.
    fn file(size: u64, data: &[u64]) -> Option<File> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        let has_holes = pieces_with_data(&file, u32::MAX).is_empty();
        data.iter().for_each(|at| file.write_all_at(&[1], *at).unwrap());
        has_holes.then_some(file)
    }

    #[test]
    fn pieces_with_data_are_found_between_holes() {
        let file = tempfile::tempfile().unwrap();
        assert!(pieces_with_data(&file, 9).is_empty());
        file.set_len(9 << 20).unwrap();
        file.write_all_at(&[1], 2 << 20).unwrap();
        file.write_all_at(&[1], (5 << 20) - 1).unwrap();
        let ranges = pieces_with_data(&file, 9);
        let has = |piece: u32| ranges.iter().any(|(first, number)| (*first..first + number).contains(&piece));
        assert!(has(2) && has(4), "{ranges:?}");
        // Where a file system has no holes, all of a file is data.
        assert!(ranges == [(0, 9)] || !has(8), "{ranges:?}");
    }

    /// A pipe cannot say where it has data; nor can a file of some file systems.
    #[test]
    fn a_file_that_cannot_say_where_it_has_data_has_data_everywhere() {
        let (pipe, _writing) = rustix::pipe::pipe().unwrap();
        assert_eq!(pieces_with_data(&pipe, 7), [(0, 7)]);
        assert_eq!(sparse(&pipe, 0, &[0; 100]), None);
        assert!(!is_hole(&pipe, 0, 1));
    }

    #[test]
    fn a_piece_with_a_hole_differs_from_one_with_zeros() {
        let Some(sparse_file) = file(PIECE as u64 + 5, &[300_000]) else { return };
        let mut bytes = vec![0; PIECE];
        bytes[300_000] = 1;
        let data = sparse(&sparse_file, 0, &bytes).expect("holes");
        let [(first, number)] = data[..] else { panic!("{data:?}") };
        assert!(first <= 300_000 && first + number > 300_000 && number <= 128 << 10, "{data:?}");
        assert_eq!(sparse(&sparse_file, PIECE as u64, &[0; 5]), Some(Vec::new()), "only a hole");
        bytes[0] = 7;
        assert_eq!(sparse(&sparse_file, 0, &bytes), None, "what was read says otherwise");
        sparse_file.write_all_at(&vec![0; PIECE], 0).unwrap();
        assert_eq!(sparse(&sparse_file, 0, &vec![0; PIECE]), None, "zeros that are written are data");
    }

    /// Another program writes between the questions to the kernel, or a file system names its extents one by one.
    #[test]
    fn data_without_a_hole_between_them_are_one_range() {
        let extents = [(10, 20), (20, 30), (40, 50), (50, u64::MAX)];
        let next = |from: u64| extents.into_iter().find(|(data, _)| *data >= from);
        let data = data_in(next, 5, 100);
        assert_eq!(data, [(5, 20), (35, 65)]);
        assert!(are_ranges(&data, 100));
        let many = |from: u64| Some((from.next_multiple_of(2), from.next_multiple_of(2) + 1));
        let data = data_in(many, 0, 1 << 20);
        assert!(are_ranges(&data, 1 << 20) && data.len() == MOST_IN_PIECE, "{}", data.len());
    }

    #[test]
    fn a_hole_lies_in_its_file() {
        let Some(file) = file(1 << 40, &[5]) else { return };
        assert!(!is_hole(&file, 0, PIECE) && is_hole(&file, 1 << 39, PIECE));
        assert!(is_hole(&file, (1 << 40) - 5, 5) && !is_hole(&file, (1 << 40) - 5, 6), "it ends before");
    }

    #[test]
    fn a_cleared_range_reads_as_zeros_and_the_rest_stays() {
        for clear in [clear, write_zeros] {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&vec![9; 300_000], 0).unwrap();
            clear(&file, 1_000, 200_001).unwrap();
            clear(&file, 299_000, 1 << 30).unwrap();
            let mut bytes = vec![1; 300_000];
            file.read_exact_at(&mut bytes, 0).unwrap();
            assert!(are_zeros(&bytes[1_000..201_001]) && are_zeros(&bytes[299_000..]));
            assert!(bytes[..1_000].iter().chain(&bytes[201_001..299_000]).all(|byte| *byte == 9));
            assert_eq!(file.metadata().unwrap().len(), 300_000);
        }
    }

    #[test]
    fn the_last_piece_of_a_file_may_be_shorter() {
        assert_eq!(bytes_of(PIECE as u64 + 7, (0, 2)), PIECE as u64 + 7);
        assert_eq!(bytes_of(PIECE as u64 + 7, (1, 1)), 7);
    }
}
