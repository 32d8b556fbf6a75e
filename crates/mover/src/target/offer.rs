//! Answers what the target has of an offered entry, and creates folders and symbolic links.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use landspeed_record::CopyDifference;
use rustix::fs::{AtFlags, FileType, OFlags, Stat};

use super::hard_links::inode;
use super::in_place::InPlace;
use super::incoming::IncomingFile;
use super::room::taken_by;
use super::{Receiving, work_folder};
use crate::beneath::LastFolder;
use crate::digest;
use crate::extents::pieces_with_data;
use crate::identity::FileIdentity;
use crate::metadata::Place;
use crate::name::RelativeName;
use crate::wire::{Answer, EntryKind, Failure, OfferedEntry, Operation};

impl Receiving {
    /// Answers an offered entry. `last` is the folder of the entry before it.
    pub(super) fn consider(&self, entry: u64, offered: &OfferedEntry, last: &mut LastFolder) -> Answer {
        let considered = match (&offered.kind, self.is_allowed(&offered.name)) {
            (_, false) => Err(Failure::plain(Operation::Name)),
            (EntryKind::Folder, _) => self.make_folder(&offered.name, last),
            (EntryKind::Symlink { to }, _) => self.make_link(entry, offered, to),
            (EntryKind::Fifo | EntryKind::Device(_), _) => self.make_special(entry, offered),
            (EntryKind::File { size }, _) => self.want(entry, offered, *size, last),
        };
        let answer = considered.unwrap_or_else(Answer::Failed);
        if needs_no_part(offered, &answer) {
            self.work.remove_part(&offered.name);
        }
        answer
    }

    fn is_allowed(&self, name: &RelativeName) -> bool {
        allows(&self.names, name)
    }

    fn make_folder(&self, name: &RelativeName, last: &mut LastFolder) -> Result<Answer, Failure> {
        let failed = |error: io::Error| Failure::of(Operation::MakeFolder, &error);
        let there = self.root.stat(name, last).map_err(failed)?;
        let (answer, is_new) = match there.as_ref().map(kind) {
            Some(FileType::Directory) => (Answer::Unchanged, false),
            Some(_) => return Err(failed(io::Error::from_raw_os_error(libc::EEXIST))),
            None => (Answer::Made, self.new_folder(name).map_err(failed)?),
        };
        match is_new {
            true => self.fresh.add(name),
            false => self.check_name(name, last).map_err(failed)?,
        }
        match there {
            _ if *name == RelativeName::root() => self.root_is_offered.store(true, Ordering::Release),
            // An entry that cannot be put into it fails by itself.
            Some(there) if self.keeper.is_shut(&there) => drop(self.let_in(name)),
            _ => {}
        }
        Ok(answer)
    }

    /// Lets this user into a folder that is there and forbids it: its mode is set once its content is complete, as that of
    /// every folder of the source. The target's folder itself keeps its mode.
    fn let_in(&self, name: &RelativeName) -> io::Result<()> {
        self.keeper.let_in(self.root.folder(name)?.as_fd())
    }

    /// Makes a folder, in one that has its own name. Returns false if another program has made it.
    fn new_folder(&self, name: &RelativeName) -> io::Result<bool> {
        if let Some((above, _)) = name.split() {
            self.check_folder(&above)?;
        }
        self.root.make_folder(name).map(|(_, is_new)| is_new)
    }

    fn make_link(&self, entry: u64, offered: &OfferedEntry, to: &[u8]) -> Result<Answer, Failure> {
        let failed = |error: io::Error| Failure::of(Operation::MakeLink, &error);
        let (folder, leaf) = offered.name.split().ok_or(Failure::plain(Operation::Name))?;
        let folder = self.made_folder(&folder).map_err(failed)?;
        let has_text =
            rustix::fs::readlinkat(&folder, leaf, Vec::new()).is_ok_and(|has| has.as_bytes() == to);
        if has_text {
            self.check_leaf(&offered.name, folder.as_fd(), leaf).map_err(failed)?;
        }
        if has_text && self.keeps_link(offered, &folder, leaf)? {
            return Ok(Answer::Unchanged);
        }
        let own = work_folder::short(entry);
        self.work.link(to, &own).map_err(failed)?;
        self.put_made(&own, offered, &folder, leaf).map_err(failed)
    }

