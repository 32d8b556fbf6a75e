//! Hard links: further names of files that this copy has put in place, or has found there.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Stat, statat};
use rustix::io::Errno;

use super::offer::allows;
use super::{Receiving, SourceLink, work_folder};
use crate::beneath::LastFolder;
use crate::identity::{FileIdentity, Inode};
use crate::name::RelativeName;
use crate::wire::{Answer, EntryKind, EntryOutcome, Failure, HardLink, OfferedEntry, Operation};

/// The files that may get further names. A source gets a link to nothing else, whatever name it says: the target's folder may
/// have files that are none of the copy's.
#[derive(Debug, Default)]
pub(super) struct LinkableFiles(Mutex<HashSet<Inode>>);

impl LinkableFiles {
    /// Adds a file that is in place, if others may become links to it.
    pub(super) fn add(&self, offered: &OfferedEntry, inode: Inode) {
        if offered.link == HardLink::First {
            self.0.lock().insert(inode);
        }
    }

    fn has(&self, inode: Inode) -> bool {
        self.0.lock().contains(&inode)
    }
}

/// Returns which file an entry is.
pub(super) fn inode(stat: &Stat) -> Inode {
    FileIdentity::of(stat).inode()
}

impl Receiving {
    /// Answers an offered entry, which may be a hard link. Where none can be made, the entry becomes a file of its own, which
    /// is reported to the source on `link`. `last` is the folder of the entry before it.
    pub(super) fn consider_link(
        &self,
        entry: u64,
        offered: &OfferedEntry,
        last: &mut LastFolder,
        link: &SourceLink,
    ) -> Answer {
        let (HardLink::To(first), EntryKind::File { .. }) = (&offered.link, &offered.kind) else {
            return self.consider(entry, offered, last);
        };
        if ![first, &offered.name].into_iter().all(|name| allows(&self.names, name)) {
            return Answer::Failed(Failure::plain(Operation::Name));
        }
        let Ok(answer) = self.link_to(first, entry, &offered.name) else {
            link.tell_outcomes(vec![(entry, EntryOutcome::Apart)]);
            return self.consider(entry, offered, last);
        };
        // An earlier copy may have sent the name as a file of its own.
        self.work.remove_part(&offered.name);
        answer
    }

    /// Gives the file with the name `first` a further name, in place of what may be there. The new name is looked at where no
    /// other program can change it: only then is it known which file it is of.
    fn link_to(&self, first: &RelativeName, entry: u64, name: &RelativeName) -> io::Result<Answer> {
        let (above, leaf) = first.split().ok_or(Errno::ISDIR)?;
        let above = self.root.folder(&above)?;
        let file = inode(&statat(&above, leaf, AtFlags::SYMLINK_NOFOLLOW)?);
        if !self.linkable.has(file) {
            return Err(Errno::NOENT.into());
        }
        let (folder, new) = name.split().ok_or(Errno::ISDIR)?;
        let folder = self.made_folder(&folder)?;
        let there = statat(&folder, new, AtFlags::SYMLINK_NOFOLLOW);
        if there.is_ok_and(|there| inode(&there) == file) {
            return self.check_leaf(name, folder.as_fd(), new).map(|()| Answer::Unchanged);
        }
        let own = work_folder::further(entry);
        self.work.remove(&own);
        rustix::fs::linkat(&above, leaf, &self.work, own.as_slice(), AtFlags::empty())?;
        let placed = self.work.inode(&own).and_then(|linked| match linked == file {
            true => self.place(&own, name, folder.as_fd(), new),
            false => Err(Errno::STALE.into()),
        });
        // It stays if another program has made the same link meanwhile (rename(2)).
        self.work.remove(&own);
        placed.map(|()| Answer::Made)
    }
}
