//! The source's end: what its folders have.

use std::io;

use rustix::io::Errno;

use super::{FolderNames, MOST_FOLDERS, MOST_NAMES, NameDigest};
use crate::name::RelativeName;
use crate::tree::{FoundEntry, Tree, Visitor};
use crate::wire::{EntryKind, Failure, Operation};

/// The receiver of what folders have. Each function returns false to end the walk.
pub(crate) trait NameTaker {
    /// Takes what folders have, as much as fits a message.
    fn take(&mut self, folders: Vec<FolderNames>) -> bool;

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool;
}

/// Hands over what the folders of the trees have. A folder has all its names: also those of entries that are left alone, or
/// that are not copied. Those that are left alone are not walked. A folder that cannot be read is left out, so that its
/// extras stay.
pub(crate) fn list_names(trees: &[Tree], taker: &mut dyn NameTaker) {
    let mut listing = Listing { trees, taker, folders: Vec::new(), names: 0, goes_on: true };
    for tree in trees {
        tree.walk(true, &mut listing);
    }
    listing.hand_over();
}

struct Listing<'a> {
    trees: &'a [Tree],
    taker: &'a mut dyn NameTaker,
    /// What was not yet handed over.
    folders: Vec<FolderNames>,
    /// The number of names in it.
    names: usize,
    goes_on: bool,
}

impl Listing<'_> {
    fn add(&mut self, part: FolderNames) {
        if self.names + part.names.len() > MOST_NAMES || self.folders.len() >= MOST_FOLDERS {
            self.hand_over();
        }
        self.names += part.names.len();
        self.folders.push(part);
    }

    fn hand_over(&mut self) {
        if self.goes_on && !self.folders.is_empty() {
            self.goes_on = self.taker.take(std::mem::take(&mut self.folders));
            self.names = 0;
        }
    }
}

impl Visitor for Listing<'_> {
    fn found(&mut self, entry: FoundEntry) -> bool {
        if entry.offered.kind == EntryKind::Folder {
            let name = entry.offered.name;
            match names(&self.trees[entry.place.tree], &entry.place.inner) {
                Ok(names) => FolderNames::parts(&name, names).into_iter().for_each(|part| self.add(part)),
                Err(error) => {
                    let failure = Failure::of(Operation::ReadFolder, &error);
                    self.goes_on = self.goes_on && self.taker.failed(name, failure);
                }
            }
        }
        self.goes_on
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        self.goes_on = self.goes_on && self.taker.failed(name, failure);
        self.goes_on
    }
}

fn names(tree: &Tree, folder: &RelativeName) -> io::Result<Vec<NameDigest>> {
    let (mut names, mut entries) = (Vec::new(), tree.entries(folder)?);
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(NameDigest::of(name));
        }
    }
    // A folder that is open and was removed reads as an empty one.
    match names.is_empty() && rustix::fs::fstat(entries.fd()?)?.st_nlink == 0 {
        true => Err(Errno::NOENT.into()),
        false => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use landspeed_record::CopyKeeping;

    use super::*;
    use crate::beneath::Root;

    #[derive(Default)]
    struct Heard(Vec<FolderNames>);

    impl NameTaker for Heard {
        fn take(&mut self, folders: Vec<FolderNames>) -> bool {
            self.0.extend(folders);
            true
        }

        fn failed(&mut self, _: RelativeName, _: Failure) -> bool {
            true
        }
    }

    /// Otherwise all that the target has would be what only the target has.
    #[test]
    fn a_source_folder_that_was_removed_is_no_empty_one() {
        let all = tempfile::tempdir().unwrap();
        for is_removed in [false, true] {
            let path = all.path().join("source");
            std::fs::create_dir_all(&path).unwrap();
            let root = Root::open(&path).unwrap();
            let (start, target, keeping) =
                (RelativeName::root(), RelativeName::root(), CopyKeeping::default());
            let tree = Tree { number: 0, root, start, target, keeping, ignore: Arc::default(), only: None };
            if is_removed {
                std::fs::remove_dir(&path).unwrap();
            }
            let mut heard = Heard::default();
            list_names(&[tree], &mut heard);
            assert_eq!(heard.0.is_empty(), is_removed, "{:?}", heard.0);
        }
    }
}
