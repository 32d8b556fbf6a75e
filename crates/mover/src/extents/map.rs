//! The pieces of a file that have data, and those of them that have no hole.

use std::os::fd::AsFd;

use super::{MOST_RANGES, next_data, piece_at};
use crate::digest::PIECE;

/// The data of a file at the time of the look, as ranges of pieces: each (first, number), in order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct DataMap {
    /// The pieces that have data, as at most [`MOST_RANGES`] ranges: what follows counts as data.
    pub(crate) with_data: Vec<(u32, u32)>,
    /// The pieces that lie within one range of data, so that they have no hole: at most [`MOST_RANGES`] ranges, and what
    /// follows may have holes.
    pub(crate) dense: Vec<(u32, u32)>,
}

impl DataMap {
    /// Asks where a file of this number of pieces has data. The kernel looks at each range of data once.
    pub(crate) fn of(file: impl AsFd, pieces: u32) -> Self {
        let (mut map, mut from) = (DataMap::default(), 0);
        while let Some((data, hole)) = next_data(&file, from).filter(|(data, _)| piece_at(*data) < pieces) {
            map.add_data(data, hole, pieces);
            map.add_dense(data, hole, pieces);
            from = hole;
        }
        map
    }

    /// Adds the pieces that have something of the data from `data` to before `hole`.
    fn add_data(&mut self, data: u64, hole: u64, pieces: u32) {
        let (first, end) = (piece_at(data), piece_from(hole).min(pieces));
        let is_full = self.with_data.len() >= MOST_RANGES;
        match self.with_data.last_mut() {
            Some((start, number)) if *start + *number >= first || is_full => {
                *number = end.max(*start + *number) - *start;
            }
            _ => self.with_data.push((first, end - first)),
        }
    }

    /// Adds the pieces that lie within these data.
    fn add_dense(&mut self, data: u64, hole: u64, pieces: u32) {
        let (first, end) = (piece_from(data), piece_at(hole).min(pieces));
        if first >= end {
            return;
        }
        let has_room = self.dense.len() < MOST_RANGES;
        match self.dense.last_mut() {
            Some((start, number)) if *start + *number == first => *number = end - *start,
            _ if has_room => self.dense.push((first, end - first)),
            _ => {}
        }
    }
}

/// Returns the index of the first piece that begins at this offset or after it.
fn piece_from(offset: u64) -> u32 {
    piece_at(offset.saturating_add(PIECE as u64 - 1))
}

/// Returns true if a piece is in one of these ranges.
pub(crate) fn has(ranges: &[(u32, u32)], index: u32) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= index);
    let before = after.checked_sub(1).map(|at| ranges[at]);
    before.is_some_and(|(first, number)| index - first < number)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// The number of bytes of a piece.
    const P: u64 = PIECE as u64;

    /// Returns the map of a file that has these data, each from its first byte to before the next hole.
    fn map(pieces: u32, data: &[(u64, u64)]) -> DataMap {
        let mut map = DataMap::default();
        for &(data, hole) in data {
            map.add_data(data, hole, pieces);
            map.add_dense(data, hole, pieces);
        }
        map
    }

    #[test]
    fn a_piece_with_a_border_may_have_a_hole_and_one_within_data_has_none() {
        for (data, pieces, with_data, dense) in [
            (&[(0, 3 * P)][..], 3, &[(0, 3)][..], &[(0, 3)][..]),
            (&[(5, 2 * P + 5)], 3, &[(0, 3)], &[(1, 1)]),
            // The hole within the piece 1 is in no gap between the pieces with data.
            (&[(0, P + 5), (P + 4_096, 3 * P)], 3, &[(0, 3)], &[(0, 1), (2, 1)]),
            // A file system names its extents one by one.
            (&[(0, P), (P, 2 * P)], 2, &[(0, 2)], &[(0, 2)]),
            (&[(0, P + 5), (P + 5, 2 * P)], 2, &[(0, 2)], &[(0, 1)]),
            // The end of the file counts as a hole.
            (&[(0, P + 5)], 2, &[(0, 2)], &[(0, 1)]),
            (&[(P, P + 5), (4 * P, 6 * P)], 9, &[(1, 1), (4, 2)], &[(4, 2)]),
            // A file system that cannot say where holes are.
            (&[(0, u64::MAX)], 7, &[(0, 7)], &[(0, 7)]),
            (&[(0, u64::MAX)], u32::MAX, &[(0, u32::MAX)], &[(0, u32::MAX)]),
        ] {
            let expected = DataMap { with_data: with_data.to_vec(), dense: dense.to_vec() };
            assert_eq!(map(pieces, data), expected, "{data:?}");
        }
    }

    #[test]
    fn beyond_the_most_ranges_pieces_count_as_data_that_may_have_holes() {
        let data: Vec<(u64, u64)> = (0..2_000).map(|n| (2 * n * P, (2 * n + 1) * P)).collect();
        let map = map(4_000, &data);
        assert_eq!((map.with_data.len(), map.dense.len()), (MOST_RANGES, MOST_RANGES));
        assert_eq!(map.with_data.last(), Some(&(2_046, 3_999 - 2_046)));
        assert_eq!(map.dense.last(), Some(&(2_046, 1)));
    }

    #[test]
    fn a_piece_is_in_a_range_or_not() {
        let ranges = [(1, 2), (5, 1), (u32::MAX - 1, 1)];
        let within: Vec<u32> = (0..9).chain([u32::MAX - 1, u32::MAX]).filter(|n| has(&ranges, *n)).collect();
        assert_eq!(within, [1, 2, 5, u32::MAX - 1]);
        assert!(!has(&[], 0));
    }

    /// The data of a real file: where it has zeros, they are data too.
    #[test]
    fn a_file_of_zeros_is_dense() {
        let file = tempfile::tempfile().unwrap();
        let zeros = vec![0; 3 * PIECE];
        file.write_all_at(&zeros, 0).unwrap();
        assert_eq!(DataMap::of(&file, 3), DataMap { with_data: vec![(0, 3)], dense: vec![(0, 3)] });
    }
}
