//! Walks the source's tree. Folders are read one after the other, so that no list of the whole tree is ever in memory.

mod named;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::beneath::Root;
use crate::name::RelativeName;
use crate::select::{IgnoreRules, NameList};
use crate::wire::{EntryKind, Failure, OfferedEntry, Operation, Timestamp};

/// Where an entry is in the source, and what the file system said of it when it was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourcePlace {
    /// The number of the tree.
    pub(crate) tree: usize,
    /// The name in that tree.
    pub(crate) inner: RelativeName,
    pub(crate) identity: FileIdentity,
}

/// What tells a file from another one, and from itself before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: Timestamp,
    /// The time of the last change of content or metadata (st_ctime), which no program can set.
    pub(crate) changed: Timestamp,
}

/// An entry that the walk has found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundEntry {
    pub(crate) offered: OfferedEntry,
    pub(crate) place: SourcePlace,
}

impl FoundEntry {
    /// Returns the length of a file; zero for other entries.
    pub(crate) fn size(&self) -> u64 {
        match self.offered.kind {
            EntryKind::File { size } => size,
            EntryKind::Folder | EntryKind::Symlink { .. } => 0,
        }
    }
}

// The types of these members differ between processors.
#[allow(clippy::unnecessary_cast)]
impl FileIdentity {
    pub(crate) fn of(stat: &Stat) -> Self {
        let time = |seconds, nanos| Timestamp { seconds, nanos };
        FileIdentity {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }
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
    /// The entries that are left alone. The one at which the walk begins was named by the user, and is none of them.
    pub(crate) ignore: Arc<IgnoreRules>,
    /// The names that alone are walked, with the folders that they are in; `None` for all.
    pub(crate) only: Option<Arc<NameList>>,
}

impl Tree {
    /// Walks all entries of the tree; with `only_folders`, only its folders. Each folder comes before its entries.
    pub(crate) fn walk(&self, only_folders: bool, visitor: &mut dyn Visitor) {
        let mut walk = Walk { tree: self, only_folders, folders: Vec::new(), visitor };
        match &self.only {
            Some(names) => walk.named(names),
            None => walk.all_from(&RelativeName::root()),
        };
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
        let identity = FileIdentity::of(&stat);
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File { size: identity.size },
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => {
                let to = rustix::fs::readlinkat(folder, leaf, Vec::new()).map_err(open)?;
                EntryKind::Symlink { to: to.into_bytes() }
            }
            _ => return Err(Failure::plain(Operation::Special)),
        };
        Ok(FoundEntry {
            offered: OfferedEntry {
                name: target,
                kind,
                mode: stat.st_mode & 0o777,
                modified: identity.modified,
            },
            place: SourcePlace { tree: self.number, inner: inner.clone(), identity },
        })
    }

    /// Opens a file of the tree. It never waits for another program, as a FIFO would.
    pub(crate) fn open(&self, inner: &RelativeName) -> io::Result<OwnedFd> {
        let name = self.start.join(inner.as_bytes()).ok_or(io::ErrorKind::InvalidFilename)?;
        self.root.file(&name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    /// Opens a folder of the tree, to read its entries.
    pub(crate) fn entries(&self, folder: &RelativeName) -> io::Result<Dir> {
        let name = self.start.join(folder.as_bytes()).ok_or(io::ErrorKind::InvalidFilename)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(Dir::new(self.root.file(&name, flags)?)?)
    }
}

/// A walk under way.
struct Walk<'a> {
    tree: &'a Tree,
    only_folders: bool,
    /// The folders that are to be read.
    folders: Vec<RelativeName>,
    visitor: &'a mut dyn Visitor,
}

impl Walk<'_> {
    /// Takes an entry and all that is below it. Returns false to end the walk.
    fn all_from(&mut self, start: &RelativeName) -> bool {
        let mut goes_on = self.take(start, self.tree.look(start));
        // A tree has as many folders as it has: each is read once.
        while let Some(folder) = self.folders.pop().filter(|_| goes_on) {
            goes_on = self.read(&folder);
        }
        goes_on
    }

