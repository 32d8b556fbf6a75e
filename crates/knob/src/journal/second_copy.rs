//! A second copy of each journal, in /run. It serves the case that another program removes or replaces the first file
//! and all processes of the run are killed at the same moment.
//!
//! A journal's lines are written to the first file and then to the second before anything is changed, so either file
//! alone suffices. At the end of a run the second file is removed first. Before a journal is read, `bring_back`
//! replaces the first file by the second if the first is missing or lacks lines that the second has, so all other code
//! handles one file. After a reboot, /run is empty and only the first file is left.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landspeed_kernel::folder::{PrivateFolder, run_dir};

use super::JournalError;
use super::folder::JournalFolder;
use super::name::cookie_of;

/// The second copies of the journals of one state folder.
#[derive(Debug)]
pub(super) struct SecondCopies {
    folder: JournalFolder,
    /// Prefix of the file names, which identifies the state folder.
    of: String,
}

/// The second copy of one journal.
#[derive(Debug)]
pub(super) struct SecondCopy {
    file: File,
    /// The reason why lines are missing from the copy; empty if none are missing.
    missed: OnceLock<String>,
}

impl SecondCopy {
    /// Writes `bytes`, which the first file has at the offset `at`, at the same offset. If this fails, a reader notices
    /// the missing lines.
    pub(super) fn write(&self, bytes: &[u8], at: u64) {
        if let Err(error) = self.file.write_all_at(bytes, at) {
            let _ = self.missed.set(error.to_string());
        }
    }

    pub(super) fn missed(&self) -> Option<&str> {
        self.missed.get().map(String::as_str)
    }

    /// Returns true if another program has removed the copy.
    pub(super) fn is_gone(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
    }
}

impl SecondCopies {
    pub(super) fn open_or_make(state: &Path) -> Result<SecondCopies, JournalError> {
        let folder = JournalFolder::of(PrivateFolder::make_both(&place(state))?);
        Ok(SecondCopies { of: prefix(state), folder })
    }

    /// Opens the folder of the copies. Returns `None` if it does not exist or belongs to another user.
    pub(super) fn open(state: &Path) -> Result<Option<SecondCopies>, JournalError> {
        let folder = place(state);
        let me = rustix::process::geteuid();
        let is_ours = |found: std::fs::Metadata| me.is_root() || found.uid() == me.as_raw();
        if !folder.metadata().is_ok_and(is_ours) {
            return Ok(None);
        }
        let folder = PrivateFolder::open(&folder)?.map(JournalFolder::of);
        Ok(folder.map(|folder| SecondCopies { of: prefix(state), folder }))
    }

    /// Writes a copy of the journal called `name`, which replaces an existing copy.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<SecondCopy, JournalError> {
        Ok(SecondCopy { file: self.folder.put(&self.own(name), bytes)?, missed: OnceLock::new() })
    }

    fn own(&self, name: &str) -> String {
        format!("{}{name}", self.of)
    }

    /// Opens the copy of the journal called `name`. Returns `None` if there is none.
    pub(super) fn open_copy(&self, name: &str) -> Result<Option<File>, JournalError> {
        Ok(self.folder.file(&self.own(name), false)?.map(File::from))
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.folder.path_of(&self.own(name))
    }

    fn names(&self) -> Result<Vec<String>, JournalError> {
        let own = |name: String| Some(name.strip_prefix(&self.of)?.to_owned());
        let names = self.folder.names()?.into_iter().filter_map(own);
        Ok(names.filter(|name| cookie_of(name).is_some()).collect())
    }
}

/// Returns the names of the journals that have a second copy.
pub(super) fn names(state: &Path) -> Result<Vec<String>, JournalError> {
    SecondCopies::open(state)?.map_or_else(|| Ok(Vec::new()), |copies| copies.names())
}

/// Removes the copy of the journal called `name` if the copy begins with `header`, the first line of the run's journal.
pub(super) fn remove(state: &Path, name: &str, header: &[u8]) -> Result<(), JournalError> {
    let Some(copies) = SecondCopies::open(state)? else { return Ok(()) };
    let Some(copy) = copies.open_copy(name)? else { return Ok(()) };
    let mut found = vec![0; header.len()];
    let is_of_it = copy.read_exact_at(&mut found, 0).is_ok() && found == header;
    if is_of_it && !header.is_empty() { copies.folder.remove(&copies.own(name)) } else { Ok(()) }
}

/// Returns the folder of the second copies. Unit tests keep them beside the state folder.
fn place(state: &Path) -> PathBuf {
    if cfg!(test) {
        return state.with_extension("run");
    }
    run_dir().join("journal")
}

/// Returns the prefix that distinguishes the copies of one state folder from those of others.
fn prefix(state: &Path) -> String {
    let path = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
    format!("{}-", &hash[..16])
}
