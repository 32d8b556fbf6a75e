//! Pieces with holes.

use serde::{Deserialize, Deserializer, Serialize};

use super::{PieceHeader, few};
use crate::extents::MOST_IN_PIECE;
use crate::ranges::are_ranges;

/// A piece that may have holes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SparsePiece {
    pub(crate) header: PieceHeader,
    /// Where the piece has data, as ranges of (first byte, number) with holes between them; `None` if it has no holes.
    #[serde(deserialize_with = "few_if_any")]
    pub(crate) data: Option<Vec<(u32, u32)>>,
}

/// Reads a list of few elements, if there is one.
fn few_if_any<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<(u32, u32)>>, D::Error> {
    #[derive(Deserialize)]
    struct Few(#[serde(deserialize_with = "few")] Vec<(u32, u32)>);
    Ok(Option::<Few>::deserialize(from)?.map(|few| few.0))
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

    #[test]
    fn a_piece_is_read_with_as_many_ranges_as_an_honest_end_names_and_no_more() {
        let read = |data: Option<usize>| {
            let header =
                PieceHeader { entry: 0, index: 0, length: 100, digest: Digest([0; 32]), is_sent: true };
            let piece = SparsePiece { header, data: data.map(|number| vec![(0, 1); number]) };
            let again = postcard::from_bytes::<SparsePiece>(&postcard::to_stdvec(&piece).unwrap());
            again.is_ok_and(|again| again == piece)
        };
        assert!(read(None) && read(Some(0)) && read(Some(MOST_IN_PIECE)) && !read(Some(MOST_IN_PIECE + 1)));
    }
}
