//! Walks the entries that are named, and the folders on the way to them.

use super::walk::Walk;
use crate::name::RelativeName;
use crate::select::NameList;

impl Walk<'_> {
    /// Takes the named entries with all that is below them. Takes each folder on the way before, once. Returns false to end
    /// the walk.
    pub(super) fn named(&mut self, names: &NameList) -> bool {
        // The folders on the way to the name before. The first one is that of the tree.
        let mut way = vec![RelativeName::root()];
        let mut goes_on = self.take_folder(&way[0]);
        for name in names.iter() {
            let folders = folders(name);
            let known = way.iter().zip(&folders).take_while(|(one, other)| one == other).count();
            if !goes_on || self.is_left_out(name, &folders) {
                continue;
            }
            goes_on = folders[known..].iter().all(|folder| self.take_folder(folder));
            // The folder of the tree was taken.
            goes_on =
                goes_on && if name.as_bytes().is_empty() { self.all_in(name) } else { self.all_from(name) };
            way = folders;
        }
        goes_on
    }

    /// Takes a folder on the way, without what is in it. If there is none, the entries below it are named as failed.
    fn take_folder(&mut self, folder: &RelativeName) -> bool {
        match self.tree.look(folder) {
            Ok(found) if found.is_folder() => self.visitor.found(found),
            _ => true,
        }
    }

    /// Returns true if the name or a folder on the way to it is left alone.
    fn is_left_out(&self, name: &RelativeName, folders: &[RelativeName]) -> bool {
        let is_folder = || self.tree.look(name).is_ok_and(|found| found.is_folder());
        let ignore = &self.tree.ignore;
        folders.iter().skip(1).any(|folder| ignore.ignores(folder, true))
            || (!name.as_bytes().is_empty() && ignore.ignores(name, is_folder()))
    }
}

/// Returns the folders on the way to a name, the folder of the tree first.
fn folders(name: &RelativeName) -> Vec<RelativeName> {
    let mut folders: Vec<RelativeName> = name.upwards().skip(1).collect();
    folders.reverse();
    folders
}
