//! Opens each folder on a path, starting from the root, and checks that no other user can change it.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;

use crate::folder::{Error, is_mine};

/// Largest number of symbolic links on one path, as in the kernel (path_resolution(7)).
const LINKS: usize = 40;

/// Opens the folder at `path` if no user but root and this one can make `path` lead to another folder. A folder on the
/// path may be writable by other users only if it has the sticky bit, as /tmp has.
///
/// # Errors
/// Returns an error if another user can change one of the names, or if the folder cannot be opened.
pub fn open_trusted(path: &Path) -> Result<OwnedFd, Error> {
    let path = std::path::absolute(path).map_err(|source| Error::Io {
        what: "find",
        path: path.to_owned(),
        source,
    })?;
    let mut names: VecDeque<OsString> = names_of(&path);
    let (mut at, mut seen) = (step(CWD, OsStr::new("/"), Path::new("/"))?.0, PathBuf::from("/"));
    let mut links = 0;
    while let Some(name) = names.pop_front() {
        let here = seen.join(&name);
        let (fd, stat) = step(&at, &name, &here)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            (at, seen) = (fd, here);
            continue;
        }
        links += 1;
        let target = target(&fd).ok().filter(|_| links <= LINKS);
        let target = target.ok_or_else(|| Error::io("follow", &here, Errno::LOOP))?;
        if target.is_absolute() {
            (at, seen) = (step(CWD, OsStr::new("/"), Path::new("/"))?.0, PathBuf::from("/"));
        }
        names_of(&target).into_iter().rev().for_each(|name| names.push_front(name));
    }
    Ok(at)
}

fn names_of(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

fn target(link: &OwnedFd) -> Result<PathBuf, Errno> {
    Ok(PathBuf::from(OsString::from_vec(readlinkat(link, "", Vec::new())?.into_bytes())))
}

/// Opens the folder or symbolic link `name` in the folder `above`. Returns an error if another user can change it.
fn step(above: impl std::os::fd::AsFd, name: &OsStr, path: &Path) -> Result<(OwnedFd, Stat), Error> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(above, name, flags, Mode::empty()).map_err(|errno| Error::io("open", path, errno))?;
    let stat = fstat(&fd).map_err(|errno| Error::io("stat", path, errno))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_open =
        kind == FileType::Directory && stat.st_mode & 0o022 != 0 && stat.st_mode & libc::S_ISVTX == 0;
    match kind {
        FileType::Directory | FileType::Symlink if is_open || (stat.st_uid != 0 && !is_mine(&stat)) => {
            Err(Error::refused(path, "can be changed by other users: choose another folder"))
        }
        FileType::Directory | FileType::Symlink => Ok((fd, stat)),
        _ => Err(Error::refused(path, "is no folder")),
    }
}
