//! Entries of several trees that are to have one name at the target: the first one is copied.

use super::{FoundEntry, Tree};
use crate::beneath::LastFolder;
use crate::name::RelativeName;
use crate::wire::EntryKind;

/// What trees before that of an entry have for its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameUse {
    /// Nothing, or a folder as it is one: folders become one.
    Free,
    /// The same file, which is copied by that name already.
    Same,
    /// Another entry, which is copied.
    Taken,
}

/// Returns what the trees before that of an entry have for its name.
pub(crate) fn name_use(trees: &[Tree], entry: &FoundEntry) -> NameUse {
    // Files that are made as they are sent have no trees.
    let before = trees.get(..entry.place.tree).unwrap_or_default();
    let mut uses = before.iter().map(|tree| tree.name_use(entry));
    uses.find(|of| *of != NameUse::Free).unwrap_or(NameUse::Free)
}

impl Tree {
    /// Returns what this tree has for the name of an entry. What is no folder and lies above it is another entry.
    fn name_use(&self, entry: &FoundEntry) -> NameUse {
        let Some(inner) = entry.offered.name.below(&self.target) else { return NameUse::Free };
        if self.has_none(&inner) {
            return NameUse::Free;
        }
        for name in way_to(inner) {
            let Ok(other) = self.look(&name) else { return NameUse::Free };
            let is_folder = other.offered.kind == EntryKind::Folder;
            if name != RelativeName::root() && self.ignore.ignores(&name, is_folder) {
                return NameUse::Free;
            }
            if !is_folder {
                return if inode(&other) == inode(entry) { NameUse::Same } else { NameUse::Taken };
            }
        }
        if entry.offered.kind == EntryKind::Folder { NameUse::Free } else { NameUse::Taken }
    }

    /// Returns true if the tree has neither the entry `inner` nor anything but folders above it. For most entries this one look
    /// is enough.
    fn has_none(&self, inner: &RelativeName) -> bool {
        let name = self.start.join(inner.as_bytes());
        name.is_none_or(|name| matches!(self.root.stat(&name, &mut LastFolder::default()), Ok(None)))
    }
}

/// Returns the folders above an entry, the first one first, and the entry.
fn way_to(inner: RelativeName) -> Vec<RelativeName> {
    let above = |name: &RelativeName| name.split().map(|(folder, _)| folder);
    let mut way: Vec<RelativeName> = std::iter::successors(Some(inner), above).collect();
    way.reverse();
    way
}

fn inode(entry: &FoundEntry) -> (u64, u64) {
    (entry.place.identity.device, entry.place.identity.inode)
}
