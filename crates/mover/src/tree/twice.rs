//! Entries of several trees that are to have one name at the target: the first one is copied.

use super::{FoundEntry, Tree, Visitor};
use crate::beneath::LastFolder;
use crate::name::RelativeName;
use crate::wire::{Failure, Operation};

/// Walks all entries of the trees; with `only_folders`, only their folders. Folders that are to have one name are merged: the
/// visitor gets each. Of other entries with one name it gets the first one, and the others fail, unless they are the same file or
/// only folders are walked.
pub(crate) fn walk_all(trees: &[Tree], only_folders: bool, visitor: &mut dyn Visitor) {
    let mut once = OncePerName { trees, only_folders, visitor };
    trees.iter().for_each(|tree| tree.walk(only_folders, &mut once));
}

/// Hands on the first entry of each name, and all folders that are merged.
struct OncePerName<'a> {
    trees: &'a [Tree],
    only_folders: bool,
    visitor: &'a mut dyn Visitor,
}

impl Visitor for OncePerName<'_> {
    fn found(&mut self, entry: FoundEntry) -> bool {
        match name_use(self.trees, &entry) {
            NameUse::Free => self.visitor.found(entry),
            NameUse::Taken if !self.only_folders => {
                self.visitor.failed(entry.offered.name, Failure::plain(Operation::NameTaken))
            }
            NameUse::Same | NameUse::Taken => true,
        }
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        self.visitor.failed(name, failure)
    }
}

/// The entry that earlier trees have under the name of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameUse {
    /// Nothing, or a folder where the entry is one too: folders are merged.
    Free,
    /// The same file, which is copied by that name already.
    Same,
    /// Another entry, which is copied.
    Taken,
}

/// Returns what the earlier trees have under the name of an entry.
fn name_use(trees: &[Tree], entry: &FoundEntry) -> NameUse {
    let mut uses = trees[..entry.place.tree].iter().map(|tree| tree.name_use(entry));
    uses.find(|of| *of != NameUse::Free).unwrap_or(NameUse::Free)
}

impl Tree {
    /// Returns what this tree has under the name of an entry. Anything above it that is not a folder counts as another
    /// entry.
    fn name_use(&self, entry: &FoundEntry) -> NameUse {
        let Some(inner) = entry.offered.name.below(&self.target) else { return NameUse::Free };
        if self.has_none(&inner) {
            return NameUse::Free;
        }
        let mut way: Vec<RelativeName> = inner.upwards().collect();
        while let Some(name) = way.pop() {
            let Ok(other) = self.look(&name) else { return NameUse::Free };
            let is_folder = other.is_folder();
            if name != RelativeName::root() && self.ignore.ignores(&name, is_folder) {
                return NameUse::Free;
            }
            if !is_folder {
                let is_same = other.place.identity.inode() == entry.place.identity.inode();
                return if is_same { NameUse::Same } else { NameUse::Taken };
            }
        }
        if entry.is_folder() { NameUse::Free } else { NameUse::Taken }
    }

    /// Returns true if the tree has neither the entry `inner` nor anything but folders above it. For most entries this one look
    /// is enough.
    fn has_none(&self, inner: &RelativeName) -> bool {
        let name = self.start.join(inner.as_bytes());
        name.is_none_or(|name| matches!(self.root.stat(&name, &mut LastFolder::default()), Ok(None)))
    }
}
