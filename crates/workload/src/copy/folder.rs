//! The folder of one end of a trial: its location and its removal.
//!
//! Each place has one folder per user, which no other user can enter. Each end of a trial has a folder in it, with a
//! name that no other process can guess. The end locks its folder, and removes it however the trial ends. A folder
//! without a lock was left by a killed process. The user's next trial removes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landspeed_kernel::folder::PrivateFolder;
use landspeed_record::units::Bytes;
use rustix::fs::{FlockOperation, flock, fstatfs, fstatvfs};
use rustix::io::Errno;

use super::tree::TreePlan;
use crate::Error;
use crate::idle::memory;

/// The file systems in memory: tmpfs and ramfs (statfs(2)).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
/// Free space that must remain on the disk or in memory. A file system in memory may be smaller, and may be filled
/// completely.
const BESIDE: Bytes = Bytes::mib(64);
/// The space of a file besides its content: its inode, its name, and the rest of its last block.
const EACH: Bytes = Bytes::kib(8);
/// The longest wait for a lock. Another process holds it only for a few system calls, unless the process is stopped
/// (SIGSTOP).
const LOCK_PATIENCE: Duration = Duration::from_secs(30);
/// Interval between attempts to take a lock.
const LOOK: Duration = Duration::from_millis(2);

/// A place for a tree.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) name: &'static str,
    /// The folder in which every user may create folders and none may remove those of others; `None` if the place
    /// stores nothing.
    above: Option<&'static str>,
    is_in_memory: bool,
}

static PLACES: [Place; 3] = [
    Place { name: "tmpfs", above: Some("/dev/shm"), is_in_memory: true },
    Place { name: "disk", above: Some("/var/tmp"), is_in_memory: false },
    Place { name: "null", above: None, is_in_memory: true },
];

/// The names of all places, the default first.
pub(super) const NAMES: &[&str] = &["tmpfs", "disk", "null"];

impl Place {
    /// Returns the place with this name, which must be one of [`NAMES`].
    pub(super) fn named(name: &str) -> &'static Place {
        PLACES.iter().find(|place| place.name == name).unwrap_or(&PLACES[0])
    }

    /// Returns this user's folder; `None` if the place stores nothing.
    fn base(&self) -> Option<PathBuf> {
        let user = rustix::process::geteuid().as_raw();
        Some(Path::new(self.above?).join(format!("landspeed-copy-{user}")))
    }

    /// Returns the parent of this user's folder, for messages.
    fn above(&self) -> &'static str {
        self.above.unwrap_or_default()
    }

    /// Checks that the folder is in memory or on a disk, as the name of the place says.
    fn check_kind(&self, folder: &PrivateFolder) -> Result<(), Error> {
        let about = fstatfs(folder).map_err(|errno| refused("look at", folder, errno))?;
        let is_in_memory = IN_MEMORY.contains(&(about.f_type as u64 & 0xffff_ffff));
        if is_in_memory == self.is_in_memory {
            return Ok(());
        }
        let found = if is_in_memory { "in memory" } else { "not in memory" };
        let (name, above) = (self.name, self.above());
        Err(Error::Copy(format!(
            "{above} is {found} on this host, so there is no {name}: choose another source or target"
        )))
    }

    /// Checks that the folder has space for a tree.
    fn check_room(&self, folder: &PrivateFolder, tree: &TreePlan) -> Result<(), Error> {
        let about = fstatvfs(folder).map_err(|errno| refused("look at", folder, errno))?;
        let room = about.f_bavail.saturating_mul(about.f_frsize);
        let spare = |all: u64| all.saturating_sub(BESIDE.0);
        let room = if self.is_in_memory { room.min(spare(memory::available()?.0)) } else { spare(room) };
        let (free, needed) = (Bytes(room), Bytes(tree.bytes + tree.files * EACH.0));
        let above = self.above();
        if free < needed {
            let why = format!("{above} has {free} of room, and the tree takes {needed}");
            return Err(Error::Copy(format!("{why}: choose a smaller one (bytes, files)")));
        }
        // A file system without a fixed number of inodes reports zero.
        if about.f_files > 0 && about.f_favail <= tree.files {
            let why = format!("{above} takes {} more files, and the tree has {}", about.f_favail, tree.files);
            return Err(Error::Copy(format!("{why}: choose fewer files")));
        }
        Ok(())
    }
}

/// The folder of one end of a trial. Dropping it removes it with its content.
#[derive(Debug)]
pub(super) struct TrialFolder(PrivateFolder);

impl TrialFolder {
    /// Creates a folder with space for a tree; `None` at a place that stores nothing. First removes, at every place,
    /// what killed processes have left.
    pub(super) fn make(place: &Place, tree: &TreePlan) -> Result<Option<Self>, Error> {
        PLACES.iter().filter_map(Place::base).for_each(|base| sweep(&base));
        let Some(base) = place.base() else { return Ok(None) };
        let folder = TrialFolder::below(&base)?;
        place.check_kind(&folder.0)?;
        place.check_room(&folder.0, tree)?;
        Ok(Some(folder))
    }

