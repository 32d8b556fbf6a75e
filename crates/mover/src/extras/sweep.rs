//! The target's end: finds extras, and removes them.
//!
//! Every folder is opened beneath the target's folder without following a symbolic link, and every entry is removed by its
//! name in such an open folder (unlinkat(2)). What lies in an extra folder is reached without leaving its mount. So nothing
//! else can be hit, whatever is renamed meanwhile.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::FolderNames;
use super::forms::{ignores_case, ignores_form};
use crate::beneath::{LastFolder, Root};
use crate::name::RelativeName;
use crate::select::IgnoreRules;
use crate::target::{allows, is_held, kind};
use crate::wire::{Failure, Operation, Swept};

/// Finds what only the target has.
pub(crate) struct Sweeper<'a> {
    /// The target's folder.
    pub(crate) root: &'a Root,
    /// The first components of the names that the source may use.
    pub(crate) names: &'a BTreeSet<Vec<u8>>,
    /// The entries that are ignored.
    pub(crate) ignore: &'a IgnoreRules,
    /// True to remove nothing.
    pub(crate) only_looks: bool,
    /// True if nothing may be created either.
    pub(crate) is_dry_run: bool,
}

/// Hears of each extra before it is removed. An error keeps it.
type OnExtra<'a> = dyn FnMut(&RelativeName, FileType) -> Result<(), Failure> + 'a;

/// An entry of a folder.
type Entry = (RelativeName, FileType);

impl Sweeper<'_> {
    /// Finds the extras of a folder, with all that is below them, and removes them.
    pub(crate) fn sweep(&self, folder: &mut FolderNames, on_extra: &mut OnExtra<'_>) -> Swept {
        folder.sort();
        let mut swept = Swept::default();
        if let Err(failure) = self.sweep_into(folder, on_extra, &mut swept) {
            swept.fail(folder.folder.clone(), failure);
        }
        swept
    }

    fn sweep_into(
        &self,
        folder: &FolderNames,
        on_extra: &mut OnExtra<'_>,
        swept: &mut Swept,
    ) -> Result<(), Failure> {
        if !allows(self.names, &folder.folder) {
            return Err(Failure::plain(Operation::Name));
        }
        let base = match self.root.below(&folder.folder) {
            // In a dry run, a folder may be missing that a copy would create.
            Err(error) if self.only_looks && error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(|error| Failure::of(Operation::Open, &error))?,
        };
        if self.is_left_alone(&folder.folder) {
            return Err(Failure::plain(Operation::Name));
        }
        let extras = self.extras(&base, folder)?;
        let mut removal = ExtraRemoval {
            sweeper: self,
            base: &base,
            above: &folder.folder,
            last: LastFolder::default(),
            kept: HashSet::new(),
            on_extra,
            swept,
        };
        extras.into_iter().for_each(|extra| removal.remove_all(extra));
        Ok(())
    }

    /// Returns the entries of the folder `base` that the source has not, and that are not left alone.
    fn extras(&self, base: &Root, folder: &FolderNames) -> Result<Vec<Entry>, Failure> {
        let entries = entries(base, &RelativeName::root())?;
        let has_one_case = ignores_case(base, entries.iter().map(|(name, _)| name));
        let is_extra = |(name, kind): &Entry| {
            folder.lacks(name.as_bytes()) && !self.is_kept(&folder.folder, name, *kind)
        };
        let extras: Vec<Entry> = entries.into_iter().filter(is_extra).collect();
        match !extras.is_empty() && (has_one_case || self.has_one_form(base, &extras)?) {
            // The entry could be the source's own, under a name in other letters.
            true => Err(Failure::plain(Operation::RemoveWithoutCase)),
            false => Ok(extras),
        }
    }

    /// Returns true if names of extras could be other forms of names that the source has, for the file system. A dry run, which
    /// makes nothing, does not know.
    fn has_one_form(&self, base: &Root, extras: &[Entry]) -> Result<bool, Failure> {
        let may_have = |(name, _): &Entry| {
            let text = std::str::from_utf8(name.as_bytes());
            text.is_ok_and(|text| !text.is_ascii())
        };
        if self.is_dry_run || !extras.iter().any(may_have) {
            return Ok(false);
        }
        ignores_form(base.as_fd()).map_err(|error| Failure::of(Operation::Remove, &error))
    }

    /// Returns true if the entry `inner` below the folder `above` stays, because it is left alone or because it is not the
    /// source's to remove.
    fn is_kept(&self, above: &RelativeName, inner: &RelativeName, kind: FileType) -> bool {
        let Some(name) = above.join(inner.as_bytes()) else { return true };
        !allows(self.names, &name)
            || self.ignore.ignores(&self.below_source(&name), kind == FileType::Directory)
    }

    /// Returns true if a folder is ignored, or lies in an ignored one: no honest source lists its entries.
    fn is_left_alone(&self, folder: &RelativeName) -> bool {
        self.below_source(folder)
            .upwards()
            .any(|name| name != RelativeName::root() && self.ignore.ignores(&name, true))
    }

    /// Converts a name below the target's folder to the name below the source folder, to which the rules apply.
    fn below_source(&self, name: &RelativeName) -> RelativeName {
        match self.names.contains(&b""[..]) {
            true => name.clone(),
            false => name.without_first(),
        }
    }
}

