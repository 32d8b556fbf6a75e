//! Hands on the entries of a tree, in the order of the walk.

use super::ahead::Ahead;
use super::portion::Seen;
use super::{Tree, Visitor};
use crate::name::RelativeName;
use crate::wire::{Failure, Operation};

/// A walk under way.
pub(super) struct Walk<'a> {
    pub(super) tree: &'a Tree,
    pub(super) only_folders: bool,
    pub(super) visitor: &'a mut dyn Visitor,
}

impl Walk<'_> {
    /// Takes all that is to be walked.
    pub(super) fn all(&mut self) {
        let tree = self.tree;
        match &tree.only {
            Some(names) => self.named(names),
            None => self.all_from(&RelativeName::root()),
        };
    }

    /// Takes an entry and all that is below it. Returns false to end the walk.
    pub(super) fn all_from(&mut self, start: &RelativeName) -> bool {
        match self.tree.look(start) {
            Ok(found) if found.is_folder() => self.visitor.found(found) && self.all_in(start),
            Ok(found) => self.only_folders || self.visitor.found(found),
            Err(failure) => self.fail(start, failure),
        }
    }

    /// Takes all that is below a folder, which was taken. The folder that was found last is read first: a tree is gone
    /// through to its ends, so that few folders wait to be read. Returns false to end the walk.
    pub(super) fn all_in(&mut self, folder: &RelativeName) -> bool {
        let ahead = Ahead::new(self.tree, self.only_folders);
        ahead.push(folder.clone());
        // This ends, because each folder of the tree is read once.
        let mut entries = std::iter::from_fn(|| ahead.next_portion()).flatten();
        ahead.beside(|| entries.all(|seen| self.take(seen)))
    }

    /// Takes an entry of a folder. Returns false to end the walk.
    fn take(&mut self, seen: Seen) -> bool {
        match seen {
            Seen::Found(found) if found.is_folder() || !self.only_folders => self.visitor.found(*found),
            Seen::Found(_) => true,
            Seen::Failed(inner, failure) => self.fail(&inner, failure),
            Seen::Unseen { inner, is_folder } => self.look(&inner, is_folder),
        }
    }

    /// Looks at an entry of which only the name is known, and whether it is a folder, and takes it.
    fn look(&mut self, inner: &RelativeName, was_folder: bool) -> bool {
        match self.tree.look(inner) {
            Ok(found) if found.is_folder() != was_folder => {
                self.fail(inner, Failure::plain(Operation::Changed))
            }
            Ok(found) if was_folder || !self.only_folders => self.visitor.found(found),
            Ok(_) => true,
            Err(failure) => self.fail(inner, failure),
        }
    }

    /// Names an entry that failed, unless only folders are walked: it is named already, or the visitor misses it.
    fn fail(&mut self, inner: &RelativeName, failure: Failure) -> bool {
        let name = self.tree.target.join(inner.as_bytes()).unwrap_or_default();
        self.only_folders || self.visitor.failed(name, failure)
    }
}
