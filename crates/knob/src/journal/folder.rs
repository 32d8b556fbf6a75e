//! The folder of journals. Only the user who runs landspeed can enter it, and it is never opened through a symbolic
//! link that another user could change.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use landspeed_kernel::folder::{PrivateFolder, is_private, not_ours};
use rustix::fs::{AtFlags, Mode, OFlags, fstat, fsync, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::JournalError;
use super::name::draft_of;

/// Folder of landspeed's state, unless the environment variable [`STATE_DIR_VARIABLE`] names another.
const STATE_DIR: &str = "/var/lib/landspeed";

/// Environment variable that names another state folder, for tests and for hosts without a writable /var/lib.
pub const STATE_DIR_VARIABLE: &str = "LANDSPEED_STATE_DIR";

const JOURNALS: &str = "journal";

/// An open journal folder. Files in it are opened relative to its descriptor, so that no other process can replace the
/// path in between.
#[derive(Debug)]
pub(super) struct JournalFolder(PrivateFolder);

pub(super) fn state_dir() -> PathBuf {
    std::env::var_os(STATE_DIR_VARIABLE).filter(|v| !v.is_empty()).unwrap_or_else(|| STATE_DIR.into()).into()
}

impl JournalFolder {
    /// Opens the journals' folder below `state`. Creates both if they are missing.
    pub(super) fn open_or_make(state: &Path) -> Result<JournalFolder, JournalError> {
        Self::open_path(state, true)?.ok_or_else(|| JournalError::folder(state, "cannot be made"))
    }

    /// Opens the journals' folder below `state`. Returns `None` if there is none.
    pub(super) fn open(state: &Path) -> Result<Option<JournalFolder>, JournalError> {
        Self::open_path(state, false)
    }

    fn open_path(state: &Path, make: bool) -> Result<Option<JournalFolder>, JournalError> {
        let found = match make {
            true => Some(PrivateFolder::make(state)?.make_inside(JOURNALS)?),
            false => match PrivateFolder::open(state)? {
                Some(state) => state.open_inside(JOURNALS)?,
                None => None,
            },
        };
        Ok(found.map(JournalFolder))
    }

    /// Converts an open folder of second copies to a journal folder, because both are used in the same way.
    pub(super) fn of(folder: PrivateFolder) -> JournalFolder {
        JournalFolder(folder)
    }

    pub(super) fn again(&self) -> Result<JournalFolder, JournalError> {
        let again = self.0.try_clone().map_err(|e| JournalError::io("duplicate", self.0.path(), e))?;
        Ok(JournalFolder(again))
    }

    /// Opens a file of the folder for reading and writing. If there is none, creates it if `make` is true, and
    /// returns `None` otherwise.
    pub(super) fn file(&self, name: &str, make: bool) -> Result<Option<OwnedFd>, JournalError> {
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        flags.set(OFlags::CREATE, make);
        let path = self.0.path().join(name);
        match openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => {
                let stat = fstat(&fd).map_err(|e| JournalError::io("stat", &path, e))?;
                let regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
                if !regular || stat.st_nlink > 1 || !is_private(&stat) {
                    let why = if is_private(&stat) { NO_JOURNAL.to_owned() } else { not_ours(&stat) };
                    return Err(JournalError::folder(&path, why));
                }
                Ok(Some(fd))
            }
            Err(Errno::NOENT) if !make => Ok(None),
            Err(Errno::LOOP) => Err(JournalError::folder(&path, "is a symbolic link: remove it")),
            Err(e) => Err(JournalError::io("open", &path, e)),
        }
    }

    /// Returns true if the name still leads to the open file `fd`. Another process may have removed or replaced the
    /// file.
    pub(super) fn is_current(&self, name: &str, fd: impl AsFd) -> bool {
        let named = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        named.is_some_and(|named| identity(fd) == Some((named.st_dev, named.st_ino)))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Returns the folder of landspeed's state, which contains the journals' folder.
    pub(super) fn state(&self) -> PathBuf {
        self.0.path().parent().unwrap_or(self.0.path()).to_owned()
    }

    /// Returns true if this folder's path still leads to this folder.
    pub(super) fn is_reachable(&self) -> bool {
        let named = JournalFolder::open(&self.state()).ok().flatten();
        let same = |named: JournalFolder| Some(identity(&named.0)? == identity(&self.0)?);
        named.and_then(same).unwrap_or(false)
    }

    /// Opens the folder again by its path, and creates it if it is missing.
    pub(super) fn anew(&self) -> Result<JournalFolder, JournalError> {
        Self::open_or_make(&self.state())
    }

    /// Renames a file and makes the change durable. An existing file with the new name is replaced.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), JournalError> {
        self.replace(from, to)?;
        self.sync()
    }

    fn replace(&self, from: &str, to: &str) -> Result<(), JournalError> {
        let renamed = renameat(&self.0, from, &self.0, to);
        renamed.map_err(|e| JournalError::io("rename", &self.path_of(from), e))
    }

    /// Atomically replaces the file called `name` by a new file with these bytes. The change is not durable yet.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<File, JournalError> {
        let draft = draft_of(name);
        let _ = unlinkat(&self.0, &draft, AtFlags::empty());
        let gone = || JournalError::folder(&self.path_of(&draft), "is gone");
        let file = File::from(self.file(&draft, true)?.ok_or_else(gone)?);
        file.write_all_at(bytes, 0).map_err(|e| JournalError::io("write", &self.path_of(&draft), e))?;
        self.replace(&draft, name)?;
        Ok(file)
    }

    /// Removes a file and makes the removal durable. A missing file is not an error.
    pub(super) fn remove(&self, name: &str) -> Result<(), JournalError> {
        self.0.remove(name)?;
        self.sync()
    }

    /// Makes the folder's entries durable.
    pub(super) fn sync(&self) -> Result<(), JournalError> {
        fsync(&self.0).map_err(|e| JournalError::io("fsync", self.0.path(), e))
    }

    /// Returns the names in the folder, sorted.
    pub(super) fn names(&self) -> Result<Vec<String>, JournalError> {
        Ok(self.0.names()?.iter().map(|name| name.to_string_lossy().into_owned()).collect())
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Returns the device and inode numbers of a file.
fn identity(fd: impl AsFd) -> Option<(u64, u64)> {
    fstat(fd).ok().map(|held| (held.st_dev, held.st_ino))
}

const NO_JOURNAL: &str = "is no plain file, or has a second name: inspect and remove it";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn makes_both_folders_for_their_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        assert!(JournalFolder::open(&state).unwrap().is_none());
        let folder = JournalFolder::open_or_make(&state).unwrap();
        for path in [state.clone(), state.join("journal")] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        let file = folder.file("net-1.jsonl", true).unwrap().unwrap();
        assert!(folder.is_current("net-1.jsonl", &file));
        assert_eq!(folder.names().unwrap(), ["net-1.jsonl"]);
        folder.remove("net-1.jsonl").unwrap();
        assert!(!folder.is_current("net-1.jsonl", &file));
        assert!(folder.file("net-1.jsonl", false).unwrap().is_none());
    }

    #[test]
    fn never_goes_through_a_symlink() {
        let home = tempfile::tempdir().unwrap();
        let (real, link) = (home.path().join("real"), home.path().join("link"));
        JournalFolder::open_or_make(&real).unwrap();
        symlink(&real, &link).unwrap();
        let refused = JournalFolder::open_or_make(&link).unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");

        let half = home.path().join("half");
        std::fs::create_dir(&half).unwrap();
        std::fs::set_permissions(&half, std::fs::Permissions::from_mode(0o700)).unwrap();
        symlink(real.join("journal"), half.join("journal")).unwrap();
        assert!(JournalFolder::open(&half).is_err());

        let folder = JournalFolder::open(&real).unwrap().unwrap();
        symlink("/etc/passwd", real.join("journal/net-1.jsonl")).unwrap();
        let refused = folder.file("net-1.jsonl", true).unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
    }

    #[test]
    fn refuses_files_that_others_can_read_or_write() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        std::fs::create_dir(&state).unwrap();
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(JournalFolder::open_or_make(&state).is_err());

        let open = home.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(JournalFolder::open_or_make(&open.join("state")).is_err());
    }
}