/// The removal of the extras of one folder.
struct ExtraRemoval<'a, 'b> {
    sweeper: &'a Sweeper<'a>,
    /// The folder.
    base: &'a Root,
    /// Its name below the target's folder.
    above: &'a RelativeName,
    /// The folder of the entry that was removed last.
    last: LastFolder,
    /// Folders in which something stays. They stay too.
    kept: HashSet<RelativeName>,
    on_extra: &'a mut OnExtra<'b>,
    swept: &'a mut Swept,
}

/// A step of a removal.
enum Step {
    /// Remove an entry. The content of a folder comes first.
    Enter(Entry),
    /// Remove a folder that is empty now.
    Leave(RelativeName),
}

impl ExtraRemoval<'_, '_> {
    /// Removes an entry of the folder with all that is below it.
    fn remove_all(&mut self, entry: Entry) {
        let mut steps = vec![Step::Enter(entry)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter((inner, FileType::Directory)) => match self.entries(&inner) {
                    Ok(entries) => {
                        steps.push(Step::Leave(inner));
                        steps.extend(entries.into_iter().filter(|entry| self.goes(entry)).map(Step::Enter));
                    }
                    Err(failure) => self.fail(&inner, failure),
                },
                Step::Enter((inner, kind)) => self.remove(&inner, kind),
                Step::Leave(inner) if self.kept.remove(&inner) => self.keep(&inner),
                Step::Leave(inner) => self.remove(&inner, FileType::Directory),
            }
        }
    }

    /// Returns the entries of an extra folder. Returns EBUSY for the work folder of another running copy, which holds
    /// the data that it has received.
    fn entries(&self, inner: &RelativeName) -> Result<Vec<Entry>, Failure> {
        match is_held(self.base, inner) {
            true => Err(Failure::of(Operation::Remove, &Errno::BUSY.into())),
            false => entries(self.base, inner),
        }
    }

    /// Returns true if an entry of an extra folder goes with it.
    fn goes(&mut self, (inner, kind): &Entry) -> bool {
        let stays = self.sweeper.is_kept(self.above, inner, *kind);
        if stays {
            self.keep(inner);
        }
        !stays
    }

    fn remove(&mut self, inner: &RelativeName, kind: FileType) {
        match self.try_remove(inner, kind) {
            Ok(()) => self.swept.extras += 1,
            Err(failure) => self.fail(inner, failure),
        }
    }

    fn try_remove(&mut self, inner: &RelativeName, kind: FileType) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::of(Operation::Remove, &error);
        let name = self.above.join(inner.as_bytes()).ok_or(Failure::plain(Operation::Name))?;
        (self.on_extra)(&name, kind)?;
        if self.sweeper.only_looks {
            return Ok(());
        }
        let (folder, leaf) = inner.split().ok_or(Failure::plain(Operation::Name))?;
        let folder = self.last.get(folder, |folder| self.base.folder_of_mount(folder)).map_err(failed)?;
        let flags = if kind == FileType::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match rustix::fs::unlinkat(folder, leaf, flags) {
            // Another program has removed it.
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed(error.into())),
        }
    }

    fn fail(&mut self, inner: &RelativeName, failure: Failure) {
        self.swept.fail(self.above.join(inner.as_bytes()).unwrap_or_default(), failure);
        self.keep(inner);
    }

    /// Notes that an entry stays, and so does the folder that it is in.
    fn keep(&mut self, inner: &RelativeName) {
        self.kept.extend(inner.split().map(|(folder, _)| folder));
    }
}

/// Returns the entries of the folder `inner` below `base`. All are read before any is removed: a file system may skip
/// entries of a folder that changes.
fn entries(base: &Root, inner: &RelativeName) -> Result<Vec<Entry>, Failure> {
    let failed = |error: io::Error| Failure::of(Operation::ReadFolder, &error);
    let folder = base.folder_of_mount(inner).map_err(failed)?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&folder).map_err(|error| failed(error.into()))? {
        let entry = entry.map_err(|error| failed(error.into()))?;
        let leaf = entry.file_name().to_bytes();
        if matches!(leaf, b"." | b"..") {
            continue;
        }
        let name = inner.join(leaf).ok_or(Failure::plain(Operation::Name))?;
        let seen = match entry.file_type() {
            FileType::Unknown => {
                rustix::fs::statat(&folder, leaf, AtFlags::SYMLINK_NOFOLLOW).map(|seen| kind(&seen))
            }
            known => Ok(known),
        };
        match seen {
            Err(Errno::NOENT) => {}
            seen => found.push((name, seen.map_err(|error| failed(error.into()))?)),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
