//! Folders whose entries need no look, because enough is known of the folder.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::name::RelativeName;

/// The largest number of folders that are known. The source offers what is in a folder soon after it, and a name has up to 2,048.
const MOST: usize = 2_560;

/// The folders that were added last.
#[derive(Debug, Default)]
pub(super) struct KnownFolders(Mutex<HashSet<RelativeName>>);

impl KnownFolders {
    /// Adds a folder.
    pub(super) fn add(&self, folder: &RelativeName) {
        let mut all = self.0.lock();
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(folder.clone());
    }

    /// Returns true if a folder is one of them.
    pub(super) fn has(&self, folder: &RelativeName) -> bool {
        self.0.lock().contains(folder)
    }

    /// Returns true if an entry lies in one of them.
    pub(super) fn hold(&self, name: &RelativeName) -> bool {
        name.split().is_some_and(|(folder, _)| self.has(&folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_folders_is_known_and_only_their_direct_entries() {
        let name = |text: &str| RelativeName::parse(text.as_bytes()).expect("a name");
        let known = KnownFolders::default();
        known.add(&name("a/b"));
        let held = ["a/b/c", "a/b", "a/b/c/d", "a/x", ""].map(|text| known.hold(&name(text)));
        assert_eq!(held, [true, false, false, false, false]);
        (0..MOST).for_each(|number| known.add(&name(&number.to_string())));
        assert!(!known.hold(&name("a/b/c")) && known.0.lock().len() <= MOST);
    }
}
