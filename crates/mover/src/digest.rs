//! The BLAKE3 digest of a file from its pieces. A piece is a subtree of BLAKE3's tree, so that pieces can be hashed in
//! any order and at both ends, and the file's digest is the one that b3sum(1) prints, unless the file has pieces that
//! are holes (docs/decisions/0079-links-and-holes.md).

use std::collections::BTreeMap;

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use serde::{Deserialize, Serialize};

use crate::ranges::are_ranges;

/// The length of a piece in bytes. The last piece of a file may be shorter.
pub(crate) const PIECE: usize = 1 << 20;

/// The digest of a file with one piece, or of one piece of a longer file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest(pub(crate) [u8; 32]);

/// The node of pieces that are holes, in place of that of as many zeros, which would have to be hashed. No bytes that anyone
/// could find have this digest.
pub(crate) const HOLE: Digest = Digest(*b"landspeed copy: a hole, no bytes");

/// The digest of a whole file once its copy is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WholeDigest {
    /// The digest that b3sum(1) prints.
    Plain(Digest),
    /// The file has pieces that are holes, so that its digest is not that one.
    WithHoles,
}

/// Returns the number of pieces of a file of `size` bytes, at least 1; `None` if they are more than a copy can number.
pub(crate) fn pieces(size: u64) -> Option<u32> {
    u32::try_from(size.div_ceil(PIECE as u64).max(1)).ok()
}

/// Returns the offset of a piece in its file.
pub(crate) fn offset(index: u32) -> u64 {
    u64::from(index) * PIECE as u64
}

/// Returns the length of a piece of a file of `size` bytes.
pub(crate) fn length(size: u64, index: u32) -> usize {
    // The minimum is at most PIECE.
    size.saturating_sub(offset(index)).min(PIECE as u64) as usize
}

/// Returns the digest of the piece `index` of a file that has `pieces` pieces.
pub(crate) fn of_piece(bytes: &[u8], index: u32, pieces: u32) -> Digest {
    match pieces {
        1 => Digest(*blake3::hash(bytes).as_bytes()),
        _ => Digest(Hasher::new().set_input_offset(offset(index)).update(bytes).finalize_non_root()),
    }
}

/// The pieces of a file that are done. Two neighbours of BLAKE3's tree become one node as soon as both are there, so that
/// a file of any length takes little memory if its pieces are done nearly in order.
#[derive(Debug)]
pub(crate) struct DonePieces {
    count: u32,
    /// The number of pieces that are missing.
    left: u32,
    /// The digest of each node by its level, from 0 for pieces, and its number in that level.
    nodes: BTreeMap<(u32, u64), [u8; 32]>,
    /// The pieces that are holes, as ranges of (first, number). They have no nodes of their own, so that a source cannot make
    /// them many.
    holes: Vec<(u32, u32)>,
}

impl DonePieces {
    /// Returns the pieces of a file that has `count` of them, at least 1, while none is done.
    pub(crate) fn none_of(count: u32) -> Self {
        DonePieces { count, left: count, nodes: BTreeMap::new(), holes: Vec::new() }
    }

