//! The folder for incomplete files, in the target's folder. No other user can see them. It also has the lock that keeps
//! a second copy out.

mod clean;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dev, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, statat};
use rustix::io::Errno;

use super::direct::DirectWrites;
use super::hard_links::inode;
use crate::Error;
use crate::beneath::Root;
use crate::identity::{FileIdentity, Inode};
use crate::metadata::{shed_inherited, times};
use crate::name::RelativeName;

pub use clean::clean;

/// The name of the folder. No entry with this name is copied into a target's folder.
pub(super) const NAME: &[u8] = b".landspeed-copy";
/// The end of the names of long files, of which a part stays for the next copy.
const PART: &[u8] = b".part";
/// The end of the names of short files and of links, which are sent anew in the next copy.
const SHORT: &[u8] = b".short";
/// The file that says which copy holds the lock.
const HOLDER: &[u8] = b"landspeed-holder";
/// The file that says that a copy has made the target's folder, and has not yet given it what the source's has.
const NEW: &[u8] = b"landspeed-new";
/// The probe folder of [`gives_rights`].
const TRIED: &[u8] = b"landspeed-mode";
/// Why a folder that others may use is refused.
const SHARED: &str = "other users have rights to it";
/// The number of attempts to make the folder while other copies end and remove it.
const TRIES: usize = 16;

/// The folder, which is locked for one copy.
#[derive(Debug)]
pub(super) struct WorkFolder {
    folder: OwnedFd,
    /// The target's folder, from which this one is removed at the end.
    above: OwnedFd,
    /// How pieces of long files are written.
    pub(super) direct: Arc<DirectWrites>,
    /// True if earlier copies have left parts of long files.
    has_parts: bool,
}

