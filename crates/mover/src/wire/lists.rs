//! Reads lists that are short in what an honest end sends. Otherwise a message of 4 MiB could become a list of hundreds, because
//! an element may be one byte there and dozens in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// The largest number of elements.
const MOST: usize = 256;

/// Reads a list of at most [`MOST`] elements, for `#[serde(deserialize_with = ...)]`.
pub(crate) fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(Few(PhantomData))
}

struct Few<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = elements.next_element()? {
            if all.len() == MOST {
                return Err(A::Error::custom("a list is too long"));
            }
            all.push(one);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Answer, MOST_OFFERED, MOST_PIECES, ToSource};

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
}
