//! Entries of several trees that are to have one name at the target: the first one is copied.

use super::{FoundEntry, Tree};
use crate::name::RelativeName;
use crate::wire::EntryKind;

/// Returns true if a tree before that of an entry has another entry for its name. Folders become one, and so does a file that is
/// named twice.
pub(crate) fn is_taken(trees: &[Tree], entry: &FoundEntry) -> bool {
    // Files that are made as they are sent have no trees.
    let before = trees.get(..entry.place.tree).unwrap_or_default();
    before.iter().any(|tree| tree.has_other(entry))
}

impl Tree {
    /// Returns true if this tree has another entry for the name of one, or something that is no folder above it.
    fn has_other(&self, entry: &FoundEntry) -> bool {
        let Some(inner) = entry.offered.name.below(&self.target) else { return false };
        for name in way_to(inner) {
            let Ok(other) = self.look(&name) else { return false };
            let is_folder = other.offered.kind == EntryKind::Folder;
            if name != RelativeName::root() && self.ignore.ignores(&name, is_folder) {
                return false;
            }
            if !is_folder {
                return inode(&other) != inode(entry);
            }
        }
        entry.offered.kind != EntryKind::Folder
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