impl WorkFolder {
    /// Makes the folder, or opens one of an earlier copy, and locks it.
    pub(super) fn open(root: &Root, path: &Path) -> Result<Self, Error> {
        let path = path.join(".landspeed-copy");
        let failed = |operation| {
            let failed = Error::at(&path, operation);
            move |error: Errno| failed(error.into())
        };
        for _ in 0..TRIES {
            match rustix::fs::mkdirat(root, NAME, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed("create it")(error)),
            }
            let folder = match open_folder(root, NAME) {
                // A copy that ends removes it.
                Err(Errno::NOENT) => continue,
                opened => opened.map_err(failed("open it"))?,
            };
            is_own(&folder, &path)?;
            lock(&folder, &path)?;
            if rustix::fs::fstat(&folder).map_err(failed("read it"))?.st_nlink == 0 {
                continue;
            }
            is_private(&folder, &path)?;
            // Entries that are created in it would inherit the same.
            shed_inherited(folder.as_fd()).map_err(Error::at(&path, "prepare it"))?;
            let above = open_folder(root, b".").map_err(failed("open the folder above it"))?;
            let mut work = WorkFolder { folder, above, direct: Arc::default(), has_parts: false };
            work.write_holder().map_err(Error::at(&path, "write to it"))?;
            work.has_parts = work.remove_short_files().map_err(Error::at(&path, "empty it"))?;
            return Ok(work);
        }
        Err(failed("create it")(Errno::AGAIN))
    }

    fn write_holder(&self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, HOLDER, flags, Mode::RUSR | Mode::WUSR)?;
        let text = format!("process {} of user {}", std::process::id(), rustix::process::geteuid().as_raw());
        rustix::io::write(file, text.as_bytes())?;
        Ok(())
    }

    /// Returns true if a copy has made the target's folder and has not completed it: this one, which `has_made` it, or
    /// an interrupted one before it. The result stays true for the next copy.
    pub(super) fn is_in_new(&self, has_made: bool) -> io::Result<bool> {
        let create = if has_made { OFlags::CREATE } else { OFlags::empty() };
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | create;
        match rustix::fs::openat(&self.folder, NEW, flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::NOENT) => Ok(false),
            opened => Ok(opened.map(|_| true)?),
        }
    }

    /// The target's folder is complete.
    pub(super) fn forget_new(&self) {
        self.remove(NEW);
    }

    /// Creates a file for writing. No other user can reach it, whatever its mode. One that is there is an error.
    pub(super) fn new_file(&self, name: &[u8], mode: Mode) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, name, flags, mode)?)
    }

    /// Opens a file for reading and writing. It is created with this mode if it is missing.
    pub(super) fn file(&self, name: &[u8], mode: Mode) -> io::Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, name, flags, mode)?)
    }

    /// Opens a file that an earlier copy may have left; `None` if there is none.
    pub(super) fn left(&self, name: &[u8]) -> io::Result<Option<OwnedFd>> {
        let mut opened = self.open_as(name, OFlags::RDWR);
        if opened.as_ref().is_err_and(|error| *error == Errno::ACCESS) {
            // It was whole, and had the mode of the source's file already.
            rustix::fs::chmodat(&self.folder, name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
            opened = self.open_as(name, OFlags::RDWR);
        }
        match opened {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file whose content is to be put on stable storage; `None` if its mode forbids that.
    pub(super) fn to_sync(&self, name: &[u8]) -> io::Result<Option<OwnedFd>> {
        // A source can have put a FIFO here meanwhile, with another flow, and to open that would wait.
        match self.open_as(name, OFlags::RDONLY | OFlags::NONBLOCK) {
            Err(Errno::ACCESS) => Ok(None),
            opened => Ok(Some(opened?)),
        }
    }

    fn open_as(&self, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, name, flags, Mode::empty())
    }

    /// Makes a symbolic link.
    pub(super) fn link(&self, to: &[u8], name: &[u8]) -> io::Result<()> {
        self.remove(name);
        Ok(rustix::fs::symlinkat(to, &self.folder, name)?)
    }

    /// Makes a FIFO or a device.
    pub(super) fn special(&self, name: &[u8], kind: FileType, device: Dev) -> io::Result<()> {
        self.remove(name);
        Ok(rustix::fs::mknodat(&self.folder, name, kind, Mode::RUSR | Mode::WUSR, device)?)
    }

    /// Gives an entry of this folder its name at the target, where nothing is. A file system without this call returns EINVAL.
    pub(super) fn put_beside(&self, name: &[u8], folder: impl AsFd, leaf: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(&self.folder, name, folder, leaf, RenameFlags::NOREPLACE)?)
    }

    /// Gives an entry of this folder its name at the target, in place of one that may be there.
    pub(super) fn put_in_place(&self, name: &[u8], folder: impl AsFd, leaf: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.folder, name, folder, leaf)?)
    }

    /// Returns which file an entry of this folder is.
    pub(super) fn inode(&self, name: &[u8]) -> io::Result<Inode> {
        Ok(inode(&statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&self, name: &[u8]) {
        let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Removes the part that an earlier copy may have left of an entry.
    pub(super) fn remove_part(&self, name: &RelativeName) {
        if self.has_parts {
            self.remove(&part(name));
        }
    }

    /// Removes what is left of short files and links. Other names are left, because a user who owns the target's folder
    /// could have replaced this one by the folder of another copy. Returns true if parts of long files are among them.
    fn remove_short_files(&self) -> io::Result<bool> {
        let mut has_parts = false;
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            has_parts |= name.ends_with(PART);
            if name.ends_with(SHORT) {
                self.remove(name);
            }
        }
        Ok(has_parts)
    }
}

impl Drop for WorkFolder {
    /// Removes the folder unless it has parts for the next copy. The folder above keeps its time, which the copy has set.
    fn drop(&mut self) {
        let _ = self.remove_short_files();
        self.remove(HOLDER);
        let before = rustix::fs::fstat(&self.above);
        let removed = rustix::fs::unlinkat(&self.above, NAME, AtFlags::REMOVEDIR);
        if let (Ok(before), Ok(())) = (before, removed) {
            let _ = rustix::fs::futimens(&self.above, &times(FileIdentity::of(&before).modified));
        }
    }
}

impl AsFd for WorkFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

fn open_folder(root: &Root, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(root, name, flags, Mode::empty())
}

fn lock(folder: &OwnedFd, path: &Path) -> Result<(), Error> {
    match rustix::fs::flock(folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            Err(Error::Locked { path: path.display().to_string(), holder: holder(folder) })
        }
        Err(error) => Err(Error::at(path, "lock it")(error.into())),
    }
}

/// Returns true if the entry `name` below `root` is such a folder of a copy that runs now.
pub(crate) fn is_held(root: &Root, name: &RelativeName) -> bool {
    let is_one = name.split().is_some_and(|(_, leaf)| leaf.eq_ignore_ascii_case(NAME));
    let lock = |folder: OwnedFd| rustix::fs::flock(folder, FlockOperation::NonBlockingLockShared);
    is_one && root.folder_of_mount(name).is_ok_and(|folder| lock(folder) == Err(Errno::WOULDBLOCK))
}

/// Returns what the copy that holds the lock says of itself.
fn holder(folder: &OwnedFd) -> String {
    let mut text = [0; 64];
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, HOLDER, flags, Mode::empty());
    let length = file.and_then(|file| rustix::io::read(file, &mut text)).unwrap_or(0);
    String::from_utf8_lossy(&text[..length]).into_owned()
}