    /// Puts what was made in the folder for such entries into its place, with what is kept of it.
    pub(super) fn put_made(
        &self,
        own: &[u8],
        offered: &OfferedEntry,
        folder: &OwnedFd,
        leaf: &[u8],
    ) -> io::Result<Answer> {
        self.keeper.set_new(&Place::named(self.work.as_fd(), own), offered);
        let placed = self.place(own, &offered.name, folder.as_fd(), leaf);
        if placed.is_err() {
            self.work.remove(own);
        }
        placed.map(|()| Answer::Made)
    }

    /// Keeps a symbolic link that is there, if at most its time differs, with the offered one.
    fn keeps_link(&self, offered: &OfferedEntry, folder: &OwnedFd, leaf: &[u8]) -> Result<bool, Failure> {
        let differs = self.differs_in(offered, folder, leaf)?;
        if differs.iter().any(|difference| *difference != CopyDifference::Time) {
            return Ok(false);
        }
        if !differs.is_empty() {
            self.keeper.set_time_over(&Place::named(folder.as_fd(), leaf), offered);
        }
        Ok(true)
    }

    /// Returns in what an entry of an open folder differs that is kept.
    pub(super) fn differs_in(
        &self,
        offered: &OfferedEntry,
        folder: &OwnedFd,
        leaf: &[u8],
    ) -> Result<BTreeSet<CopyDifference>, Failure> {
        let there = rustix::fs::statat(folder, leaf, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| Failure::of(Operation::Open, &error.into()))?;
        let attributes = self.keeper.attributes(&Place::named(folder.as_fd(), leaf));
        let attributes = attributes.map_err(|error| Failure::of(Operation::ReadAttributes, &error))?;
        Ok(self.keeper.differences(offered, &there, &attributes))
    }

    /// Returns true if what is there has size and time of the offered file, and may stay.
    fn has(&self, offered: &OfferedEntry, size: u64, there: &Stat) -> bool {
        self.may_stay(offered, size, there) && FileIdentity::of(there).modified == offered.modified
    }

    /// Returns the entry that exists under the name of an offered file; a failure if its name differs, and only the
    /// file system treats both as the same.
    fn in_its_place(&self, offered: &OfferedEntry, last: &mut LastFolder) -> Result<Option<Stat>, Failure> {
        if self.fresh.hold(&offered.name) {
            return Ok(None);
        }
        let there = self.root.stat(&offered.name, last);
        let there = there.map_err(|error| Failure::of(Operation::Open, &error))?;
        if there.is_some() {
            self.check_name(&offered.name, last).map_err(|error| Failure::of(Operation::Create, &error))?;
        }
        Ok(there)
    }

    /// Says whether an offered file is to be sent, and takes it under way then.
    fn want(
        &self,
        entry: u64,
        offered: &OfferedEntry,
        size: u64,
        last: &mut LastFolder,
    ) -> Result<Answer, Failure> {
        let open = |error: io::Error| Failure::of(Operation::Open, &error);
        let there = self.in_its_place(offered, last)?;
        let compares = there.as_ref().is_some_and(|there| self.compares_content(offered, size, there));
        let replaced = there.as_ref().map_or(0, taken_by);
        match there {
            Some(_) if compares => {}
            Some(there) if self.has(offered, size, &there) => {
                return self.keep(offered, size, &there, last);
            }
            Some(there) if kind(&there) == FileType::Directory => {
                return Err(open(io::Error::from_raw_os_error(libc::EISDIR)));
            }
            _ => {}
        }
        if !self.keeper.has_room(offered) {
            return Err(Failure::of(Operation::Create, &io::Error::from_raw_os_error(libc::ENOBUFS)));
        }
        let too_large = || Failure::of(Operation::Create, &io::Error::from_raw_os_error(libc::EFBIG));
        let pieces = digest::pieces(size).ok_or_else(too_large)?;
        let mut file = IncomingFile::new(entry, offered, size, pieces, &self.keeper);
        // It is written to, and may have a mode that forbids it.
        let left = if pieces > 1 { self.work.left(file.own()).map_err(open)? } else { None };
        file.may_have_old(left.is_some());
        file.replace(replaced);
        file.beside(compares.then(InPlace::default));
        let held = match compares {
            true => vec![(0, pieces)],
            false => left.map_or_else(Vec::new, |left| pieces_with_data(left, pieces)),
        };
        self.await_file(entry, file)?;
        Ok(if held.is_empty() { Answer::Send } else { Answer::Compare(held) })
    }

