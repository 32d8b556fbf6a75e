//! The permission for a controller to have this agent read and write files.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use landspeed_mover::{Confinement, NamedPath};
use landspeed_record::PathBytes;

use crate::session::PathUse;

/// The permission to copy files, given when the agent is started.
#[derive(Debug)]
pub enum CopyPermission {
    /// Only what is beneath these folders.
    Beneath(CopyFolders),
    /// All files that this agent's user may read and write. The controller is the user's own session, which has the
    /// same access anyway.
    Anything,
}

/// No file.
impl Default for CopyPermission {
    fn default() -> Self {
        CopyPermission::Beneath(CopyFolders::default())
    }
}

/// Folders beneath which files may be copied. They are opened once, so that a folder that is replaced later is not
/// used.
#[derive(Debug, Default)]
pub struct CopyFolders {
    read: Vec<Confinement>,
    write: Vec<Confinement>,
    /// The folder in which the agent was started. Relative paths begin here.
    started_in: PathBuf,
}

impl CopyPermission {
    /// Permits reading beneath the folders `read`, and writing beneath the folders `write`.
    ///
    /// # Errors
    /// Returns an error if a folder cannot be opened.
    pub fn beneath(read: &[PathBuf], write: &[PathBuf]) -> Result<CopyPermission, String> {
        let started_in = std::env::current_dir().unwrap_or_default();
        let (read, write) = (open("--allow-read", read)?, open("--allow-write", write)?);
        Ok(CopyPermission::Beneath(CopyFolders { read, write, started_in }))
    }

    /// Returns the path that a request names. Opens nothing.
    ///
    /// # Errors
    /// Returns an error if this use of the path is not permitted. The error names the option that would permit it.
    pub(crate) fn path(&self, path: PathBytes, to: PathUse) -> Result<NamedPath, String> {
        let path = PathBuf::from(OsString::from_vec(path.0));
        match self {
            CopyPermission::Anything => Ok(path.into()),
            CopyPermission::Beneath(folders) => folders.path(&path, to),
        }
    }

    /// Checks that this agent may copy files at all.
    ///
    /// # Errors
    /// Returns an error if no copies are permitted.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            CopyPermission::Beneath(folders) if folders.read.is_empty() && folders.write.is_empty() => Err(
                "this agent was started by hand and may not copy files: start it with --allow-read DIR or \
                 --allow-write DIR"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Checks that a trial may create its own files, in folders that no option names.
    ///
    /// # Errors
    /// Returns an error unless the controller is the user's own session.
    pub(crate) fn check_trial(&self) -> Result<(), String> {
        match self {
            CopyPermission::Anything => Ok(()),
            CopyPermission::Beneath(_) => Err(
                "an agent that was started by hand runs no trial that writes files: name this host by ssh, as [user@]host"
                    .to_owned(),
            ),
        }
    }
}

fn open(option: &str, folders: &[PathBuf]) -> Result<Vec<Confinement>, String> {
    let open = |folder: &PathBuf| Confinement::open(folder).map_err(|error| format!("{option}: {error}"));
    folders.iter().map(open).collect()
}

impl CopyFolders {
    fn path(&self, path: &Path, to: PathUse) -> Result<NamedPath, String> {
        let read = self.read.iter().filter(|_| to != PathUse::Write);
        let write = self.write.iter().filter(|_| to != PathUse::Read);
        let allowed: Vec<&Confinement> = read.chain(write).collect();
        let named = Confinement::path_in(&allowed, &self.started_in.join(path));
        named.ok_or_else(|| refusal(path, to, &allowed))
    }
}

fn refusal(path: &Path, to: PathUse, allowed: &[&Confinement]) -> String {
    let (does, option) = match to {
        PathUse::Read => ("reads", "--allow-read"),
        PathUse::Write => ("writes", "--allow-write"),
        PathUse::Compare => ("compares", "--allow-read"),
    };
    let folders: Vec<String> = allowed.iter().map(|folder| folder.as_path().display().to_string()).collect();
    let what = match folders.as_slice() {
        [] => "no files".to_owned(),
        _ => format!("only what is in {}", folders.join(", ")),
    };
    format!(
        "{}: this agent was started by hand, and {does} {what}: start it with {option} DIR for a folder that has this \
         path, or name this host by ssh, as [user@]host:PATH",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn bytes(path: &Path) -> PathBytes {
        PathBytes(path.as_os_str().as_bytes().to_vec())
    }

    #[test]
    fn each_use_of_a_path_needs_a_folder_for_it() {
        let all = tempfile::tempdir().unwrap();
        let [read, write, other] = ["read", "write", "other"].map(|name| all.path().join(name));
        [&read, &write].iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        let permission =
            CopyPermission::beneath(std::slice::from_ref(&read), std::slice::from_ref(&write)).unwrap();
        for (path, uses) in
            [(&read, [true, false, true]), (&write, [false, true, true]), (&other, [false, false, false])]
        {
            let may = [PathUse::Read, PathUse::Write, PathUse::Compare]
                .map(|to| permission.path(bytes(&path.join("new")), to).is_ok());
            assert_eq!(may, uses, "{}", path.display());
        }
        assert!(permission.check().is_ok() && permission.check_trial().is_err());
        let why = permission.path(bytes(&other), PathUse::Write).unwrap_err();
        let only = format!("writes only what is in {}", write.display());
        assert!(why.contains(&only) && why.contains("--allow-write DIR"), "{why}");
    }

    #[test]
    fn without_a_folder_nothing_is_copied_and_the_option_is_named() {
        let none = CopyPermission::default();
        for (to, option) in [
            (PathUse::Read, "--allow-read DIR"),
            (PathUse::Write, "--allow-write DIR"),
            (PathUse::Compare, "--allow-read DIR"),
        ] {
            let why = none.path(bytes(Path::new("/")), to).unwrap_err();
            assert!(why.contains(" no files: ") && why.contains(option), "{why}");
            assert_eq!(why.lines().count(), 1);
        }
        assert!(none.check().unwrap_err().contains("--allow-read DIR or --allow-write DIR"));
        let own = CopyPermission::Anything;
        assert!(own.check().is_ok() && own.check_trial().is_ok());
        assert!(!own.path(bytes(Path::new("/")), PathUse::Write).unwrap().is_confined());
        let missing = CopyPermission::beneath(&[], &["/no/such/folder".into()]).unwrap_err();
        assert!(missing.starts_with("--allow-write: /no/such/folder: cannot open it"), "{missing}");
    }
}