    /// Takes an entry that was looked at, and adds a folder to those that are to be read. Returns false to end the walk.
    fn take(&mut self, inner: &RelativeName, seen: Result<FoundEntry, Failure>) -> bool {
        match seen {
            Ok(found) => {
                let is_folder = found.offered.kind == EntryKind::Folder;
                if is_folder {
                    self.folders.push(inner.clone());
                }
                if is_folder || !self.only_folders { self.visitor.found(found) } else { true }
            }
            Err(failure) => self.fail(inner, failure),
        }
    }

    /// Takes the entries of a folder. Looks at them in the open folder, which is not opened anew for each. Returns false to
    /// end the walk.
    fn read(&mut self, folder: &RelativeName) -> bool {
        let mut entries = match self.tree.entries(folder) {
            Ok(entries) => entries,
            Err(error) => return self.fail(folder, Failure::of(Operation::ReadFolder, &error)),
        };
        while let Some(entry) = entries.read() {
            let (Ok(entry), Ok(open)) = (entry, entries.fd()) else {
                return self.fail(folder, Failure::plain(Operation::ReadFolder));
            };
            let leaf = entry.file_name().to_bytes();
            let may_be_folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
            if matches!(leaf, b"." | b"..") || (self.only_folders && !may_be_folder) {
                continue;
            }
            let goes_on = match folder.join(leaf) {
                Some(inner) => self.consider(&inner, self.tree.look_in(open, leaf, &inner)),
                None => self.fail(folder, Failure::plain(Operation::Name)),
            };
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// Takes an entry of a folder, unless it is one that is left alone. Returns false to end the walk.
    fn consider(&mut self, inner: &RelativeName, seen: Result<FoundEntry, Failure>) -> bool {
        let is_folder = seen.as_ref().is_ok_and(|found| found.offered.kind == EntryKind::Folder);
        self.tree.ignore.ignores(inner, is_folder) || self.take(inner, seen)
    }

    /// Names an entry that failed, unless only folders are walked: all failures are known then.
    fn fail(&mut self, inner: &RelativeName, failure: Failure) -> bool {
        let name = self.tree.target.join(inner.as_bytes()).unwrap_or_default();
        self.only_folders || self.visitor.failed(name, failure)
    }
}

/// Returns what a symbolic link says.
pub(crate) fn link(root: &Root, name: &RelativeName) -> io::Result<Vec<u8>> {
    let (folder, leaf) = name.split().ok_or(io::ErrorKind::InvalidInput)?;
    let folder: OwnedFd = root.folder(&folder)?;
    Ok(rustix::fs::readlinkat(folder.as_fd(), leaf, Vec::new())?.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[derive(Default)]
    struct Seen {
        found: BTreeMap<String, EntryKind>,
        failed: Vec<(String, Failure)>,
    }

    impl Visitor for Seen {
        fn found(&mut self, entry: FoundEntry) -> bool {
            let name = String::from_utf8_lossy(entry.offered.name.as_bytes()).into_owned();
            self.found.insert(name, entry.offered.kind);
            true
        }

        fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
            self.failed.push((String::from_utf8_lossy(name.as_bytes()).into_owned(), failure));
            true
        }
    }

    fn walked(folder: &std::path::Path, only_folders: bool) -> Seen {
        walked_without(folder, only_folders, &[])
    }

    fn walked_without(folder: &std::path::Path, only_folders: bool, ignored: &[&[u8]]) -> Seen {
        walked_of(folder, only_folders, ignored, None)
    }

    fn walked_of(
        folder: &std::path::Path,
        only_folders: bool,
        ignored: &[&[u8]],
        only: Option<&[&[u8]]>,
    ) -> Seen {
        let parse = |name: &&[u8]| RelativeName::parse(name).expect("a name");
        let only = only.map(|names| Arc::new(NameList::new(names.iter().map(parse).collect())));
        let mut seen = Seen::default();
        let (root, target) = (Root::open(folder).unwrap(), RelativeName::parse(b"t").expect("a name"));
        let ignore = Arc::new(IgnoreRules::parse(ignored).unwrap());
        Tree { number: 0, root, start: RelativeName::root(), target, ignore, only }
            .walk(only_folders, &mut seen);
        seen
    }

    #[test]
    fn a_tree_is_walked_with_its_links_and_without_what_is_special() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/f"), "12345").unwrap();
        symlink("/etc", at("a/out")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let seen = walked(folder.path(), false);
        let names: Vec<&str> = seen.found.keys().map(String::as_str).collect();
        assert_eq!(names, ["t", "t/a", "t/a/b", "t/a/b/f", "t/a/out"]);
        assert_eq!(seen.found["t/a/b/f"], EntryKind::File { size: 5 });
        assert_eq!(seen.found["t/a/out"], EntryKind::Symlink { to: b"/etc".to_vec() });
        assert_eq!(seen.failed, [("t/pipe".to_owned(), Failure::plain(Operation::Special))]);
        let folders = walked(folder.path(), true);
        assert_eq!(folders.found.keys().collect::<Vec<_>>(), ["t", "t/a", "t/a/b"]);
        assert!(folders.failed.is_empty());
    }

    /// What is left alone is not named as failed either, and a folder is not entered.
    #[test]
    fn what_is_ignored_is_not_looked_into() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(at(b"a/build/deep")).unwrap();
        std::fs::create_dir(at(b"t")).unwrap();
        for name in [&b"a/build/deep/f"[..], b"a/x.o", b"a/keep.o", b"a/odd\xff", b"a/f"] {
            std::fs::write(at(name), "f").unwrap();
        }
        rustix::fs::mknodat(rustix::fs::CWD, at(b"pipe"), FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        // The name that the folder gets at the target is none that is asked about.
        let ignored = [&b"build/"[..], b"*.o", b"!keep.o", b"*\xff", b"/pipe", b"/t"];
        let seen = walked_without(folder.path(), false, &ignored);
        assert_eq!(seen.found.keys().collect::<Vec<_>>(), ["t", "t/a", "t/a/f", "t/a/keep.o"]);
        assert!(seen.failed.is_empty(), "{:?}", seen.failed);
        let folders = walked_without(folder.path(), true, &ignored);
        assert_eq!(folders.found.keys().collect::<Vec<_>>(), ["t", "t/a"]);
    }

    #[test]
    fn only_what_is_named_is_walked_with_its_folders() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b/c")).unwrap();
        std::fs::create_dir_all(at("whole/inner")).unwrap();
        for name in ["a/f", "a/b/g", "a/b/c/h", "a/skip.o", "top", "whole/inner/i", "whole/j"] {
            std::fs::write(at(name), "f").unwrap();
        }
        symlink("b", at("a/link")).unwrap();
        let names = [&b"a/b/g"[..], b"whole", b"a/none", b"a/link/g", b"a/skip.o", b"whole/j", b"build/x"];
        std::fs::create_dir(at("build")).unwrap();
        let ignored = [&b"*.o"[..], b"build/"];
        let seen = walked_of(folder.path(), false, &ignored, Some(&names));
        let found: Vec<&str> = seen.found.keys().map(String::as_str).collect();
        let expected =
            ["t", "t/a", "t/a/b", "t/a/b/g", "t/whole", "t/whole/inner", "t/whole/inner/i", "t/whole/j"];
        assert_eq!(found, expected);
        // What is missing is named, and no link leads to what is named below it.
        let failed: Vec<&str> = seen.failed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(failed, ["t/a/link/g", "t/a/none"]);
        let folders = walked_of(folder.path(), true, &ignored, Some(&names));
        assert_eq!(
            folders.found.keys().collect::<Vec<_>>(),
            ["t", "t/a", "t/a/b", "t/whole", "t/whole/inner"]
        );
        assert!(folders.failed.is_empty());
        let nothing = walked_of(folder.path(), false, &[], Some(&[]));
        assert_eq!(nothing.found.keys().collect::<Vec<_>>(), ["t"]);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_named() {
        if rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let shut = folder.path().join("shut");
        std::fs::create_dir(&shut).unwrap();
        std::fs::set_permissions(&shut, PermissionsExt::from_mode(0o0)).unwrap();
        let seen = walked(folder.path(), false);
        assert_eq!(seen.failed[0].0, "t/shut");
    }
}
