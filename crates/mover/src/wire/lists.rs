//! Reads lists that an honest end keeps short. Otherwise a message of 4 MiB could become a list of hundreds of MiB,
//! because an element may be one byte there and dozens in memory.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use super::{EntryOutcome, MOST_OUTCOMES, OfferedEntry};
use crate::extents::MOST_RANGES;
use crate::metadata::{self, MOST_OF_ENTRY, MOST_OF_OFFER};

/// The largest number of elements of most lists.
const MOST: usize = 256;

/// Reads a list of at most [`MOST`] elements, for `#[serde(deserialize_with = ...)]`.
pub(crate) fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(Bounded::by_number(MOST))
}

/// Reads at most [`MOST`] offered entries, with no more attributes than those of an honest source: it adds no further entry to an
/// offer of [`MOST_OF_OFFER`] bytes.
pub(crate) fn offered<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<OfferedEntry>, D::Error> {
    let weigh = |one: &OfferedEntry| metadata::bytes(&one.metadata.attributes);
    from.deserialize_seq(Bounded { most: MOST, weigh, heaviest: MOST_OF_OFFER + MOST_OF_ENTRY })
}

/// Reads at most [`MOST_OUTCOMES`] outcomes.
pub(super) fn outcomes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u64, EntryOutcome)>, D::Error> {
    from.deserialize_seq(Bounded::by_number(MOST_OUTCOMES))
}

/// Reads ranges of the pieces of a file. Around the most ranges of data is one hole more.
pub(super) fn ranges<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u32, u32)>, D::Error> {
    from.deserialize_seq(Bounded::by_number(MOST_RANGES + 1))
}

/// A list that is bounded by its number of elements and by their weight.
struct Bounded<T> {
    most: usize,
    /// Returns the weight of an element.
    weigh: fn(&T) -> usize,
    /// The largest weight of all elements together.
    heaviest: usize,
}

impl<T> Bounded<T> {
    /// Returns a list whose elements have no weight.
    fn by_number(most: usize) -> Self {
        Bounded { most, weigh: |_| 0, heaviest: 0 }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {} elements", self.most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let (mut all, mut weight) = (Vec::new(), 0);
        while let Some(one) = elements.next_element::<T>()? {
            weight += (self.weigh)(&one);
            if all.len() == self.most || weight > self.heaviest {
                return Err(A::Error::custom("a list is too long"));
            }
            all.push(one);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::identity::Timestamp;
    use crate::metadata::Metadata;
    use crate::name::RelativeName;
    use crate::wire::{Answer, EntryKind, HardLink, MOST_OFFERED, MOST_PIECES, ToSource, ToTarget};

    /// Returns true if a message is read as it was sent.
    fn is_read<M: Serialize + DeserializeOwned + PartialEq>(sent: &M) -> bool {
        let read = postcard::from_bytes::<M>(&postcard::to_stdvec(sent).unwrap());
        read.is_ok_and(|read| read == *sent)
    }

    #[test]
    fn a_list_is_as_long_as_an_honest_one_and_no_longer() {
        const { assert!(MOST_OFFERED <= MOST && MOST_PIECES <= MOST) };
        let answers = |number| ToSource::Answers { first: 0, answers: vec![Answer::Unchanged; number] };
        let read = |number| {
            let bytes = postcard::to_stdvec(&answers(number)).unwrap();
            postcard::from_bytes::<ToSource>(&bytes)
        };
        assert_eq!(read(MOST), Ok(answers(MOST)));
        assert!(read(MOST + 1).is_err() && read(4_000_000).is_err());
    }

    #[test]
    fn outcomes_and_ranges_are_read_as_far_as_an_honest_end_sends_them() {
        let outcomes = |number| ToSource::Outcomes(vec![(7, EntryOutcome::Installed); number]);
        assert!(is_read(&outcomes(MOST_OUTCOMES)) && !is_read(&outcomes(MOST_OUTCOMES + 1)));
        let compare = |number| Answer::Compare(vec![(0, 1); number]);
        assert!(is_read(&compare(MOST_RANGES)) && !is_read(&compare(MOST_RANGES + 2)));
        let holes = |number| ToTarget::Holes { entry: 0, holes: vec![(0, 1); number] };
        assert!(is_read(&holes(MOST_RANGES + 1)) && !is_read(&holes(MOST_RANGES + 2)));
    }

    #[test]
    fn an_offer_has_as_many_attributes_as_an_honest_one_and_no_more() {
        // Each value has 60 KiB.
        let entry = |values: u32| {
            let attribute = |n: u32| (format!("user.{n}").into_bytes(), vec![0; 60 << 10]);
            OfferedEntry {
                name: RelativeName::root(),
                kind: EntryKind::Fifo,
                mode: 0o644,
                modified: Timestamp { seconds: 0, nanos: 0 },
                metadata: Metadata {
                    attributes: (0..values).map(attribute).collect(),
                    ..Metadata::default()
                },
                link: HardLink::Alone,
            }
        };
        // The first one leaves room in an offer, and the second one has the most that an entry may have.
        let most = [4, 17];
        let bytes = most.map(|values| metadata::bytes(&entry(values).metadata.attributes));
        assert!(
            bytes[0] < MOST_OF_OFFER && bytes[1] <= MOST_OF_ENTRY && bytes[1] + (60 << 10) > MOST_OF_ENTRY
        );
        for (values, is_fine) in [(&most[..], true), (&[4, 4, 17], false), (&[17, 17], false)] {
            let entries: Vec<OfferedEntry> = values.iter().map(|values| entry(*values)).collect();
            assert_eq!(
                is_read(&ToTarget::Offer { first: 0, entries: entries.clone() }),
                is_fine,
                "{values:?}"
            );
            assert_eq!(is_read(&ToTarget::Folders { first: 0, entries }), is_fine, "{values:?}");
        }
    }
}
