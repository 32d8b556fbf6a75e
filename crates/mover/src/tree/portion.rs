//! A part of a folder, which one thread reads at a time: names, and then what the file system says of each.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, RawDir};
use rustix::io::Errno;

use super::{FoundEntry, Tree};
use crate::metadata;
use crate::name::RelativeName;
use crate::wire::{Failure, Operation};

/// The room for the names that one call reads.
const ROOM: usize = 16 << 10;
/// The least number of names after which a portion may end. Most folders have fewer, and are read whole.
const ENOUGH: usize = 64;
/// The memory of a portion from which its further entries are looked at by the walk itself. Only attributes and long names take as
/// much.
const MOST_OF_PORTION: usize = 512 << 10;

/// A folder that is read in several portions.
#[derive(Debug)]
pub(super) struct OpenFolder {
    name: RelativeName,
    entries: OwnedFd,
}

/// The part of a folder that is to be read.
#[derive(Debug)]
pub(super) enum FolderPart {
    Whole(RelativeName),
    /// What follows the portions that are read, or are being read.
    Rest(Arc<OpenFolder>),
}

impl FolderPart {
    /// Returns the folder, open.
    ///
    /// # Errors
    /// Returns the folder's name if it cannot be opened.
    pub(super) fn open(self, tree: &Tree) -> Result<Arc<OpenFolder>, (RelativeName, io::Error)> {
        match self {
            FolderPart::Rest(folder) => Ok(folder),
            FolderPart::Whole(name) => match tree.open_folder(&name) {
                Ok(entries) => Ok(Arc::new(OpenFolder { name, entries })),
                Err(error) => Err((name, error)),
            },
        }
    }
}

impl OpenFolder {
    #[cfg(test)]
    pub(super) fn new(name: RelativeName, path: &std::path::Path) -> Arc<Self> {
        Arc::new(OpenFolder { name, entries: std::fs::File::open(path).expect("a folder").into() })
    }

    pub(super) fn name(&self) -> &RelativeName {
        &self.name
    }

    /// Reads the next names; with `only_folders`, those that may be of folders. Returns true beside them if there may be more. Of
    /// the threads that share the folder, only the one that has its part reads names.
    pub(super) fn names(&self, only_folders: bool) -> (Vec<Vec<u8>>, Result<bool, Errno>) {
        let mut room = Vec::<u8>::with_capacity(ROOM);
        let mut entries = RawDir::new(&self.entries, room.spare_capacity_mut());
        let (mut names, mut read) = (Vec::new(), 0);
        // A portion ends with the bytes of one call.
        while read < ENOUGH || !entries.is_buffer_empty() {
            match entries.next() {
                // A folder that was removed meanwhile has no more entries.
                None | Some(Err(Errno::NOENT)) => return (names, Ok(false)),
                Some(Err(Errno::INTR)) => {}
                Some(Err(error)) => return (names, Err(error)),
                Some(Ok(entry)) => {
                    read += 1;
                    let may_be_folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
                    let leaf = entry.file_name().to_bytes();
                    if !matches!(leaf, b"." | b"..") && (may_be_folder || !only_folders) {
                        names.push(leaf.to_vec());
                    }
                }
            }
        }
        (names, Ok(true))
    }

    /// Returns true if an entry is a folder.
    fn has_folder(&self, leaf: &[u8]) -> bool {
        let seen = rustix::fs::statat(&self.entries, leaf, AtFlags::SYMLINK_NOFOLLOW);
        seen.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }
}

/// The known facts about a name that was read.
#[derive(Debug, PartialEq)]
pub(super) enum Seen {
    Found(Box<FoundEntry>),
    Failed(RelativeName, Failure),
    /// There was no room for more of it: the walk looks at it.
    Unseen {
        inner: RelativeName,
        is_folder: bool,
    },
}

/// What was read of a folder, in the folder's order.
#[derive(Debug, Default)]
pub(super) struct Portion {
    pub(super) seen: Vec<Seen>,
    /// The folders among it. They are to be read too.
    pub(super) folders: Vec<RelativeName>,
    /// The memory that it takes, about.
    pub(super) bytes: usize,
}

impl Portion {
    /// Looks at an entry of a folder, unless it is left alone.
    pub(super) fn look(&mut self, tree: &Tree, folder: &OpenFolder, leaf: &[u8]) {
        let Some(inner) = folder.name.join(leaf) else {
            return self.fail(folder.name.clone(), Failure::plain(Operation::Name));
        };
        self.bytes += size_of::<FoundEntry>() + 2 * inner.as_bytes().len();
        let seen = match self.bytes < MOST_OF_PORTION {
            true => match tree.look_in(folder.entries.as_fd(), leaf, &inner) {
                Ok(found) => Seen::Found(Box::new(found)),
                Err(failure) => Seen::Failed(inner.clone(), failure),
            },
            false => Seen::Unseen { inner: inner.clone(), is_folder: folder.has_folder(leaf) },
        };
        self.take(tree, inner, seen);
    }

    fn take(&mut self, tree: &Tree, inner: RelativeName, seen: Seen) {
        let is_folder = match &seen {
            Seen::Found(found) => found.is_folder(),
            Seen::Failed(..) => false,
            Seen::Unseen { is_folder, .. } => *is_folder,
        };
        if tree.ignore.ignores(&inner, is_folder) {
            return;
        }
        if let Seen::Found(found) = &seen {
            self.bytes += metadata::bytes(&found.offered.metadata.attributes);
        }
        if is_folder {
            self.folders.push(inner);
        }
        self.seen.push(seen);
    }

    fn fail(&mut self, name: RelativeName, failure: Failure) {
        self.seen.push(Seen::Failed(name, failure));
    }

    /// Adds that a folder cannot be read, or not to its end.
    pub(super) fn fail_folder(&mut self, name: RelativeName, error: &io::Error) {
        self.fail(name, Failure::of(Operation::ReadFolder, error));
    }
}
