//! Walks the source's tree. A bounded part of it is read ahead, so that no list of the whole tree is ever in memory.

mod ahead;
mod named;
mod portion;
mod steady;
mod steps;
mod twice;
mod walk;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use landspeed_record::{CopyKeeping, CopyKept};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::beneath::Root;
use crate::digest::WholeDigest;
use crate::identity::FileIdentity;
use crate::metadata::{self, Attributes, DeviceNumber, MODE_BITS, MOST_OF_OFFER, Metadata, Place};
use crate::name::RelativeName;
use crate::select::{IgnoreRules, NameList};
use crate::wire::{EntryKind, Failure, HardLink, MOST_OFFERED, OfferedEntry, Operation};
pub(crate) use steady::{ReadProblem, read_piece};
pub(crate) use twice::walk_all;
use walk::Walk;

/// The largest number of threads that walk a tree.
pub(crate) const MOST_WALKERS: usize = 32;
/// The number of threads that walk a tree, if the user asked for no other one.
pub(crate) const WALKERS: usize = 4;

/// Where an entry is in the source, and its metadata when it was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourcePlace {
    /// The number of the tree.
    pub(crate) tree: usize,
    /// The name in that tree.
    pub(crate) inner: RelativeName,
    pub(crate) identity: FileIdentity,
    /// The number of names that the file has in its file system (st_nlink).
    pub(crate) names: u64,
    /// True if the file takes less room than its length, so that it has holes. One with holes may take as much, for what
    /// its file system keeps beside the data.
    pub(crate) is_sparse: bool,
}

/// An entry that the walk has found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundEntry {
    pub(crate) offered: OfferedEntry,
    pub(crate) place: SourcePlace,
    /// The digest of a file once its copy is proven, or of the first name of its file; `None` before.
    pub(crate) proven: Option<WholeDigest>,
}

impl FoundEntry {
    /// Returns the length of a file; zero for other entries.
    pub(crate) fn size(&self) -> u64 {
        match self.offered.kind {
            EntryKind::File { size } => size,
            EntryKind::Folder | EntryKind::Symlink { .. } | EntryKind::Fifo | EntryKind::Device(_) => 0,
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.offered.kind == EntryKind::Folder
    }
}

/// The entries of an offer, and the total size of their attributes.
#[derive(Debug, Default)]
pub(crate) struct OfferBatch {
    entries: Vec<FoundEntry>,
    bytes: usize,
}

impl OfferBatch {
    /// Adds an entry. Returns true if the offer is to get no further one.
    pub(crate) fn push(&mut self, entry: FoundEntry) -> bool {
        self.bytes += metadata::bytes(&entry.offered.metadata.attributes);
        self.entries.push(entry);
        self.entries.len() >= MOST_OFFERED || self.bytes >= MOST_OF_OFFER
    }

    /// Returns the entries, and keeps none.
    pub(crate) fn take(&mut self) -> Vec<FoundEntry> {
        std::mem::take(self).entries
    }
}

/// Returns the number of names of a file. The type of the member differs between processors.
#[allow(clippy::unnecessary_cast)]
fn names(stat: &Stat) -> u64 {
    stat.st_nlink as u64
}

// The types of these members differ between processors.
#[allow(clippy::unnecessary_cast)]
fn takes_less_room(stat: &Stat) -> bool {
    // The blocks of stat(2) have 512 bytes.
    (stat.st_blocks as i64).saturating_mul(512) < stat.st_size as i64
}

/// The receiver of a walk. Each function returns false to end the walk.
pub(crate) trait Visitor {
    fn found(&mut self, entry: FoundEntry) -> bool;

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool;
}

/// A tree of the source, and the name that it gets at the target.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The number of the tree among those of the copy.
    pub(crate) number: usize,
    pub(crate) root: Root,
    /// The entry below the root at which the walk begins.
    pub(crate) start: RelativeName,
    /// The name of that entry at the target.
    pub(crate) target: RelativeName,
    /// The metadata that are read of each entry.
    pub(crate) keeping: CopyKeeping,
    /// The entries that are left alone. The one at which the walk begins was named by the user, and is none of them.
    pub(crate) ignore: Arc<IgnoreRules>,
    /// The names that alone are walked, with the folders that they are in; `None` for all.
    pub(crate) only: Option<Arc<NameList>>,
    /// The number of threads that look at entries. It decides how long a walk takes, and nothing else.
    pub(crate) walkers: usize,
}

impl Tree {
    /// Walks all entries of the tree; with `only_folders`, only its folders. Each folder comes before its entries, and the order is
    /// that of a walk by one thread.
    pub(crate) fn walk(&self, only_folders: bool, visitor: &mut dyn Visitor) {
        Walk { tree: self, only_folders, visitor }.all();
    }