    /// Returns the number of pieces of the file.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn has_any(&self) -> bool {
        self.left < self.count
    }

    pub(crate) fn has(&self, index: u32) -> bool {
        self.is_hole(0, index.into())
            || (0..=u32::BITS).any(|level| self.nodes.contains_key(&(level, u64::from(index) >> level)))
    }

    /// Adds a piece. Returns false if it was there already, or is none of the file.
    pub(crate) fn add(&mut self, index: u32, digest: Digest) -> bool {
        if index >= self.count || self.has(index) {
            return false;
        }
        self.put(0, index.into(), digest.0);
        self.left -= 1;
        true
    }

    /// Adds all holes of a file, once, as ranges of (first, number). Returns false if they are none of the file, or if there
    /// are holes or pieces in their place already.
    pub(crate) fn add_holes(&mut self, holes: &[(u32, u32)]) -> bool {
        if !self.holes.is_empty() || holes.is_empty() || !are_ranges(holes, self.count) {
            return false;
        }
        let is_taken = |&(level, number): &(u32, u64)| {
            let (begin, end) = self.pieces_of(level, number);
            let at = holes.partition_point(|&(first, many)| u64::from(first) + u64::from(many) <= begin);
            holes.get(at).is_some_and(|&(first, _)| u64::from(first) < end)
        };
        if self.nodes.keys().any(is_taken) {
            return false;
        }
        self.left -= holes.iter().map(|(_, number)| number).sum::<u32>();
        self.holes = holes.to_vec();
        for ((level, number), node) in std::mem::take(&mut self.nodes) {
            self.put(level, number, node);
        }
        true
    }

    /// Adds a node, and those above it for which all is there.
    fn put(&mut self, mut level: u32, mut number: u64, mut node: [u8; 32]) {
        while let Some(above) = self.above(level, number, &node) {
            (level, number, node) = (level + 1, number / 2, above);
        }
        self.nodes.insert((level, number), node);
    }

    /// Returns the pieces below a node: the first one, and the one after the last.
    fn pieces_of(&self, level: u32, number: u64) -> (u64, u64) {
        (number << level, ((number + 1) << level).min(self.count.into()))
    }

    /// Returns true if all pieces below a node are holes.
    fn is_hole(&self, level: u32, number: u64) -> bool {
        let (begin, end) = self.pieces_of(level, number);
        let at = self.holes.partition_point(|&(first, _)| u64::from(first) <= begin);
        let before = at.checked_sub(1).map(|at| self.holes[at]);
        before.is_some_and(|(first, many)| u64::from(first) + u64::from(many) >= end)
    }

    /// Returns the node above a new one, whose neighbour it removes. Returns `None` if the neighbour is missing, and for
    /// the root.
    fn above(&mut self, level: u32, number: u64, node: &[u8; 32]) -> Option<[u8; 32]> {
        let width = u64::from(self.count).div_ceil(1_u64 << level);
        let neighbour = number ^ 1;
        match width {
            1 => None,
            // The last of an odd number of nodes is a node of the next level too.
            _ if neighbour >= width => Some(*node),
            _ => {
                let other = match self.is_hole(level, neighbour) {
                    true => HOLE.0,
                    false => self.nodes.remove(&(level, neighbour))?,
                };
                let (left, right) = if number < neighbour { (node, &other) } else { (&other, node) };
                Some(merged(left, right, width == 2))
            }
        }
    }

    /// Returns the digest of the file, once all its pieces are done.
    pub(crate) fn digest(&self) -> Option<Digest> {
        let root = || self.nodes.values().next().map_or(HOLE, |root| Digest(*root));
        (self.left == 0).then(root)
    }

    /// Returns the digest of the file for others than the two ends, once all its pieces are done.
    pub(crate) fn whole_digest(&self) -> Option<WholeDigest> {
        let has_holes = !self.holes.is_empty();
        self.digest()
            .map(|digest| if has_holes { WholeDigest::WithHoles } else { WholeDigest::Plain(digest) })
    }
}