/// Returns the name of the incomplete file of a long file, which is the same in the next copy.
pub(super) fn part(name: &RelativeName) -> Vec<u8> {
    let hash = blake3::hash(name.as_bytes()).to_hex();
    [&hash.as_bytes()[..32], PART].concat()
}

/// Returns the name of the incomplete file of a short file or of a link.
pub(super) fn short(entry: u64) -> Vec<u8> {
    [entry.to_string().as_bytes(), SHORT].concat()
}

/// Returns the name of a further name of a file while it is made. No other entry has this name: otherwise a message
/// about the same number on another flow would change that file.
pub(super) fn further(entry: u64) -> Vec<u8> {
    [&b"link-"[..], &short(entry)].concat()
}

/// Checks that the folder is this user's, and that no other one can put anything into it.
fn is_own(folder: &OwnedFd, path: &Path) -> Result<(), Error> {
    let stat = seen(folder, path)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(unsafe_folder(path, "it belongs to another user"));
    }
    if stat.st_mode & 0o022 == 0 { Ok(()) } else { Err(unsafe_folder(path, SHARED)) }
}

/// Checks that no other user can see what is in the folder, unless each can on its file system. The folder is locked: one copy
/// at a time tries that.
fn is_private(folder: &OwnedFd, path: &Path) -> Result<(), Error> {
    let is_private = seen(folder, path)?.st_mode & 0o077 == 0 || gives_rights(folder);
    if is_private { Ok(()) } else { Err(unsafe_folder(path, SHARED)) }
}

fn seen(folder: &OwnedFd, path: &Path) -> Result<Stat, Error> {
    rustix::fs::fstat(folder).map_err(|error| Error::at(path, "read it")(error.into()))
}

fn unsafe_folder(path: &Path, why: &'static str) -> Error {
    Error::UnsafeFolder { path: path.display().to_string(), why }
}

/// Returns true if the file system gives other users rights to each folder, as vfat does: what is complete gets the
/// same. Finds out by a probe folder.
fn gives_rights(folder: &OwnedFd) -> bool {
    // A copy that was killed may have left it.
    let _ = rustix::fs::mkdirat(folder, TRIED, Mode::RWXU);
    let seen = statat(folder, TRIED, AtFlags::SYMLINK_NOFOLLOW);
    let _ = rustix::fs::unlinkat(folder, TRIED, AtFlags::REMOVEDIR);
    seen.is_ok_and(|seen| seen.st_mode & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remains_of_short_files_are_removed_at_the_end() {
        let all = tempfile::tempdir().unwrap();
        let root = Root::open(all.path()).unwrap();
        let open = || WorkFolder::open(&root, all.path()).unwrap();
        let work = open();
        work.file(&short(7), Mode::RUSR).unwrap();
        work.file(b"abc.part", Mode::RUSR).unwrap();
        work.file(b"7", Mode::RUSR).unwrap();
        drop(work);
        let left = std::fs::read_dir(all.path().join(".landspeed-copy")).unwrap().flatten();
        let mut names: Vec<_> = left.map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ["7", "abc.part"], "what no copy has made is left");
        let work = open();
        work.remove(b"abc.part");
        work.remove(b"7");
        drop(work);
        assert_eq!(std::fs::read_dir(all.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sync_does_not_wait_for_a_fifo() {
        let all = tempfile::tempdir().unwrap();
        let root = Root::open(all.path()).unwrap();
        let work = WorkFolder::open(&root, all.path()).unwrap();
        work.special(&short(7), FileType::Fifo, 0).unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        let refuses = |file: Option<OwnedFd>| file.is_some_and(|file| rustix::fs::fdatasync(file).is_err());
        std::thread::spawn(move || done.send(work.to_sync(&short(7)).is_ok_and(refuses)));
        assert_eq!(is_done.recv_timeout(std::time::Duration::from_secs(20)), Ok(true));
    }

    /// A copy that ended between the last piece and the final name has left a file with the mode of the source's.
    #[test]
    fn a_part_whose_mode_forbids_writing_is_opened_anyway() {
        let all = tempfile::tempdir().unwrap();
        let root = Root::open(all.path()).unwrap();
        let work = WorkFolder::open(&root, all.path()).unwrap();
        let part = work.file(b"abc.part", Mode::RUSR | Mode::WUSR).unwrap();
        rustix::fs::fchmod(&part, Mode::empty()).unwrap();
        let is_opened = work.to_sync(b"abc.part").unwrap().is_some();
        assert_eq!(is_opened, rustix::process::geteuid().is_root());
        assert!(work.left(b"abc.part").unwrap().is_some());
        assert!(work.left(b"none").unwrap().is_none());
    }
}
