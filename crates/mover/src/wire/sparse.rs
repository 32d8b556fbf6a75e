//! Pieces with holes.

use serde::{Deserialize, Serialize};

use super::PieceHeader;
use crate::extents::{MOST_IN_PIECE, are_ranges};

/// A piece that may have holes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SparsePiece {
    pub(crate) header: PieceHeader,
    /// Where the piece has data, as ranges of (first byte, number) with holes between them; `None` if it has no holes.
    pub(crate) data: Option<Vec<(u32, u32)>>,
}

impl SparsePiece {
    /// Returns the number of bytes that the body has of this piece; `None` if the data are not those of an honest end.
    pub(crate) fn sent_bytes(&self) -> Option<usize> {
        let PieceHeader { length, is_sent, .. } = self.header;
        let bytes = match &self.data {
            None if is_sent => length,
            None => 0,
            Some(data) => {
                let is_fine = is_sent && data.len() <= MOST_IN_PIECE && are_ranges(data, length);
                is_fine.then(|| data.iter().map(|(_, number)| number).sum::<u32>())?
            }
        };
        Some(bytes as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn a_piece_has_the_data_that_it_names_in_order() {
        let piece = |is_sent, data: Option<&[(u32, u32)]>| {
            let header = PieceHeader { entry: 0, index: 0, length: 100, digest: Digest([0; 32]), is_sent };
            SparsePiece { header, data: data.map(<[_]>::to_vec) }.sent_bytes()
        };
        assert_eq!([piece(true, None), piece(false, None)], [Some(100), Some(0)]);
        assert_eq!(piece(true, Some(&[(10, 5), (90, 10)])), Some(15));
        assert_eq!((piece(true, Some(&[])), piece(false, Some(&[]))), (Some(0), None));
        for bad in [&[(90, 11)][..], &[(10, 5), (3, 2)], &[(0, 0)], &[(u32::MAX, 1)]] {
            assert_eq!(piece(true, Some(bad)), None, "{bad:?}");
        }
        let many: Vec<(u32, u32)> = (0..=MOST_IN_PIECE as u32).map(|n| (n * 2, 1)).collect();
        let header =
            PieceHeader { entry: 0, index: 0, length: 1 << 20, digest: Digest([0; 32]), is_sent: true };
        assert_eq!(SparsePiece { header, data: Some(many) }.sent_bytes(), None);
    }
}
