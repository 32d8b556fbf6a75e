//! An entry whose metadata are read and set.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::{Errno, Result};

use super::DESCRIPTORS;
use super::bounds::LONGEST;
use super::list_call::{LIST_CALL, path};
use crate::identity::{FileIdentity, Timestamp};

/// The room for most values and lists of names.
const SHORT: usize = 1 << 10;

/// Where an entry is.
pub(crate) enum Place<'a> {
    /// An open file or folder.
    Open(BorrowedFd<'a>),
    /// An entry by its name in an open folder. A symbolic link is the entry itself.
    Named { folder: BorrowedFd<'a>, leaf: &'a [u8] },
}

impl<'a> Place<'a> {
    /// Returns the place of an entry in a folder, for which a descriptor that only names it is enough. `leaf` has no '/'.
    pub(crate) fn named(folder: BorrowedFd<'a>, leaf: &'a [u8]) -> Self {
        Place::Named { folder, leaf }
    }

    /// Returns the names of the attributes, each with a NUL after it.
    pub(super) fn list(&self) -> Result<Vec<u8>> {
        filled(|room| match self {
            Place::Open(file) => rustix::fs::flistxattr(file, room),
            Place::Named { folder, leaf } => LIST_CALL.list(*folder, leaf, room),
        })
    }

    /// Returns the value of an attribute.
    pub(super) fn get(&self, name: &[u8]) -> Result<Vec<u8>> {
        filled(|room| match self {
            Place::Open(file) => rustix::fs::fgetxattr(file, name, room),
            Place::Named { folder, leaf } => rustix::fs::lgetxattr(path(*folder, leaf), name, room),
        })
    }

    pub(super) fn set(&self, name: &[u8], value: &[u8]) -> Result<()> {
        let flags = XattrFlags::empty();
        match self {
            Place::Open(file) => rustix::fs::fsetxattr(file, name, value, flags),
            Place::Named { folder, leaf } => rustix::fs::lsetxattr(path(*folder, leaf), name, value, flags),
        }
    }

    /// Removes an attribute, if it is there.
    pub(super) fn remove(&self, name: &[u8]) -> Result<()> {
        let removed = match self {
            Place::Open(file) => rustix::fs::fremovexattr(file, name),
            Place::Named { folder, leaf } => rustix::fs::lremovexattr(path(*folder, leaf), name),
        };
        if removed == Err(Errno::NODATA) { Ok(()) } else { removed }
    }

    /// Sets the owner and the group, each if it is given.
    pub(super) fn set_owner(&self, user: Option<u32>, group: Option<u32>) -> Result<()> {
        let (user, group) = (user.map(Uid::from_raw), group.map(Gid::from_raw));
        match self {
            Place::Open(file) => rustix::fs::fchown(file, user, group),
            Place::Named { folder, leaf } => {
                rustix::fs::chownat(folder, *leaf, user, group, AtFlags::SYMLINK_NOFOLLOW)
            }
        }
    }

    /// Sets the mode of an entry that is no symbolic link. chmod(2) by name would follow one, and a source can have put one there
    /// meanwhile, with another flow and the same number of an entry: so the entry itself is found first. Only Linux 6.6 has a call
    /// for both (fchmodat2(2)).
    pub(super) fn set_mode(&self, mode: u32) -> Result<()> {
        let mode = Mode::from_raw_mode(mode);
        match self {
            Place::Open(file) => rustix::fs::fchmod(file, mode),
            Place::Named { folder, leaf } => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let entry = rustix::fs::openat(folder, *leaf, flags, Mode::empty())?;
                // A symbolic link is not followed further.
                rustix::fs::chmod(format!("{DESCRIPTORS}/{}", entry.as_raw_fd()), mode)
            }
        }
    }

    /// Returns the time of the last change.
    pub(super) fn modified(&self) -> Result<Timestamp> {
        let stat = match self {
            Place::Open(file) => rustix::fs::fstat(file)?,
            Place::Named { folder, leaf } => rustix::fs::statat(folder, *leaf, AtFlags::SYMLINK_NOFOLLOW)?,
        };
        Ok(FileIdentity::of(&stat).modified)
    }

    /// Sets the time of the last change.
    pub(crate) fn set_modified(&self, modified: Timestamp) -> Result<()> {
        let times = times(modified);
        match self {
            Place::Open(file) => rustix::fs::futimens(file, &times),
            Place::Named { folder, leaf } => {
                rustix::fs::utimensat(folder, *leaf, &times, AtFlags::SYMLINK_NOFOLLOW)
            }
        }
    }
}

/// Returns what `call` fills in: first into room for most answers, then into room for all.
fn filled(call: impl Fn(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut short = [0; SHORT];
    match call(&mut short) {
        Ok(length) => return Ok(short[..length].to_vec()),
        Err(Errno::RANGE) => {}
        Err(error) => return Err(error),
    }
    let mut long = vec![0; LONGEST];
    let length = call(&mut long)?;
    long.truncate(length);
    // Many entries with attributes may wait, and what they hold is counted by length.
    long.shrink_to_fit();
    Ok(long)
}

/// Returns the times that set the modification time, and leave that of the last access.
pub(crate) fn times(modified: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanos.min(999_999_999).into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what `filled` makes of an answer of this length.
    fn answer(length: usize) -> Vec<u8> {
        filled(|room| {
            room.get_mut(..length).ok_or(Errno::RANGE)?.fill(7);
            Ok(length)
        })
        .expect("an answer that fits")
    }

    #[test]
    fn an_answer_takes_no_more_memory_than_it_has_bytes() {
        for length in [0, 1, SHORT, SHORT + 1, LONGEST] {
            let answer = answer(length);
            assert_eq!((answer.len(), answer.capacity()), (length, length));
        }
    }
}