    fn below(base: &Path) -> Result<Self, Error> {
        // Another user may have created a folder with the name of this user's folder.
        let failed = |error: landspeed_kernel::folder::Error| {
            Error::Copy(format!("{error}, or choose another source or target"))
        };
        let base = PrivateFolder::make(base).map_err(failed)?;
        // The lock ends when `base` is dropped. Until then, no other trial can sweep before the new folder is locked.
        lock(&base).map_err(|errno| refused("lock", &base, errno))?;
        let name = format!("{}-{:016x}", std::process::id(), rand::random::<u64>());
        let folder = TrialFolder(base.make_inside(&name).map_err(failed)?);
        lock(&folder.0).map_err(|errno| refused("lock", &folder.0, errno))?;
        Ok(folder)
    }

    /// Returns the path of the tree, which does not exist yet.
    pub(super) fn tree(&self) -> PathBuf {
        self.0.path().join("tree")
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        // The next trial removes what this call cannot.
        let _ = fs::remove_dir_all(self.0.path());
    }
}

/// Waits for the lock of a folder, at most [`LOCK_PATIENCE`].
fn lock(folder: &PrivateFolder) -> Result<(), Errno> {
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => std::thread::sleep(LOOK),
            taken => return taken,
        }
    }
}

/// Removes the folders below `base` that killed processes have left.
fn sweep(base: &Path) {
    // A folder that is missing or belongs to another user has nothing of ours.
    let Ok(Some(base)) = PrivateFolder::open(base) else { return };
    if lock(&base).is_err() {
        return;
    }
    // From here on this process holds their locks, so that no other trial removes them too.
    let left = unlocked(&base);
    drop(base);
    for folder in left {
        let _ = fs::remove_dir_all(folder.path());
    }
}

/// Locks and returns the folders inside whose locks are free.
fn unlocked(base: &PrivateFolder) -> Vec<PrivateFolder> {
    let names = base.names().unwrap_or_default();
    let folders = names.iter().filter_map(|name| base.open_inside(name.to_str()?).ok()?);
    folders.filter(|folder| flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok()).collect()
}

fn refused(operation: &'static str, folder: &PrivateFolder, errno: Errno) -> Error {
    Error::refused(operation, folder.path().display(), errno.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_with_its_trial_and_leftovers_by_the_next_one() {
        let all = tempfile::tempdir().expect("a folder");
        let base = all.path().join("own");
        let folder = TrialFolder::below(&base).expect("a folder");
        fs::create_dir(folder.tree()).expect("a tree");
        fs::write(folder.tree().join("file"), "f").expect("a file");
        // As after a killed process: the lock is free.
        let dead = base.join("1-dead");
        fs::create_dir_all(dead.join("tree")).expect("a folder");
        fs::set_permissions(&dead, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
        sweep(&base);
        assert!(!dead.exists() && folder.tree().join("file").exists());
        let other = TrialFolder::below(&base).expect("another trial at the same time");
        assert_ne!(other.tree(), folder.tree());
        drop((folder, other));
        assert_eq!(fs::read_dir(&base).expect("the user's folder").count(), 0);
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused_and_stays() {
        let all = tempfile::tempdir().expect("a folder");
        let base = all.path().join("own");
        fs::create_dir_all(base.join("inner")).expect("a folder");
        fs::set_permissions(&base, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
        let why = TrialFolder::below(&base).expect_err("it is open to others").to_string();
        assert!(why.contains("is open to others"), "{why}");
        sweep(&base);
        assert!(base.join("inner").exists());
    }

    #[test]
    fn a_tree_that_does_not_fit_is_refused_before_it_is_made() {
        let all = tempfile::tempdir().expect("a folder");
        let folder = TrialFolder::below(&all.path().join("own")).expect("a folder");
        let place = |is_in_memory| Place { is_in_memory, ..PLACES[1] };
        for is_in_memory in [false, true] {
            let tree = |bytes| TreePlan { files: 1, bytes };
            place(is_in_memory).check_room(&folder.0, &tree(1)).expect("room for a byte");
            let why = place(is_in_memory).check_room(&folder.0, &tree(1 << 60)).expect_err("no room");
            assert!(why.to_string().contains("of room, and the tree takes"), "{why}");
        }
        let kinds = [false, true].map(|kind| place(kind).check_kind(&folder.0).is_ok());
        assert_eq!(kinds.iter().filter(|is_right| **is_right).count(), 1, "it is one of them");
        assert_eq!(NAMES.to_vec(), PLACES.iter().map(|place| place.name).collect::<Vec<_>>());
    }
}
