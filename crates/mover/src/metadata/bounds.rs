//! The limits of an entry's attributes. A stranger could send more than the kernel holds, and each takes far more
//! memory than bytes of a message.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// The extended attributes of an entry: values by names.
pub(crate) type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// The largest number of bytes of one entry's attributes. The kernel bounds a list of names and each value by 64 KiB.
pub(crate) const MOST_OF_ENTRY: usize = 1 << 20;
/// An offer gets no further entry once its attributes have as many bytes. With those of its last entry they fit a message.
pub(crate) const MOST_OF_OFFER: usize = 256 << 10;
/// The overhead of an attribute beside its name and its value: their lengths in a message, and more in memory. A source
/// could send many empty ones.
const BESIDE: usize = 64;
/// The longest value and the longest list of names that the kernel gives (XATTR_SIZE_MAX, XATTR_LIST_MAX).
pub(super) const LONGEST: usize = 64 << 10;

/// Returns the bytes that one attribute takes.
pub(super) fn bytes_of(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + BESIDE
}

/// Counts the attributes of one entry.
#[derive(Debug, Default)]
pub(super) struct AttributeCount {
    /// The length of the list of their names, as the kernel writes it: each with a NUL after it.
    names: usize,
    bytes: usize,
}

impl AttributeCount {
    /// Counts an attribute. Returns false if an entry may not have it beside those that were counted.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.names += name.len() + 1;
        self.bytes += bytes_of(name, value);
        self.names <= LONGEST && value.len() <= LONGEST && self.bytes <= MOST_OF_ENTRY
    }
}

/// Reads as many attributes as an entry may have, for `#[serde(deserialize_with = ...)]`.
pub(super) fn bounded<'de, D: Deserializer<'de>>(from: D) -> Result<Attributes, D::Error> {
    from.deserialize_map(Bounded)
}

/// Reads attributes up to [`MOST_OF_ENTRY`].
struct Bounded;

impl<'de> Visitor<'de> for Bounded {
    type Value = Attributes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attributes of at most {MOST_OF_ENTRY} bytes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Attributes, A::Error> {
        let (mut attributes, mut count) = (Attributes::new(), AttributeCount::default());
        while let Some((name, value)) = all.next_entry::<Vec<u8>, Vec<u8>>()? {
            if !count.add(&name, &value) {
                return Err(A::Error::custom("an entry has too many attributes"));
            }
            attributes.insert(name, value);
        }
        Ok(attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Metadata;

    /// Returns true if this number of attributes with values of this length are read as they were sent.
    fn is_read(number: u32, length: usize) -> bool {
        let attribute = |n: u32| (format!("user.{n}").into_bytes(), vec![7; length]);
        let attributes = (0..number).map(attribute).collect();
        let sent = Metadata { attributes, ..Metadata::default() };
        let read = postcard::from_bytes::<Metadata>(&postcard::to_stdvec(&sent).unwrap());
        read.is_ok_and(|read| read == sent)
    }

    #[test]
    fn an_entry_has_as_many_attributes_as_the_kernel_and_a_copy_allow() {
        assert!(is_read(0, 0) && is_read(1, LONGEST) && !is_read(1, LONGEST + 1), "a value");
        assert!(is_read(6_000, 0) && !is_read(7_000, 0) && !is_read(300_000, 0), "a list of names");
        assert!(is_read(15, LONGEST) && !is_read(16, LONGEST), "an entry");
    }
}
