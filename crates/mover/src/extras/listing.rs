//! The source's end: lists the entries of its folders.

use std::io;

use rustix::io::Errno;

use super::{FolderNames, MOST_FOLDERS, MOST_NAMES, NameDigest};
use crate::name::RelativeName;
use crate::tree::{FoundEntry, Tree, Visitor};
use crate::wire::{Failure, Operation};

/// The receiver of what folders have. Each function returns false to end the walk.
pub(crate) trait NameTaker {
    /// Takes what folders have, as much as fits a message.
    fn take(&mut self, folders: Vec<FolderNames>) -> bool;

    /// Takes the tree with this number, which is an empty folder, separately: all entries that the target has in its
    /// place are extras.
    fn take_empty(&mut self, _tree: usize, folder: Vec<FolderNames>) -> bool {
        self.take(folder)
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool;
}

/// Hands over the names in the folders of the trees. A folder's list has all names, also those of entries that are
/// ignored or not copied. Ignored folders are not walked. A folder that cannot be read is left out, so that its extras
/// stay.
pub(crate) fn list_names(trees: &[Tree], taker: &mut dyn NameTaker) {
    let mut listing = Listing { trees, taker, folders: Vec::new(), names: 0, goes_on: true };
    for tree in trees {
        tree.walk(true, &mut listing);
    }
    listing.hand_over();
}

/// The names of folders, as the walk of the trees finds them.
struct Listing<'a> {
    trees: &'a [Tree],
    taker: &'a mut dyn NameTaker,
    /// Names that were not yet handed over.
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

    fn add_empty(&mut self, tree: usize, folder: &RelativeName) {
        self.hand_over();
        if self.goes_on {
            self.goes_on = self.taker.take_empty(tree, FolderNames::parts(folder, Vec::new()));
        }
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
        if entry.is_folder() {
            let name = entry.offered.name;
            match names(&self.trees[entry.place.tree], &entry.place.inner) {
                Ok(names) if names.is_empty() && entry.place.inner == RelativeName::root() => {
                    self.add_empty(entry.place.tree, &name);
                }
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

    /// What was heard, and the numbers of the trees that are empty.
    #[derive(Default)]
    struct Heard(Vec<FolderNames>, Vec<usize>);

    impl NameTaker for Heard {
        fn take(&mut self, folders: Vec<FolderNames>) -> bool {
            self.0.extend(folders);
            true
        }

        fn take_empty(&mut self, tree: usize, folder: Vec<FolderNames>) -> bool {
            assert_eq!(folder.len(), 1, "{folder:?}");
            self.1.push(tree);
            self.take(folder)
        }

        fn failed(&mut self, _: RelativeName, _: Failure) -> bool {
            true
        }
    }

    fn tree(number: usize, path: &std::path::Path) -> Tree {
        let (root, target) =
            (Root::open(path).unwrap(), RelativeName::parse(number.to_string().as_bytes()).expect("a name"));
        let (start, keeping) = (RelativeName::root(), CopyKeeping::default());
        Tree { number, root, start, target, keeping, ignore: Arc::default(), only: None, walkers: 4 }
    }

    /// Otherwise every entry of the target would be an extra.
    #[test]
    fn a_source_folder_that_was_removed_is_no_empty_one() {
        let all = tempfile::tempdir().unwrap();
        for is_removed in [false, true] {
            let path = all.path().join("source");
            std::fs::create_dir_all(&path).unwrap();
            let tree = tree(0, &path);
            if is_removed {
                std::fs::remove_dir(&path).unwrap();
            }
            let mut heard = Heard::default();
            list_names(&[tree], &mut heard);
            assert_eq!(heard.0.is_empty(), is_removed, "{:?}", heard.0);
        }
    }

    /// An empty folder in a tree is as any other.
    #[test]
    fn a_tree_that_is_empty_comes_alone() {
        let [full, empty] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        std::fs::create_dir(full.path().join("inner")).unwrap();
        let trees = [tree(0, full.path()), tree(1, empty.path()), tree(2, full.path())];
        let mut heard = Heard::default();
        list_names(&trees, &mut heard);
        assert_eq!((heard.0.len(), heard.1), (5, vec![1]));
    }
}
