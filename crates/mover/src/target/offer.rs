//! Answers what the target has of an offered entry, and makes folders and symbolic links.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, OFlags, Stat};

use super::in_place::InPlace;
use super::incoming::{IncomingFile, left_pieces, set_mode_and_times, times};
use super::{Receiving, work_folder};
use crate::beneath::LastFolder;
use crate::digest;
use crate::name::RelativeName;
use crate::tree::FileIdentity;
use crate::wire::{Answer, EntryKind, Failure, OfferedEntry, Operation};

impl Receiving {
    /// Answers an offered entry. `last` is the folder of the entry before it.
    pub(super) fn consider(&self, entry: u64, offered: &OfferedEntry, last: &mut LastFolder) -> Answer {
        let considered = match (&offered.kind, self.is_allowed(&offered.name)) {
            (_, false) => Err(Failure::plain(Operation::Name)),
            (EntryKind::Folder, _) => self.make_folder(&offered.name, last),
            (EntryKind::Symlink { to }, _) => self.make_link(entry, offered, to),
            (EntryKind::File { size }, _) => self.want(entry, offered, *size, last),
        };
        considered.unwrap_or_else(Answer::Failed)
    }

    fn is_allowed(&self, name: &RelativeName) -> bool {
        allows(&self.names, name)
    }

    fn make_folder(&self, name: &RelativeName, last: &mut LastFolder) -> Result<Answer, Failure> {
        let failed = |error: io::Error| Failure::of(Operation::MakeFolder, &error);
        match self.root.stat(name, last).map_err(failed)?.map(|stat| kind(&stat)) {
            Some(FileType::Directory) => Ok(Answer::Unchanged),
            Some(_) => Err(failed(io::Error::from_raw_os_error(libc::EEXIST))),
            None => self.root.made_folder(name).map(|_| Answer::Made).map_err(failed),
        }
    }

    fn make_link(&self, entry: u64, offered: &OfferedEntry, to: &[u8]) -> Result<Answer, Failure> {
        let failed = |error: io::Error| Failure::of(Operation::MakeLink, &error);
        let (folder, leaf) = offered.name.split().ok_or(Failure::plain(Operation::Name))?;
        let folder = self.root.made_folder(&folder).map_err(failed)?;
        if rustix::fs::readlinkat(&folder, leaf, Vec::new()).is_ok_and(|there| there.as_bytes() == to) {
            return self.keep_link(offered, &folder, leaf);
        }
        let own = work_folder::short(entry);
        self.work.link(to, &own).map_err(failed)?;
        let times = times(offered.modified);
        let placed = rustix::fs::utimensat(&self.work, own.as_slice(), &times, AtFlags::SYMLINK_NOFOLLOW);
        let placed = placed.map_err(io::Error::from);
        let placed = placed.and_then(|()| self.work.put_in_place(&own, &folder, leaf));
        if placed.is_err() {
            self.work.remove(&own);
        }
        placed.map(|()| Answer::Made).map_err(failed)
    }

    /// Keeps a symbolic link that is there, with the offered time.
    fn keep_link(&self, offered: &OfferedEntry, folder: &OwnedFd, leaf: &[u8]) -> Result<Answer, Failure> {
        let failed = |error: io::Error| Failure::of(Operation::SetModeAndTimes, &error);
        let there =
            rustix::fs::statat(folder, leaf, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| failed(e.into()))?;
        if FileIdentity::of(&there).modified != offered.modified {
            let times = times(offered.modified);
            let set = rustix::fs::utimensat(folder, leaf, &times, AtFlags::SYMLINK_NOFOLLOW);
            set.map_err(|error| failed(error.into()))?;
        }
        Ok(Answer::Unchanged)
    }

    /// Returns true if what is there has size and time of the offered file.
    fn has(&self, offered: &OfferedEntry, size: u64, there: &Stat) -> bool {
        let identity = FileIdentity::of(there);
        kind(there) == FileType::RegularFile && identity.size == size && identity.modified == offered.modified
    }

    fn want(
        &self,
        entry: u64,
        offered: &OfferedEntry,
        size: u64,
        last: &mut LastFolder,
    ) -> Result<Answer, Failure> {
        let open = |error: io::Error| Failure::of(Operation::Open, &error);
        let there = self.root.stat(&offered.name, last).map_err(open)?;
        let compares = there.as_ref().is_some_and(|there| self.compares_content(size, there));
        match there {
            Some(_) if compares => {}
            Some(there) if self.has(offered, size, &there) => return self.keep(offered, &there),
            Some(there) if kind(&there) == FileType::Directory => {
                return Err(open(io::Error::from_raw_os_error(libc::EISDIR)));
            }
            _ => {}
        }
        let too_large = || Failure::of(Operation::Create, &io::Error::from_raw_os_error(libc::EFBIG));
        let pieces = digest::pieces(size).ok_or_else(too_large)?;
        let file = IncomingFile::new(entry, offered, size, pieces);
        if compares {
            let answer = self.ask_for_digests(&file)?;
            return self.await_file(entry, file.beside(InPlace::default())).map(|()| answer);
        }
        let left = if pieces > 1 { self.work.left(file.own()).map_err(open)? } else { None };
        let left = left.map_or_else(Vec::new, |left| left_pieces(left, pieces));
        self.await_file(entry, file)?;
        Ok(if left.is_empty() { Answer::Send } else { Answer::Compare(left) })
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

    /// Keeps a file that is there, with the offered mode.
    fn keep(&self, offered: &OfferedEntry, there: &Stat) -> Result<Answer, Failure> {
        if there.st_mode & 0o777 == offered.mode {
            return Ok(Answer::Unchanged);
        }
        let failed = |error: io::Error| Failure::of(Operation::SetModeAndTimes, &error);
        let file = self.root.file(&offered.name, OFlags::RDONLY | OFlags::NONBLOCK).map_err(failed)?;
        set_mode_and_times(&file, offered).map_err(failed)?;
        Ok(Answer::Unchanged)
    }

    /// Sets mode and time of a folder whose entries are all there. A target's folder that was there before keeps its own: only
    /// entries land in it, and it may be /tmp.
    pub(super) fn complete_folder(&self, offered: &OfferedEntry) -> Answer {
        if !self.is_allowed(&offered.name) {
            return Answer::Failed(Failure::plain(Operation::Name));
        }
        if offered.name == RelativeName::root() && !self.is_new {
            return Answer::Unchanged;
        }
        let folder = self.root.file(&offered.name, OFlags::RDONLY | OFlags::DIRECTORY);
        match folder.and_then(|folder| set_mode_and_times(&folder, offered)) {
            Ok(()) => Answer::Unchanged,
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

pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