    /// Adds a file to those under way.
    fn await_file(&self, entry: u64, file: IncomingFile) -> Result<(), Failure> {
        let mut files = self.files.lock();
        let is_long_twice = || file.pieces() > 1 && files.values().any(|other| other.own() == file.own());
        if files.contains_key(&entry) || is_long_twice() {
            return Err(Failure::of(Operation::Create, &io::Error::from_raw_os_error(libc::EEXIST)));
        }
        files.insert(entry, Arc::new(file));
        Ok(())
    }

    /// Keeps a file that is there, and sets what differs beside its content.
    fn keep(
        &self,
        offered: &OfferedEntry,
        size: u64,
        there: &Stat,
        last: &mut LastFolder,
    ) -> Result<Answer, Failure> {
        self.linkable.add(offered, inode(there));
        let attributes = self.root.look(&offered.name, last, |place| self.keeper.attributes(place));
        let attributes = attributes.map_err(|error| Failure::of(Operation::ReadAttributes, &error))?;
        if self.keeper.differences(offered, there, &attributes).is_empty() {
            return Ok(Answer::Unchanged);
        }
        let failed = |error: io::Error| Failure::of(Operation::SetModeAndTimes, &error);
        let file = self.root.file(&offered.name, OFlags::RDONLY | OFlags::NONBLOCK).map_err(failed)?;
        let opened = rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?;
        if !self.has(offered, size, &opened) {
            // Another program has put something else into its place.
            return Err(failed(io::Error::from_raw_os_error(libc::ESTALE)));
        }
        self.keeper.set_over(&Place::Open(file.as_fd()), offered, &opened).map_err(failed)?;
        Ok(Answer::Unchanged)
    }

    /// Sets what is kept of a folder whose entries are all there. An existing folder of the target keeps its metadata:
    /// only entries land in it, and it may be /tmp.
    pub(super) fn complete_folder(&self, offered: &OfferedEntry) -> Answer {
        if !self.is_allowed(&offered.name) {
            return Answer::Failed(Failure::plain(Operation::Name));
        }
        if offered.name == RelativeName::root() && !self.is_new {
            return Answer::Unchanged;
        }
        let open = || {
            // An entry whose name only differs in case keeps its metadata.
            self.check_name(&offered.name, &mut LastFolder::default())?;
            self.root.file(&offered.name, OFlags::RDONLY | OFlags::DIRECTORY)
        };
        let set = |folder: OwnedFd| {
            let there = rustix::fs::fstat(&folder)?;
            self.keeper.set_over(&Place::Open(folder.as_fd()), offered, &there)
        };
        match open().and_then(set) {
            Ok(()) => {
                if offered.name == RelativeName::root() {
                    self.work.forget_new();
                }
                Answer::Unchanged
            }
            Err(error) => Answer::Failed(Failure::of(Operation::SetModeAndTimes, &error)),
        }
    }
}

/// Returns true if the source may use this name: `names` has its first component, or the empty one for all, and it is none
/// that a copy keeps for itself. Otherwise a source could write what it was not asked for (CVE-2019-6111 of scp).
pub(crate) fn allows(names: &BTreeSet<Vec<u8>>, name: &RelativeName) -> bool {
    let is_asked_for = names.contains(&b""[..]) || names.contains(name.first());
    is_asked_for && !name.first().eq_ignore_ascii_case(work_folder::NAME)
}

/// Returns true if a part that an earlier copy has left of an entry is of no use: the entry is there, or is sent as one
/// piece.
fn needs_no_part(offered: &OfferedEntry, answer: &Answer) -> bool {
    let is_short = matches!(offered.kind, EntryKind::File { size } if digest::pieces(size) == Some(1));
    match answer {
        Answer::Unchanged | Answer::Made => true,
        Answer::Send | Answer::Compare(_) => is_short,
        Answer::Failed(_) => false,
    }
}

/// Returns the kind of an entry.
pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
