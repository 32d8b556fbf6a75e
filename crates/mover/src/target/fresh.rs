//! Folders that this copy has made, in which nothing can be in the place of what is offered.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::name::RelativeName;

/// The largest number of folders that are known. The source offers what is in a folder soon after it.
const MOST: usize = 1_024;

/// The folders that this copy has made last. What is in them, it has put there, or another program meanwhile, which is replaced as
/// what comes after the look at a name.
#[derive(Debug, Default)]
pub(super) struct FreshFolders(Mutex<HashSet<RelativeName>>);

impl FreshFolders {
    /// Adds a folder that this copy has just made.
    pub(super) fn add(&self, folder: &RelativeName) {
        let mut all = self.0.lock();
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(folder.clone());
    }

    /// Returns true if an entry lies in one of them, so that the file system need not be asked whether it is there.
    pub(super) fn hold(&self, name: &RelativeName) -> bool {
        name.split().is_some_and(|(folder, _)| self.0.lock().contains(&folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_folders_are_known_and_only_what_is_in_them_itself() {
        let name = |text: &str| RelativeName::parse(text.as_bytes()).expect("a name");
        let fresh = FreshFolders::default();
        fresh.add(&name("a/b"));
        let held = ["a/b/c", "a/b", "a/b/c/d", "a/x", ""].map(|text| fresh.hold(&name(text)));
        assert_eq!(held, [true, false, false, false, false]);
        (0..MOST).for_each(|number| fresh.add(&name(&number.to_string())));
        assert!(!fresh.hold(&name("a/b/c")) && fresh.0.lock().len() <= MOST);
    }
}
