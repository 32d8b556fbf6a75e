//! A tree without storage: the content of each file is generated when it is sent.

use landspeed_mover::{MadeFiles, RelativeName};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::tree::{SEED, TreePlan};

/// The largest number of bytes that are copied from the block at a time. The mover requests no more at once.
const PIECE: usize = 1 << 20;
/// The number of positions in the block at which a piece may begin, and their distance in bytes.
const PLACES: u64 = 1 << 10;
const APART: usize = 64;

/// The files of a plan. Their content comes from one block of random bytes, each piece from another position, with the
/// file's number in it. New random bytes for each piece would cost more than encrypting and hashing them.
pub(super) struct MadeTree {
    plan: TreePlan,
    block: Vec<u8>,
}

impl MadeTree {
    pub(super) fn of(plan: TreePlan) -> Self {
        let mut block = vec![0; PIECE + PLACES as usize * APART];
        ChaCha8Rng::seed_from_u64(SEED).fill_bytes(&mut block);
        MadeTree { plan, block }
    }
}

impl MadeFiles for MadeTree {
    fn count(&self) -> u64 {
        self.plan.files
    }

    fn name(&self, number: u64) -> RelativeName {
        RelativeName::parse(self.plan.name(number).as_bytes()).unwrap_or_default()
    }

    fn length(&self, number: u64) -> u64 {
        self.plan.length(number)
    }

    fn fill(&self, number: u64, offset: u64, into: &mut [u8]) {
        for (part, into) in (0_u64..).zip(into.chunks_mut(PIECE)) {
            let offset = offset + part * PIECE as u64;
            let place = (number.wrapping_mul(31) ^ (offset / PIECE as u64).wrapping_mul(17)) % PLACES;
            let from = place as usize * APART;
            into.copy_from_slice(&self.block[from..from + into.len()]);
            let own = [number.to_le_bytes(), offset.to_le_bytes()].concat();
            into.iter_mut().zip(own).for_each(|(byte, own)| *byte ^= own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_the_same_each_time_and_differs_between_pieces() {
        let made = MadeTree::of(TreePlan { files: 2, bytes: 5 << 20 });
        let piece = |number, offset| {
            let mut bytes = vec![0; PIECE];
            made.fill(number, offset, &mut bytes);
            bytes
        };
        assert!(piece(1, 0) == piece(1, 0) && MadeTree::of(made.plan).block == made.block);
        let other = [piece(0, 0), piece(0, 1 << 20), piece(PLACES, 0)];
        assert!(other.iter().all(|other| *other != piece(1, 0)) && other[0] != other[2]);
        assert_eq!(
            (made.count(), made.length(0), made.name(1).as_bytes()),
            (2, 5 << 19, &b"0000/0000001"[..])
        );
    }

    /// The content does not depend on the size of the requests. The mover's requests are smaller than these.
    #[test]
    fn long_content_is_that_of_its_pieces() {
        let made = MadeTree::of(TreePlan { files: 1, bytes: 1 << 30 });
        let (mut whole, mut second) = (vec![0; PIECE + 5], vec![0; 5]);
        made.fill(7, 0, &mut whole);
        made.fill(7, PIECE as u64, &mut second);
        assert_eq!(whole[PIECE..], second[..]);
    }
}
