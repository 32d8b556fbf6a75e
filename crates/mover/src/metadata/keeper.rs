//! The metadata that one end keeps of entries: those that the user asked for, and that this process may set.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use landspeed_record::{CopyDifference, CopyKeeping, CopyKept};
use rustix::fs::{Mode, Stat};
use rustix::io::Errno;

use super::attributes::{CAPABILITY, kind, read};
use super::created::CreatedModes;
use super::kept_times::KeptTimes;
use super::losses::{EntryLosses, Losses};
use super::{AttributeRoom, Attributes, DESCRIPTORS, LostKind, MODE_BITS, Place, SPECIAL_BITS, bytes};
use crate::identity::{FileIdentity, Timestamp};
use crate::wire::{EntryKind, OfferedEntry};

/// Owner and group of an entry.
type Owner = (u32, u32);

/// The metadata that the target keeps, and those that were lost so far.
#[derive(Debug)]
pub(crate) struct Keeper {
    keeping: CopyKeeping,
    is_root: bool,
    /// The owner of what this process makes.
    own: Owner,
    created: CreatedModes,
    times: KeptTimes,
    losses: Losses,
    /// The room for attributes of files under way.
    pub(crate) room: AttributeRoom,
}

/// The metadata of an entry before the kept ones are set.
struct Before {
    owner: Owner,
    /// Its special bits, which stay where the owner is not kept.
    special: u32,
    /// The other bits of its mode.
    rights: u32,
    /// True if it has the mode that it is to have.
    has_mode: bool,
    attributes: Attributes,
}

impl Keeper {
    pub(crate) fn new(keeping: &CopyKeeping) -> Self {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Keeper {
            keeping: keeping.clone(),
            is_root: user.is_root(),
            own: (user.as_raw(), group.as_raw()),
            created: CreatedModes::default(),
            times: KeptTimes::default(),
            losses: Losses::default(),
            room: AttributeRoom::default(),
        }
    }

    /// Returns true if owners are kept: where this process is root. Set-ID bits and capabilities go with the owner, because they
    /// would lend the rights of another one.
    fn keeps_owner(&self) -> bool {
        self.is_root && self.keeping.has(CopyKept::Owner)
    }

    /// Returns true if device files may be made.
    pub(crate) fn makes_devices(&self) -> bool {
        self.is_root && self.keeping.devices
    }

    /// Returns true if an entry's time identifies its content, and is kept.
    pub(crate) fn keeps_times(&self) -> bool {
        self.keeping.has(CopyKept::Times)
    }

    /// Returns the mode with which a file is created: for this user alone until its own is set, or the one that it keeps if none
    /// is set. The kernel takes the user's umask off.
    pub(crate) fn file_mode(&self, offered: &OfferedEntry) -> Mode {
        let open = if self.keeping.has(CopyKept::Mode) { 0 } else { offered.mode & 0o777 };
        Mode::from_raw_mode(open | 0o600)
    }

    /// Returns the mode with which a file is created whose content is written at once: its own if it can have it from the start.
    /// Until the file has its name at the target, it is in the work folder, which only this user may enter: no other user can open
    /// it, whatever its mode. The umask can take rights from it, and nothing adds some.
    pub(crate) fn short_file_mode(&self, offered: &OfferedEntry) -> Mode {
        match self.has_mode_at_once(offered) {
            true => Mode::from_raw_mode(offered.mode),
            false => self.file_mode(offered),
        }
    }

    /// Returns true if a file may be created with its mode: one that lets this user read and write, and gives nothing but rights.
    /// What has an ACL, or another owner, gets its mode after them.
    fn has_mode_at_once(&self, offered: &OfferedEntry) -> bool {
        let has_own_owner = !self.keeps_owner() || owner(offered) == self.own;
        let has_nothing_else = has_own_owner && offered.metadata.attributes.is_empty();
        self.keeping.has(CopyKept::Mode) && has_nothing_else && offered.mode & !0o177 == 0o600
    }

    /// Returns the mode with which folders are created.
    pub(crate) fn folder_mode(&self) -> Mode {
        Mode::from_raw_mode(if self.keeping.has(CopyKept::Mode) { 0o700 } else { 0o777 })
    }

    /// Returns true if an attribute is kept.
    fn keeps(&self, name: &[u8]) -> bool {
        let Some(kind) = kind(name).filter(|kind| self.keeping.has(*kind)) else { return false };
        match kind {
            CopyKept::Xattrs if name == CAPABILITY => self.keeps_owner(),
            CopyKept::Xattrs => self.is_root || name.starts_with(b"user."),
            _ => true,
        }
    }

    /// Returns the attributes of an entry that are of a kept kind.
    pub(crate) fn attributes(&self, place: &Place<'_>) -> io::Result<Attributes> {
        match self.keeping.has(CopyKept::Xattrs) || self.keeping.has(CopyKept::Acls) {
            true => read(place, |name| self.keeps(name)),
            false => Ok(Attributes::new()),
        }
    }

