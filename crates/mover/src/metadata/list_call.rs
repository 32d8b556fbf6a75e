//! Lists the attributes of an entry of an open folder: by listxattrat(2) where there is that call, otherwise by a path
//! through /proc, which costs a walk for each entry.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, Result};
use rustix::path::Arg;

use super::DESCRIPTORS;

/// The number of listxattrat(2), which Linux has since 6.13: 465. `libc` lacks it for most processors. Calls as new as
/// openat2(2), 437, follow each other in the same order on all processors.
const LISTXATTRAT: libc::c_long = libc::SYS_openat2 + (465 - 437);

/// The call, and whether it can be made.
#[derive(Debug)]
pub(super) struct ListCall {
    /// True once it was refused: it is not made again.
    is_refused: AtomicBool,
}

/// The call of this process.
pub(super) static LIST_CALL: ListCall = ListCall::new();

impl ListCall {
    const fn new() -> Self {
        ListCall { is_refused: AtomicBool::new(false) }
    }

    /// Lists the names of an entry's attributes into `room`, each with a NUL after it, and returns their length. A symbolic link
    /// is the entry itself.
    pub(super) fn list(&self, folder: BorrowedFd<'_>, leaf: &[u8], room: &mut [u8]) -> Result<usize> {
        if !self.is_refused.load(Ordering::Relaxed) {
            match list_at(folder, leaf, room) {
                // An older kernel lacks the call, or a filter of system calls does not know it, and returns one or the other. If it
                // is the file system that refuses, the other way says so too.
                Err(Errno::NOSYS | Errno::PERM) => self.is_refused.store(true, Ordering::Relaxed),
                listed => return listed,
            }
        }
        rustix::fs::llistxattr(path(folder, leaf), room)
    }
}

/// Returns the path of an entry of an open folder. System calls for the attributes of such an entry are new in Linux 6.13. Most
/// entries have no attributes, so only their list is asked for in that way where it can be ([`LIST_CALL`]).
pub(super) fn path(folder: BorrowedFd<'_>, leaf: &[u8]) -> Vec<u8> {
    let mut path = format!("{DESCRIPTORS}/{}/", folder.as_raw_fd()).into_bytes();
    path.extend_from_slice(leaf);
    path
}

fn list_at(folder: BorrowedFd<'_>, leaf: &[u8], room: &mut [u8]) -> Result<usize> {
    let (folder, flags) = (folder.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    leaf.into_with_c_str(|leaf| {
        // SAFETY: the name ends with a NUL, the kernel writes no more than its length into the room, and both live until the call
        // returns.
        let listed = unsafe {
            libc::syscall(LISTXATTRAT, folder, leaf.as_ptr(), flags, room.as_mut_ptr(), room.len())
        };
        let failed = |_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO);
        usize::try_from(listed).map_err(failed)
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    use rustix::fs::XattrFlags;
    use tempfile::TempDir;

    use super::*;
    use crate::beneath::Root;
    use crate::beneath::tests::deny;
    use crate::metadata::Place;
    use crate::name::RelativeName;

    /// Returns a folder with a file, which has an attribute if the file system takes it, and a link to the file.
    fn folder() -> TempDir {
        let all = tempfile::tempdir().unwrap();
        let file = all.path().join("file");
        std::fs::write(&file, "").unwrap();
        symlink("file", all.path().join("link")).unwrap();
        let _ = rustix::fs::lsetxattr(&file, "user.a", b"1", XattrFlags::empty());
        all
    }

    /// Returns the names of the attributes of entries, and why they cannot be listed.
    fn listed(call: &ListCall, all: &TempDir) -> Vec<Result<Vec<u8>>> {
        // A descriptor that only names the folder is enough.
        let folder = Root::open(all.path()).unwrap().folder(&RelativeName::root()).unwrap();
        let one = |leaf: &[u8]| {
            let mut room = [0; 999];
            call.list(folder.as_fd(), leaf, &mut room).map(|length| room[..length].to_vec())
        };
        let too_short = call.list(folder.as_fd(), b"file", &mut [0; 3]).map(|_| Vec::new());
        vec![one(b"file"), one(b"link"), one(b"."), one(b"none"), too_short]
    }

    /// Returns what llistxattr(2) says of the same entries, by the path of their folder.
    fn expected(all: &TempDir) -> Vec<Result<Vec<u8>>> {
        let one = |name: &str, length: usize| {
            let mut room = vec![0; length];
            let listed = rustix::fs::llistxattr(all.path().join(name), room.as_mut_slice());
            listed.map(|length| room[..length].to_vec())
        };
        let too_short = one("file", 3).map(|_| Vec::new());
        vec![one("file", 999), one("link", 999), one(".", 999), one("none", 999), too_short]
    }

    #[test]
    fn both_ways_list_the_same() {
        let all = folder();
        let through_proc = ListCall { is_refused: AtomicBool::new(true) };
        assert_eq!(listed(&ListCall::new(), &all), expected(&all));
        assert_eq!(listed(&through_proc, &all), expected(&all));
    }

    /// A kernel before 6.13 lacks the call, and the filter of a container may know no such call.
    #[test]
    fn without_the_call_the_names_are_listed_through_proc() {
        for errno in [libc::ENOSYS, libc::EPERM] {
            let seen = std::thread::spawn(move || {
                let (all, call) = (folder(), ListCall::new());
                let expected = expected(&all);
                deny(LISTXATTRAT, errno);
                (listed(&call, &all) == expected, call.is_refused.into_inner())
            });
            assert_eq!(seen.join().expect("no panic"), (true, true), "{errno}");
        }
    }

    #[test]
    fn with_the_call_no_path_through_proc_is_walked() {
        let all = folder();
        let folder = Root::open(all.path()).unwrap();
        if matches!(list_at(folder.as_fd(), b"file", &mut [0; 999]), Err(Errno::NOSYS | Errno::PERM)) {
            return;
        }
        let listed = std::thread::spawn(move || {
            deny(libc::SYS_llistxattr, libc::EIO);
            Place::named(folder.as_fd(), b"file").list()
        });
        assert_ne!(listed.join().expect("no panic"), Err(Errno::IO));
    }
}