    /// Returns the entry `inner` of the tree as it is now.
    ///
    /// # Errors
    /// Returns a failure if it cannot be read, or is an entry that is not copied.
    pub(crate) fn look(&self, inner: &RelativeName) -> Result<FoundEntry, Failure> {
        let name = self.start.join(inner.as_bytes()).ok_or(Failure::plain(Operation::Name))?;
        match name.split() {
            Some((folder, leaf)) => {
                let folder = self.root.folder(&folder);
                let folder = folder.map_err(|error| Failure::of(Operation::Open, &error))?;
                self.look_in(folder.as_fd(), leaf, inner)
            }
            None => self.look_in(self.root.as_fd(), b".", inner),
        }
    }

    /// Returns the entry `inner`, which is called `leaf` in its open folder.
    fn look_in(
        &self,
        folder: BorrowedFd<'_>,
        leaf: &[u8],
        inner: &RelativeName,
    ) -> Result<FoundEntry, Failure> {
        let target = self.target.join(inner.as_bytes()).ok_or(Failure::plain(Operation::Name))?;
        let open = |error: Errno| Failure::of(Operation::Open, &error.into());
        let stat = rustix::fs::statat(folder, leaf, AtFlags::SYMLINK_NOFOLLOW).map_err(open)?;
        let (identity, kind) = (FileIdentity::of(&stat), self.kind(folder, leaf, &stat)?);
        let attributes = self.attributes(folder, leaf);
        let attributes = attributes.map_err(|error| Failure::of(Operation::ReadAttributes, &error))?;
        let names = names(&stat);
        let is_file = matches!(kind, EntryKind::File { .. });
        let link = if is_file && names > 1 { HardLink::First } else { HardLink::Alone };
        let is_sparse = is_file && takes_less_room(&stat);
        Ok(FoundEntry {
            offered: OfferedEntry {
                name: target,
                kind,
                mode: stat.st_mode & MODE_BITS,
                modified: identity.modified,
                metadata: Metadata { user: stat.st_uid, group: stat.st_gid, attributes },
                link,
            },
            place: SourcePlace { tree: self.number, inner: inner.clone(), identity, names, is_sparse },
            proven: None,
        })
    }

    /// Returns the kind of an entry of an open folder; a failure if entries of its kind are not copied.
    fn kind(&self, folder: BorrowedFd<'_>, leaf: &[u8], stat: &Stat) -> Result<EntryKind, Failure> {
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File { size: FileIdentity::of(stat).size },
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => {
                let to = rustix::fs::readlinkat(folder, leaf, Vec::new());
                let to = to.map_err(|error| Failure::of(Operation::Open, &error.into()))?;
                EntryKind::Symlink { to: to.into_bytes() }
            }
            FileType::Fifo => EntryKind::Fifo,
            FileType::BlockDevice | FileType::CharacterDevice if !self.keeping.devices => {
                return Err(Failure::plain(Operation::Device));
            }
            FileType::BlockDevice => EntryKind::Device(DeviceNumber::of(stat, true)),
            FileType::CharacterDevice => EntryKind::Device(DeviceNumber::of(stat, false)),
            _ => return Err(Failure::plain(Operation::Special)),
        })
    }

    /// Reads the attributes of an entry of an open folder that are of a kind that is kept.
    fn attributes(&self, folder: BorrowedFd<'_>, leaf: &[u8]) -> io::Result<Attributes> {
        let has = |kind| self.keeping.has(kind);
        match has(CopyKept::Xattrs) || has(CopyKept::Acls) {
            true => metadata::read(&Place::named(folder, leaf), |name| metadata::kind(name).is_some_and(has)),
            false => Ok(Attributes::new()),
        }
    }

    /// Opens a file of the tree. It never waits for another program, as a FIFO would.
    fn open(&self, inner: &RelativeName) -> io::Result<OwnedFd> {
        let name = self.start.join(inner.as_bytes()).ok_or(io::ErrorKind::InvalidFilename)?;
        self.root.file(&name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    /// Opens a folder of the tree, to read its entries.
    pub(crate) fn entries(&self, folder: &RelativeName) -> io::Result<Dir> {
        Ok(Dir::new(self.open_folder(folder)?)?)
    }

    fn open_folder(&self, folder: &RelativeName) -> io::Result<OwnedFd> {
        let name = self.start.join(folder.as_bytes()).ok_or(io::ErrorKind::InvalidFilename)?;
        self.root.file(&name, OFlags::RDONLY | OFlags::DIRECTORY)
    }
}

/// Returns the target of a symbolic link.
pub(crate) fn link(root: &Root, name: &RelativeName) -> io::Result<Vec<u8>> {
    let (folder, leaf) = name.split().ok_or(io::ErrorKind::InvalidInput)?;
    let folder: OwnedFd = root.folder(&folder)?;
    Ok(rustix::fs::readlinkat(folder.as_fd(), leaf, Vec::new())?.into_bytes())
}

#[cfg(test)]
pub(crate) mod tests;
