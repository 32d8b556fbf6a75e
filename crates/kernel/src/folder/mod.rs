//! Folders that only one user can enter.
//!
//! A [`PrivateFolder`] keeps a descriptor of the folder open and opens all files inside by this descriptor. Another
//! user therefore cannot make landspeed use a different folder by renaming. A folder is refused if other users can
//! enter it or can write to a folder above it.

mod error;
mod walk;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, fsync, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

pub use error::Error;
pub use walk::open_trusted;

/// Returns the reason why a folder or file with these attributes is not private to this user, and a remedy. The remedy
/// is never to remove the folder or file, because it may be in use.
pub fn not_ours(stat: &Stat) -> String {
    let me = rustix::process::geteuid().as_raw();
    match is_mine(stat) {
        true => "is open to others: inspect it, then close it with `chmod go=`, unless other programs use it"
            .to_owned(),
        false => {
            format!("belongs to another user (uid {}, this is {me}): run landspeed as that user", stat.st_uid)
        }
    }
}

/// Environment variable that names the folder to use in place of /run/landspeed, for tests and for hosts without a
/// writable /run.
pub const RUN_DIR_VARIABLE: &str = "LANDSPEED_RUN_DIR";

/// Returns the folder for files that must not survive a reboot: /run/landspeed, unless [`RUN_DIR_VARIABLE`] names
/// another folder.
pub fn run_dir() -> PathBuf {
    let given = std::env::var_os(RUN_DIR_VARIABLE).filter(|value| !value.is_empty());
    given.map_or_else(|| "/run/landspeed".into(), PathBuf::from)
}

/// An open folder that only its owner can enter.
#[derive(Debug)]
pub struct PrivateFolder {
    fd: OwnedFd,
    path: PathBuf,
}

impl PrivateFolder {
    /// Opens a folder, and creates it if it is missing. The folders above it must exist.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be opened, or if other users can enter or replace it.
    pub fn make(path: &Path) -> Result<PrivateFolder, Error> {
        let (above, name) = parted(path)?;
        made(open_trusted(above)?.as_fd(), name, path)
    }

    /// Opens a folder, and creates it and the folder above it if they are missing. Other users may enter the folder
    /// above.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be opened, or if other users can enter or replace it.
    pub fn make_both(path: &Path) -> Result<PrivateFolder, Error> {
        if let Some(above) = path.parent() {
            // An error needs no handling here: if the folder above is still missing, `make` returns an error.
            let _ = std::fs::DirBuilder::new().mode(0o755).create(above);
        }
        PrivateFolder::make(path)
    }

    /// Opens a folder, or returns `None` if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be opened, or if other users can enter or replace it.
    pub fn open(path: &Path) -> Result<Option<PrivateFolder>, Error> {
        let (above, name) = parted(path)?;
        opened(open_trusted(above)?.as_fd(), name, path)
    }

    /// Opens a folder inside this one, and creates it if it is missing.
    ///
    /// # Errors
    /// Returns an error if the inner folder cannot be opened, or if other users can enter it.
    pub fn make_inside(&self, name: &str) -> Result<PrivateFolder, Error> {
        made(self.as_fd(), Path::new(name), &self.path.join(name))
    }

    /// Opens a folder inside this one, or returns `None` if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the inner folder cannot be opened, or if other users can enter it.
    pub fn open_inside(&self, name: &str) -> Result<Option<PrivateFolder>, Error> {
        opened(self.as_fd(), Path::new(name), &self.path.join(name))
    }

    /// Returns a second handle of the same folder.
    ///
    /// # Errors
    /// Returns an error if this process can open no more files.
    pub fn try_clone(&self) -> io::Result<PrivateFolder> {
        Ok(PrivateFolder { fd: self.fd.try_clone()?, path: self.path.clone() })
    }

    /// Returns the path by which the folder was opened, for messages. After a rename the path may lead to another
    /// folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path to `name` through the folder's descriptor, for system calls that take only paths, such as
    /// bind(2) on a Unix socket. It needs /proc.
    pub fn through(&self, name: impl AsRef<Path>) -> PathBuf {
        Path::new(&format!("/proc/self/fd/{}", self.fd.as_raw_fd())).join(name)
    }

    /// Returns the type of the entry `name`, or `None` if it does not exist or belongs to another user. Symbolic links
    /// are not followed.
    pub fn own(&self, name: impl AsRef<Path>) -> Option<FileType> {
        let found = statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        is_mine(&found).then(|| FileType::from_raw_mode(found.st_mode))
    }

    /// Returns the names of the folder's entries, sorted.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn names(&self) -> Result<Vec<OsString>, Error> {
        let failed = |errno| Error::io("list", &self.path, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_bytes().to_vec();
            names.extend(Some(OsString::from_vec(name)).filter(|name| name != "." && name != ".."));
        }
        names.sort();
        Ok(names)
    }

    /// Removes a file. It is no error if the file does not exist.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot remove the file.
    pub fn remove(&self, name: impl AsRef<Path>) -> Result<(), Error> {
        match unlinkat(&self.fd, name.as_ref(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(Error::io("remove", &self.path.join(name), errno)),
        }
    }
}

impl AsFd for PrivateFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns true if a file belongs to this user and no other user has permissions on it.
pub fn is_private(stat: &Stat) -> bool {
    is_mine(stat) && stat.st_mode & 0o077 == 0
}

fn is_mine(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

/// Splits a path into the path of the folder above and the last name.
fn parted(path: &Path) -> Result<(&Path, &Path), Error> {
    let name = path.file_name().map(Path::new);
    path.parent().zip(name).ok_or_else(|| Error::refused(path, "is no folder that one user can own"))
}

fn made(above: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<PrivateFolder, Error> {
    match mkdirat(above, name, Mode::RWXU) {
        Ok(()) => sync(above).map_err(|errno| Error::io("fsync", path, errno))?,
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(Error::io("make", path, errno)),
    }
    opened(above, name, path)?.ok_or_else(|| Error::io("open", path, Errno::NOENT))
}

/// Writes the entries of a folder to the disk with fsync(2). Skips a folder that this user may not read, because
/// fsync(2) needs a descriptor that was opened for reading.
fn sync(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    match openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(fd) => fsync(fd),
        Err(Errno::ACCESS) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn opened(above: BorrowedFd<'_>, name: &Path, path: &Path) -> Result<Option<PrivateFolder>, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match openat(above, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        // With O_NOFOLLOW and O_DIRECTORY, the kernel returns ENOTDIR for a symbolic link and for a plain file.
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(Error::refused(
                path,
                "is a symbolic link or no folder: inspect it, then move it away",
            ));
        }
        Err(errno) => return Err(Error::io("open", path, errno)),
    };
    let stat = fstat(&fd).map_err(|errno| Error::io("stat", path, errno))?;
    match is_private(&stat) {
        true => Ok(Some(PrivateFolder { fd, path: path.to_owned() })),
        false => Err(Error::refused(path, not_ours(&stat))),
    }
}

#[cfg(test)]
mod tests;
