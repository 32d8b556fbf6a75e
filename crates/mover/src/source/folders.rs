//! The folders that the first walk has found, until the second one, which sets their modes, finds them again.

use std::collections::HashMap;

use crate::metadata;
use crate::name::RelativeName;
use crate::tree::FoundEntry;

/// The most memory that they take, roughly. Further ones are only counted.
const MOST_BYTES: usize = 8 << 20;

/// The folders that were found and not yet found again, by their names at the target.
#[derive(Debug, Default)]
pub(super) struct FoundFolders {
    known: HashMap<RelativeName, KnownFolder>,
    bytes: usize,
    /// The number of those beyond the bound.
    others: u64,
}

/// A folder as it was found first.
#[derive(Debug)]
struct KnownFolder {
    found: FoundEntry,
    is_there: bool,
}

impl FoundFolders {
    /// Adds a folder that the first walk finds.
    pub(super) fn add(&mut self, found: &FoundEntry) {
        self.bytes += bytes(found);
        if self.bytes > MOST_BYTES {
            self.others += 1;
            return;
        }
        let known = KnownFolder { found: found.clone(), is_there: false };
        self.known.insert(found.offered.name.clone(), known);
    }

    /// Takes a folder that the second walk finds.
    pub(super) fn add_again(&mut self, found: &FoundEntry) {
        match self.known.get_mut(&found.offered.name) {
            Some(known) => known.is_there = true,
            None => self.others = self.others.saturating_sub(1),
        }
    }

    /// Returns the folders that the second walk has not found, and the number of those that are not known by name.
    pub(super) fn missing(self) -> (impl Iterator<Item = FoundEntry>, u64) {
        let missing = self.known.into_values().filter(|known| !known.is_there);
        (missing.map(|known| known.found), self.others)
    }
}

/// Returns the memory that a folder takes here, about.
fn bytes(found: &FoundEntry) -> usize {
    let names = 3 * found.offered.name.as_bytes().len();
    names + metadata::bytes(&found.offered.metadata.attributes) + 2 * size_of::<FoundEntry>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{FileIdentity, Timestamp};
    use crate::metadata::Metadata;
    use crate::tree::SourcePlace;
    use crate::wire::{EntryKind, HardLink, OfferedEntry};

    fn folder(name: &str) -> FoundEntry {
        let name = RelativeName::parse(name.as_bytes()).expect("a name");
        let time = Timestamp { seconds: 0, nanos: 0 };
        let identity = FileIdentity { device: 0, inode: 0, size: 0, modified: time, changed: time };
        FoundEntry {
            offered: OfferedEntry {
                name: name.clone(),
                kind: EntryKind::Folder,
                mode: 0o755,
                modified: time,
                metadata: Metadata::default(),
                link: HardLink::Alone,
            },
            place: SourcePlace { tree: 0, inner: name, identity, names: 1, is_sparse: false },
            proven: None,
        }
    }

    #[test]
    fn folders_that_are_not_found_again_are_known_by_name_or_number() {
        let mut folders = FoundFolders::default();
        ["a", "b", "a"].iter().for_each(|name| folders.add(&folder(name)));
        ["a", "a"].iter().for_each(|name| folders.add_again(&folder(name)));
        let (missing, others) = folders.missing();
        let names: Vec<RelativeName> = missing.map(|found| found.offered.name).collect();
        assert_eq!((names, others), (vec![folder("b").offered.name], 0));
    }

    #[test]
    fn only_folders_within_the_bound_are_known_and_all_are_counted() {
        let mut folders = FoundFolders::default();
        let long = |number: u32| folder(&format!("{number}/{}", "x/".repeat(1_000) + "x"));
        (0..9_000).for_each(|number| folders.add(&long(number)));
        let known = folders.known.len();
        assert!(known > 100 && known * 6_000 < MOST_BYTES, "{known}");
        (1..9_000).for_each(|number| folders.add_again(&long(number)));
        let (missing, others) = folders.missing();
        assert_eq!((missing.count(), others), (1, 0));
    }
}
