//! BLAKE3 of a file from its pieces. A piece is a subtree of BLAKE3's tree, so that pieces can be hashed in any order and
//! at both ends, and the file's digest is the one that b3sum(1) prints.

use std::collections::BTreeMap;

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use serde::{Deserialize, Serialize};

/// The length of a piece in bytes. The last piece of a file may be shorter.
pub(crate) const PIECE: usize = 1 << 20;

/// The digest of a file with one piece, or of one piece of a longer file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest(pub(crate) [u8; 32]);

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
}

impl DonePieces {
    /// Returns the pieces of a file that has `count` of them, at least 1, while none is done.
    pub(crate) fn none_of(count: u32) -> Self {
        DonePieces { count, left: count, nodes: BTreeMap::new() }
    }

    /// Returns the number of pieces of the file.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn has_any(&self) -> bool {
        self.left < self.count
    }

    pub(crate) fn has(&self, index: u32) -> bool {
        (0..=u32::BITS).any(|level| self.nodes.contains_key(&(level, u64::from(index) >> level)))
    }

    /// Adds a piece. Returns false if it was there already, or is none of the file.
    pub(crate) fn add(&mut self, index: u32, digest: Digest) -> bool {
        if index >= self.count || self.has(index) {
            return false;
        }
        let (mut level, mut number, mut node) = (0, u64::from(index), digest.0);
        while let Some(above) = self.above(level, number, &node) {
            (level, number, node) = (level + 1, number / 2, above);
        }
        self.nodes.insert((level, number), node);
        self.left -= 1;
        true
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
                let other = self.nodes.remove(&(level, neighbour))?;
                let (left, right) = if number < neighbour { (node, &other) } else { (&other, node) };
                Some(merged(left, right, width == 2))
            }
        }
    }

    /// Returns the digest of the file, once all its pieces are done.
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.nodes.values().next().filter(|_| self.left == 0).map(|root| Digest(*root))
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

    /// An end that offers a file of 4 PiB takes no memory for what it has not sent.
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
