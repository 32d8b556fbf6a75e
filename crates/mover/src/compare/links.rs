//! Files with several names in a comparison.

use std::collections::HashMap;

use crate::identity::Inode;
use crate::name::RelativeName;
use crate::tree::FoundEntry;
use crate::wire::HardLink;

/// The first names of files that have several, until all their names are found.
#[derive(Debug, Default)]
pub(super) struct FirstNames(HashMap<Inode, FirstName>);

/// The name of a file with several names that was found first.
#[derive(Debug)]
struct FirstName {
    name: RelativeName,
    /// The number of names that were found.
    found: u64,
}

impl FirstNames {
    /// Makes an entry a link to the first one of the same file, if there was one before. Only then is it compared as a link.
    pub(super) fn sort(&mut self, entry: &mut FoundEntry) {
        if entry.offered.link != HardLink::First {
            return;
        }
        let key = entry.place.identity.inode();
        let Some(first) = self.0.get_mut(&key) else {
            self.0.insert(key, FirstName { name: entry.offered.name.clone(), found: 1 });
            return;
        };
        first.found += 1;
        entry.offered.link = HardLink::To(first.name.clone());
        if first.found >= entry.place.names {
            self.0.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{FileIdentity, Timestamp};
    use crate::metadata::Metadata;
    use crate::tree::SourcePlace;
    use crate::wire::{EntryKind, OfferedEntry};

    fn entry(name: &str, inode: u64, names: u64) -> FoundEntry {
        let name = RelativeName::parse(name.as_bytes()).expect("a name");
        let then = Timestamp { seconds: 1, nanos: 0 };
        let identity = FileIdentity { device: 1, inode, size: 0, modified: then, changed: then };
        let link = if names > 1 { HardLink::First } else { HardLink::Alone };
        FoundEntry {
            offered: OfferedEntry {
                name: name.clone(),
                kind: EntryKind::File { size: 0 },
                mode: 0,
                modified: then,
                metadata: Metadata::default(),
                link,
            },
            place: SourcePlace { tree: 0, inner: name, identity, names, is_sparse: false },
            proven: None,
        }
    }

    #[test]
    fn a_further_name_is_one_of_the_first() {
        let mut names = FirstNames::default();
        let mut sorted = |name, inode, number| {
            let mut entry = entry(name, inode, number);
            names.sort(&mut entry);
            entry.offered.link
        };
        let to = |name: &str| HardLink::To(RelativeName::parse(name.as_bytes()).expect("a name"));
        assert_eq!([sorted("a", 1, 1), sorted("b", 1, 1)], [HardLink::Alone, HardLink::Alone]);
        assert_eq!([sorted("a", 2, 3), sorted("d/b", 2, 3)], [HardLink::First, to("a")]);
        assert_eq!([sorted("c", 3, 2), sorted("z", 2, 3)], [HardLink::First, to("a")]);
        assert_eq!(names.0.len(), 1, "all names of the first one were found");
    }
}