    /// Returns the kept attributes of one kind.
    fn of_kind<'a>(
        &'a self,
        attributes: &'a Attributes,
        wanted: CopyKept,
    ) -> impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)> {
        attributes.iter().filter(move |(name, _)| kind(name) == Some(wanted) && self.keeps(name))
    }

    /// Returns the kept metadata in which an entry of the target differs. `there` and `attributes` are the target's.
    pub(crate) fn differences(
        &self,
        offered: &OfferedEntry,
        there: &Stat,
        attributes: &Attributes,
    ) -> BTreeSet<CopyDifference> {
        let own = &offered.metadata.attributes;
        let other_kind = |wanted| self.of_kind(own, wanted).ne(self.of_kind(attributes, wanted));
        [
            (CopyDifference::Mode, self.has_other_mode(offered, there)),
            (
                CopyDifference::Time,
                self.keeps_times() && FileIdentity::of(there).modified != offered.modified,
            ),
            (CopyDifference::Owner, self.has_other_owner(offered, there)),
            (CopyDifference::Xattrs, other_kind(CopyKept::Xattrs)),
            (CopyDifference::Acls, other_kind(CopyKept::Acls)),
        ]
        .into_iter()
        .filter_map(|(difference, differs)| differs.then_some(difference))
        .collect()
    }

    fn has_other_mode(&self, offered: &OfferedEntry, there: &Stat) -> bool {
        // A symbolic link has no mode of its own.
        let has_mode = self.keeping.has(CopyKept::Mode) && !is_link(offered);
        let bits = if self.keeps_owner() { MODE_BITS } else { 0o777 };
        has_mode && (there.st_mode ^ offered.mode) & bits != 0
    }

    fn has_other_owner(&self, offered: &OfferedEntry, there: &Stat) -> bool {
        self.keeps_owner() && owner(offered) != (there.st_uid, there.st_gid)
    }

    /// Returns true if a file that seems unchanged is to be sent anyway. First, a file that would get set-ID bits, or
    /// that belongs to another user and would get capabilities: its content may be that user's, even where an earlier
    /// copy has changed the owner. Second, a file with further names that would get another owner or mode: these names
    /// may be outside of the target, where another user has linked the file.
    pub(crate) fn is_to_be_new(&self, offered: &OfferedEntry, there: &Stat) -> bool {
        let has_other_owner = self.has_other_owner(offered, there);
        let set_id = if self.keeping.has(CopyKept::Mode) { offered.mode & 0o6000 } else { 0 };
        let gets_set_id = self.keeps_owner() && set_id & !there.st_mode != 0;
        let has_capability = offered.metadata.attributes.contains_key(CAPABILITY) && self.keeps(CAPABILITY);
        let is_further = there.st_nlink > 1;
        gets_set_id
            || (has_other_owner && (set_id != 0 || has_capability || is_further))
            || (is_further && self.has_other_mode(offered, there))
    }

    /// Sets the kept metadata of an entry that this process has just created, and that has inherited none. Metadata
    /// that are right already cost no call.
    pub(crate) fn set_new(&self, place: &Place<'_>, offered: &OfferedEntry) {
        self.set(place, offered, &self.new_entry(false));
    }

    /// Sets what is kept of a file that this process has just created with [`Keeper::short_file_mode`].
    pub(crate) fn set_new_file(&self, file: BorrowedFd<'_>, offered: &OfferedEntry) {
        let has_mode = self.has_mode_at_once(offered) && self.created.has(file, offered.mode);
        self.set(&Place::Open(file), offered, &self.new_entry(has_mode));
    }

    /// Returns what an entry has that this process has just made.
    fn new_entry(&self, has_mode: bool) -> Before {
        Before { owner: self.own, special: 0, rights: 0, has_mode, attributes: Attributes::new() }
    }

    /// Returns true if a folder is this user's, forbids it to read, write or enter, and gets its mode at the end.
    pub(crate) fn is_shut(&self, there: &Stat) -> bool {
        let is_own = !self.is_root && there.st_uid == self.own.0;
        is_own && self.keeping.has(CopyKept::Mode) && there.st_mode & 0o700 != 0o700
    }

    /// Gives this user all rights to a folder that forbids one. A descriptor that only names the folder is enough.
    pub(crate) fn let_in(&self, folder: BorrowedFd<'_>) -> io::Result<()> {
        let there = rustix::fs::fstat(folder)?;
        if self.is_shut(&there) {
            let mode = Mode::from_raw_mode((there.st_mode & MODE_BITS) | 0o700);
            rustix::fs::chmod(format!("{DESCRIPTORS}/{}", folder.as_raw_fd()), mode)?;
        }
        Ok(())
    }

    /// Removes the metadata that an earlier copy has set on an incomplete file: this copy may keep fewer, and would
    /// leave them.
    pub(crate) fn shed_old(&self, place: &Place<'_>, offered: &OfferedEntry, there: &Stat) -> io::Result<()> {
        if (there.st_uid, there.st_gid) != self.own {
            // A file system that gives one owner to all entries refuses, and has refused the other copy.
            let _ = place.set_owner(Some(self.own.0), Some(self.own.1));
        }
        let rights = rights_meanwhile(there.st_mode & 0o777, offered.mode);
        if !self.keeping.has(CopyKept::Mode) && rights != there.st_mode & MODE_BITS {
            place.set_mode(rights)?;
        }
        // The kernel may set others of `security` for itself.
        let is_old = |name: &[u8]| name == CAPABILITY || !name.starts_with(b"security.");
        let old = read(place, |name| kind(name).is_some() && is_old(name))?;
        old.keys().try_for_each(|name| place.remove(name)).map_err(io::Error::from)
    }

    /// Sets what is kept of an entry that may have anything. `there` is what the file system says of it.
    pub(crate) fn set_over(&self, place: &Place<'_>, offered: &OfferedEntry, there: &Stat) -> io::Result<()> {
        let attributes = self.attributes(place)?;
        let (special, rights) = (there.st_mode & SPECIAL_BITS, there.st_mode & 0o777);
        let before =
            Before { owner: (there.st_uid, there.st_gid), special, rights, has_mode: false, attributes };
        self.set(place, offered, &before);
        Ok(())
    }

    /// Sets what is kept: the owner first, because it takes set-ID bits and capabilities away, then what needs the right to write,
    /// then the mode, and the time last.
    fn set(&self, place: &Place<'_>, offered: &OfferedEntry, before: &Before) {
        let mut lost = EntryLosses::default();
        let sets_mode = self.keeping.has(CopyKept::Mode) && !is_link(offered) && !before.has_mode;
        let rights = rights_meanwhile(before.rights, offered.mode);
        if sets_mode && rights != before.rights {
            lost.note(CopyKept::Mode, place.set_mode(before.special | rights));
        }
        let has_owner = self.set_owner(place, offered, before, &mut lost);
        self.set_attributes(place, offered, before, has_owner, &mut lost);
        if sets_mode {
            let bits = if has_owner { MODE_BITS } else { 0o777 };
            let special = if has_owner { 0 } else { before.special };
            lost.note(CopyKept::Mode, place.set_mode(special | (offered.mode & bits)));
        }
        if self.keeps_times() {
            lost.note(CopyKept::Times, self.set_time(place, offered.modified));
        }
        self.losses.count(&offered.name, lost);
    }

    /// Sets the time of an entry that is there, and nothing else.
    pub(crate) fn set_time_over(&self, place: &Place<'_>, offered: &OfferedEntry) {
        let mut lost = EntryLosses::default();
        lost.note(CopyKept::Times, self.set_time(place, offered.modified));
        self.losses.count(&offered.name, lost);
    }

    /// Sets a time. Returns ERANGE if the entry has another one then.
    fn set_time(&self, place: &Place<'_>, modified: Timestamp) -> rustix::io::Result<()> {
        place.set_modified(modified)?;
        if self.times.are_sure(modified) {
            return Ok(());
        }
        if place.modified()? != modified {
            return Err(Errno::RANGE);
        }
        self.times.have(modified);
        Ok(())
    }

    /// Returns true if the entry has the owner of the source's.
    fn set_owner(
        &self,
        place: &Place<'_>,
        offered: &OfferedEntry,
        before: &Before,
        lost: &mut EntryLosses,
    ) -> bool {
        let (user, group) = owner(offered);
        if !self.keeps_owner() || (user, group) == before.owner {
            return self.keeps_owner();
        }
        let set = place.set_owner(Some(user), Some(group));
        lost.note(CopyKept::Owner, set);
        set.is_ok()
    }

    /// Removes kept attributes that the source's entry lacks, and sets those that differ.
    fn set_attributes(
        &self,
        place: &Place<'_>,
        offered: &OfferedEntry,
        before: &Before,
        has_owner: bool,
        lost: &mut EntryLosses,
    ) {
        let own = &offered.metadata.attributes;
        for wanted in [CopyKept::Xattrs, CopyKept::Acls] {
            let gone = self.of_kind(&before.attributes, wanted).filter(|(name, _)| !own.contains_key(*name));
            gone.for_each(|(name, _)| lost.note(wanted, place.remove(name)));
            for (name, value) in self.of_kind(own, wanted) {
                let is_capability = name == CAPABILITY;
                // A change of the owner has removed it.
                let is_there = !is_capability && before.attributes.get(name) == Some(value);
                if !is_there && (has_owner || !is_capability) {
                    lost.note(wanted, place.set(name, value));
                }
            }
        }
    }

    /// Returns what was lost so far.
    pub(crate) fn lost(&self) -> Vec<LostKind> {
        self.losses.all()
    }

    /// Returns true if there is room for the attributes of one more file.
    pub(crate) fn has_room(&self, offered: &OfferedEntry) -> bool {
        self.room.takes(bytes(&offered.metadata.attributes))
    }
}

/// Returns the rights that an entry has until it has its mode: those that it would lose would be of other users as soon as it has
/// another group, or as an ACL is gone. Its owner keeps them, to set what needs them.
pub(super) fn rights_meanwhile(before: u32, mode: u32) -> u32 {
    before & (mode | 0o700)
}

fn owner(offered: &OfferedEntry) -> Owner {
    (offered.metadata.user, offered.metadata.group)
}

fn is_link(offered: &OfferedEntry) -> bool {
    matches!(offered.kind, EntryKind::Symlink { .. })
}
