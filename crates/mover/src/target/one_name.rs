//! Names that the target's file system treats as one: names that differ in case or in Unicode normalisation, and the
//! short names of vfat. The second of two such entries would replace the first one. The list of the folder shows which
//! name an entry has.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use super::Receiving;
use super::known_folders::KnownFolders;
use super::listing::LastListing;
use super::work_folder::WorkFolder;
use crate::beneath::LastFolder;
use crate::extras::{ignores_form, is_in_other_case};
use crate::name::RelativeName;

/// The known properties of names in the target's file system.
#[derive(Debug, Default)]
pub(super) struct NameForms {
    /// Folders that are case-sensitive.
    apart: KnownFolders,
    /// Folders that have their own names, as have those above them.
    own: KnownFolders,
    /// True if composed and decomposed letters are the same.
    forms_are_one: OnceLock<bool>,
    listing: LastListing,
}

impl NameForms {
    /// Returns true if it is known that an entry with this name has no other one.
    fn tell_apart(&self, name: &RelativeName) -> bool {
        let has_no_other_form = name.as_bytes().is_ascii() || self.forms_are_one.get() == Some(&false);
        has_no_other_form && self.apart.hold(name)
    }

    /// Returns true if an entry that is there under this name, which is `leaf` in its folder, may have another one.
    fn may_be_one(
        &self,
        name: &RelativeName,
        folder: BorrowedFd<'_>,
        leaf: &[u8],
        work: &WorkFolder,
    ) -> bool {
        if !leaf.is_ascii() && self.has_one_form(work) {
            return true;
        }
        if self.apart.hold(name) {
            return false;
        }
        let has_other = is_in_other_case(folder, leaf);
        // Some file systems know letters of ASCII alone.
        if has_other == Some(false) && leaf.iter().any(u8::is_ascii_alphabetic) {
            name.split().iter().for_each(|(above, _)| self.apart.add(above));
        }
        has_other == Some(true)
    }

    /// Returns true if composed and decomposed letters are the same. Creates a probe file in the work folder, which is
    /// in the same file system. Where none can be created, assumes that they are the same.
    fn has_one_form(&self, work: &WorkFolder) -> bool {
        *self.forms_are_one.get_or_init(|| ignores_form(work.as_fd()).unwrap_or(true))
    }
}

impl Receiving {
    /// Opens a folder, which is made if it is missing, with those above it.
    ///
    /// # Errors
    /// Returns ENOTUNIQ if one of them exists under another name that the file system treats as the same.
    pub(super) fn made_folder(&self, folder: &RelativeName) -> io::Result<OwnedFd> {
        self.check_folder(folder)?;
        self.root.made_folder(folder)
    }

    /// Checks that what is there under the name of an offered entry has this very name, as have the folders above it.
    ///
    /// # Errors
    /// Returns ENOTUNIQ if it has another name that the file system treats as the same.
    pub(super) fn check_name(&self, name: &RelativeName, last: &mut LastFolder) -> io::Result<()> {
        let Some((folder, _)) = name.split() else { return Ok(()) };
        self.check_folder(&folder)?;
        self.check_entry(name, last)?;
        Ok(())
    }

    /// Checks the same of a folder and of those above it, each once. Nothing may be there.
    pub(super) fn check_folder(&self, folder: &RelativeName) -> io::Result<()> {
        let is_unknown = |name: &RelativeName| *name != RelativeName::root() && !self.forms.own.has(name);
        let mut unknown: Vec<RelativeName> = folder.upwards().take_while(is_unknown).collect();
        while let Some(name) = unknown.pop() {
            if !self.check_entry(&name, &mut LastFolder::default())? {
                // The folders below it do not exist either.
                return Ok(());
            }
            self.forms.own.add(&name);
        }
        Ok(())
    }

    /// Checks the same of an entry alone. Returns false if nothing is there, unless another name for it is out of question.
    fn check_entry(&self, name: &RelativeName, last: &mut LastFolder) -> io::Result<bool> {
        if self.forms.tell_apart(name) {
            return Ok(true);
        }
        let is_there = self.root.stat(name, last)?.is_some();
        if is_there && let Some((folder, leaf)) = name.split() {
            let folder = last.get(folder, |folder| self.root.folder(folder))?;
            self.check_leaf(name, folder, leaf)?;
        }
        Ok(is_there)
    }

    /// Checks the same of the entry `leaf` of an open folder, which is known to have its own name. Nothing may be there.
    pub(super) fn check_leaf(
        &self,
        name: &RelativeName,
        folder: BorrowedFd<'_>,
        leaf: &[u8],
    ) -> io::Result<()> {
        if self.forms.tell_apart(name) {
            return Ok(());
        }
        // If nothing exists under this name, nothing exists under it in other letters either.
        let is_there = statat(folder, leaf, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let may_be_one = is_there && self.forms.may_be_one(name, folder, leaf, &self.work);
        match may_be_one && !self.forms.listing.has(name, folder, leaf)? {
            true => Err(Errno::NOTUNIQ.into()),
            false => Ok(()),
        }
    }

    /// Gives an entry of the work folder its name at the target, which is `leaf` in its folder, in place of what may be there under
    /// this very name. The folder is known to have its own name ([`Receiving::made_folder`]).
    ///
    /// # Errors
    /// Returns ENOTUNIQ if an entry exists under another name that the file system treats as the same.
    pub(super) fn place(
        &self,
        own: &[u8],
        name: &RelativeName,
        folder: BorrowedFd<'_>,
        leaf: &[u8],
    ) -> io::Result<()> {
        let is_apart = self.forms.tell_apart(name);
        if !is_apart && self.work.put_beside(own, folder, leaf).is_ok() {
            return Ok(());
        }
        // Something is there, or the file system cannot look and rename in one call.
        self.check_leaf(name, folder, leaf)?;
        self.work.put_in_place(own, folder, leaf)?;
        if !is_apart {
            // The entry that exists now shows it, so that others in the folder need no look.
            self.forms.may_be_one(name, folder, leaf, &self.work);
        }
        Ok(())
    }
}