fn merged(left: &[u8; 32], right: &[u8; 32], is_root: bool) -> [u8; 32] {
    match is_root {
        true => *merge_subtrees_root(left, right, Mode::Hash).as_bytes(),
        false => merge_subtrees_non_root(left, right, Mode::Hash),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the digest of bytes from their pieces, of which every third is done first.
    fn of_pieces(bytes: &[u8]) -> Option<Digest> {
        let size = bytes.len() as u64;
        let all = pieces(size).expect("a number");
        let mut done = DonePieces::none_of(all);
        let (first, last): (Vec<u32>, Vec<u32>) = (0..all).partition(|index| index % 3 == 1);
        for index in first.into_iter().chain(last.into_iter().rev()) {
            assert_eq!((done.has(index), done.digest()), (false, None));
            let from = offset(index) as usize;
            let digest = of_piece(&bytes[from..from + length(size, index)], index, all);
            assert!(done.add(index, digest) && done.has(index), "{index} of {all}");
            assert!(!done.add(index, digest), "twice");
        }
        assert!(!done.add(all, Digest([0; 32])), "beyond the end");
        assert_eq!(done.whole_digest(), done.digest().map(WholeDigest::Plain));
        done.digest()
    }

    #[test]
    fn pieces_give_the_digest_of_the_whole() {
        let bytes: Vec<u8> = (0..7 * PIECE + 5).map(|n| (n % 251) as u8).collect();
        let few = [0, 1, 1024, PIECE - 1, PIECE, PIECE + 1];
        let many = [2, 3, 4].map(|pieces| pieces * PIECE).into_iter().chain([4 * PIECE + 1, bytes.len()]);
        for size in few.into_iter().chain(many) {
            let whole = Digest(*blake3::hash(&bytes[..size]).as_bytes());
            assert_eq!(of_pieces(&bytes[..size]), Some(whole), "{size}");
        }
    }

    /// Returns the digest of bytes of which pieces are holes, by its definition.
    fn with_holes(bytes: &[u8], is_hole: &dyn Fn(u32) -> bool) -> Digest {
        let all = pieces(bytes.len() as u64).expect("a number");
        let piece = |index| {
            let from = offset(index) as usize;
            of_piece(&bytes[from..from + length(bytes.len() as u64, index)], index, all).0
        };
        let node = |index| if is_hole(index) { HOLE.0 } else { piece(index) };
        let mut nodes: Vec<[u8; 32]> = (0..all).map(node).collect();
        while nodes.len() > 1 {
            let is_root = nodes.len() == 2;
            let above = |pair: &[[u8; 32]]| match pair {
                [left, right] if *left == HOLE.0 && *right == HOLE.0 => HOLE.0,
                [left, right] => merged(left, right, is_root),
                [alone, ..] => *alone,
                [] => unreachable!("a chunk is not empty"),
            };
            nodes = nodes.chunks(2).map(above).collect();
        }
        Digest(nodes[0])
    }

    #[test]
    fn holes_take_the_place_of_their_pieces_whenever_they_are_added() {
        let bytes: Vec<u8> = (0..10 * PIECE + 5).map(|n| (n % 251) as u8).collect();
        let all = 11;
        for holes in [&[(0, 1)][..], &[(1, 3)], &[(4, 4), (9, 2)], &[(2, 1), (4, 1), (6, 5)], &[(0, 11)]] {
            let is_hole =
                |index: u32| holes.iter().any(|(first, many)| (*first..first + many).contains(&index));
            let expected = with_holes(&bytes, &is_hole);
            let data: Vec<u32> = (0..all).filter(|index| !is_hole(*index)).collect();
            for when in 0..=data.len() {
                let mut done = DonePieces::none_of(all);
                for (at, index) in data.iter().copied().enumerate() {
                    if at == when {
                        assert!(done.add_holes(holes) && !done.add_holes(holes), "once");
                    }
                    let from = offset(index) as usize;
                    let piece = &bytes[from..from + length(bytes.len() as u64, index)];
                    assert!(done.add(index, of_piece(piece, index, all)));
                }
                assert!(when < data.len() || (done.digest().is_none() && done.add_holes(holes)));
                assert_eq!(done.digest(), Some(expected), "{holes:?} after {when}");
                assert!((0..all).all(|index| done.has(index) && !done.add(index, HOLE)));
            }
        }
    }

    #[test]
    fn holes_that_no_honest_end_names_are_refused() {
        let mut done = DonePieces::none_of(9);
        assert!(done.add(3, Digest([1; 32])) && done.add(2, Digest([2; 32])));
        for bad in [&[][..], &[(3, 1)], &[(0, 9)], &[(2, 1)], &[(8, 2)], &[(4, 0)], &[(0, 1), (1, 1)]] {
            assert!(!done.add_holes(bad), "{bad:?}");
        }
        assert_eq!(done.whole_digest(), None);
        assert!(done.add_holes(&[(0, 2), (4, 5)]));
        assert!(done.digest().is_some());
        assert_eq!(done.whole_digest(), Some(WholeDigest::WithHoles), "b3sum prints another one");
    }

    /// 4 PiB of a hole cost neither time nor memory.
    #[test]
    fn a_long_hole_is_nearly_free() {
        let mut done = DonePieces::none_of(u32::MAX);
        assert!(done.add_holes(&[(0, 77_777), (77_778, u32::MAX - 77_778)]));
        assert_eq!(done.digest(), None);
        assert!(done.add(77_777, Digest([1; 32])) && done.digest().is_some());
        assert_eq!(done.nodes.len(), 1);
    }

    /// An end that offers a file of 4 PiB takes no memory for pieces that it has not sent.
    #[test]
    fn a_long_file_takes_little_memory() {
        let mut done = DonePieces::none_of(u32::MAX);
        for index in 0..100_000 {
            assert!(done.add(index, Digest([index as u8; 32])));
            assert!(done.nodes.len() <= 17, "{}", done.nodes.len());
        }
        assert!(done.add(u32::MAX - 1, Digest([0; 32])) && done.has(u32::MAX - 1));
        assert!(done.digest().is_none());
    }

    #[test]
    fn pieces_cover_a_file() {
        assert_eq!([0, 1, 1 << 20, (1 << 20) + 1].map(pieces), [Some(1), Some(1), Some(1), Some(2)]);
        assert_eq!(pieces(u64::MAX), None);
        assert_eq!([length(0, 0), length(PIECE as u64 + 7, 1), length(PIECE as u64 + 7, 0)], [0, 7, PIECE]);
        assert_eq!(length(5, 9), 0);
    }
}
