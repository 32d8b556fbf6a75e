//! Stores one file for each lab in /run/landspeed/labs, so that labs can be removed after a crash. The contents are not
//! trusted: a file that names a namespace of another lab is ignored.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use landspeed_kernel::folder::{PrivateFolder, RUN_DIR_VARIABLE, run_dir};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
use serde::{Deserialize, Serialize};

use super::owner::LabOwner;
use super::plan::{LabId, LabLayout, is_own};
use crate::failure::FailureContext;
use crate::topology::error::Error;

/// The largest number of bytes that are read of a state file. Valid files are far smaller.
const LARGEST: u64 = 16 * 1024;
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The recorded state of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LabState {
    /// The lab's ID, which is also the name of the file.
    pub(super) id: String,
    /// The words that name a lab of this kind, such as "lab:switch:4". In the file, the field is called "kind", as in
    /// older builds.
    #[serde(rename = "kind")]
    pub(super) label: String,
    /// The name under which a user holds the lab; `None` for a lab that a command created for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// The process that created the lab.
    pub(super) owner: LabOwner,
    /// The names of the lab's namespaces, in the order of their creation.
    pub(super) namespaces: Vec<String>,
    /// True if the hosts are virtual machines, so that every process in the namespaces is the lab's.
    #[serde(default)]
    pub(super) has_guests: bool,
    /// When its creation began, in seconds since 1970.
    pub(super) created_unix_s: u64,
}

/// The folder of state files.
#[derive(Debug)]
pub(super) struct LabStore {
    folder: PrivateFolder,
}

impl LabStore {
    /// Opens the folder of state files, and creates it if needed. Only this user can enter it.
    pub(super) fn open() -> Result<Self, Error> {
        Self::at(&folder())
    }

    /// Opens the folder of state files; returns `None` if it does not exist, because no lab was ever created.
    pub(super) fn open_existing() -> Result<Option<Self>, Error> {
        if folder().symlink_metadata().is_ok() { Self::open().map(Some) } else { Ok(None) }
    }

    fn at(path: &Path) -> Result<Self, Error> {
        if !path.is_absolute() {
            // A relative path would mean another folder in the keeper, which has another working directory.
            return Err(Error::NotAbsolute(RUN_DIR_VARIABLE));
        }
        Ok(LabStore { folder: PrivateFolder::make_both(path)? })
    }

    /// Records a new lab, with this process as its owner.
    pub(super) fn add(&self, layout: &LabLayout, name: Option<&str>) -> Result<(), Error> {
        let owner = LabOwner::me().during(|| "read this process's start time".into())?;
        let state = LabState {
            id: layout.id.to_string(),
            label: layout.plan.label().to_owned(),
            name: name.map(str::to_owned),
            owner,
            namespaces: layout.namespaces(),
            has_guests: layout.plan.has_guests(),
            created_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        };
        self.write(&layout.id, &state)
    }

    fn write(&self, id: &LabId, state: &LabState) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(state).expect("bug: a lab's state is plain data");
        let written = self.write_whole(id, &text).or_else(|e| match e.raw_os_error() {
            // If this process is killed halfway, the file is incomplete and does not name a lab.
            Some(libc::EOPNOTSUPP | libc::EISDIR) => self.write_named(id, &text),
            _ => Err(e),
        });
        Ok(written.during(|| format!("write {}", self.folder.path().join(file_name(id)).display()))?)
    }

    /// Writes a state file that gets its name only when it is complete, so that a killed process leaves no partial
    /// file. Some file systems do not support unnamed files (overlayfs before Linux 6.1).
    fn write_whole(&self, id: &LabId, text: &[u8]) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mut file = std::fs::File::from(rustix::fs::openat(&self.folder, ".", flags, PRIVATE)?);
        file.write_all(text)?;
        let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(CWD, unnamed, &self.folder, file_name(id), AtFlags::SYMLINK_FOLLOW)?)
    }

    fn write_named(&self, id: &LabId, text: &[u8]) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, file_name(id), flags, PRIVATE)?;
        std::fs::File::from(file).write_all(text)
    }

    /// Returns false if the lab has no state file.
    pub(super) fn has(&self, id: &LabId) -> bool {
        let seen = rustix::fs::statat(&self.folder, file_name(id), AtFlags::SYMLINK_NOFOLLOW);
        !matches!(seen, Err(rustix::io::Errno::NOENT))
    }

    /// Removes the record of a lab.
    pub(super) fn remove(&self, id: &LabId) -> Result<(), Error> {
        Ok(self.folder.remove(file_name(id))?)
    }

    /// Returns all recorded labs, sorted by their IDs. Files that are not valid are skipped and not changed.
    pub(super) fn all(&self) -> Result<Vec<(LabId, LabState)>, Error> {
        let known = |name: OsString| {
            let id = name.to_str()?.strip_suffix(".json")?.parse::<LabId>().ok()?;
            let state = self.read(&id).filter(|state| state.id == id.to_string())?;
            Some((id, state))
        };
        Ok(self.folder.names()?.into_iter().filter_map(known).collect())
    }

    /// Returns the state of a lab; `None` if there is no such file, or it is not valid.
    fn read(&self, id: &LabId) -> Option<LabState> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.folder, file_name(id), flags, Mode::empty()).ok()?;
        let mut text = Vec::new();
        std::fs::File::from(fd).take(LARGEST).read_to_end(&mut text).ok()?;
        let state: LabState = serde_json::from_slice(&text).ok()?;
        state.namespaces.iter().all(|name| is_own(id, name)).then_some(state)
    }
}

/// Returns the path of the folder of state files, which the environment can set.
fn folder() -> PathBuf {
    run_dir().join("labs")
}

fn file_name(id: &LabId) -> String {
    format!("{id}.json")
}

#[cfg(test)]
mod tests {
    use super::super::plan::LabPlan;
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A folder for one test, which is removed when this is dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("ls-store-{:08x}", getrandom::u32().unwrap()));
            std::fs::create_dir(&path).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn layout() -> LabLayout {
        LabLayout::new("00ab12".parse().unwrap(), LabPlan::veth("lab:back-to-back", ["a", "b"], 1))
    }

    #[test]
    fn labs_that_older_and_newer_builds_wrote_down_are_found() {
        let scratch = Scratch::new();
        let store = LabStore::at(&scratch.0.join("labs")).unwrap();
        let text = r#"{"id": "00ab12", "kind": "lab:ring:4", "owner": {"pid": 1, "start_ticks": 2, "boot_id": "x"},
                       "namespaces": ["ls-00ab12-a", "ls-00ab12-b"], "created_unix_s": 3}"#;
        std::fs::write(scratch.0.join("labs/00ab12.json"), text).unwrap();
        let all = store.all().unwrap();
        assert_eq!((all.len(), all[0].1.label.as_str()), (1, "lab:ring:4"));
        assert_eq!(all[0].1.namespaces, layout().namespaces());
    }

    #[test]
    fn a_written_lab_is_listed_until_removed() {
        let scratch = Scratch::new();
        let store = LabStore::at(&scratch.0.join("labs")).unwrap();
        let plan = layout();
        store.add(&plan, None).unwrap();
        assert!(store.add(&plan, None).is_err(), "an id is used once");
        let all = store.all().unwrap();
        assert_eq!((all.len(), all[0].1.namespaces.clone()), (1, plan.namespaces()));
        assert!(store.has(&plan.id));
        store.remove(&plan.id).unwrap();
        assert!(!store.has(&plan.id));
        store.remove(&plan.id).unwrap();
        assert!(store.all().unwrap().is_empty());
        // Writes as on a file system without unnamed files.
        let text = serde_json::to_vec(&all[0].1).unwrap();
        store.write_named(&plan.id, &text).unwrap();
        assert_eq!(store.all().unwrap(), all);
        assert!(store.write_named(&plan.id, &text).is_err() && store.write_whole(&plan.id, &text).is_err());
    }

    #[test]
    fn hostile_files_are_left_out() {
        let scratch = Scratch::new();
        let labs = scratch.0.join("labs");
        let store = LabStore::at(&labs).unwrap();
        let good = layout();
        store.add(&good, Some("mine")).unwrap();
        let text = std::fs::read_to_string(labs.join("00ab12.json")).unwrap();
        std::fs::write(labs.join("00ab13.json"), &text).unwrap();
        std::fs::write(labs.join("00ab14.json"), "[".repeat(100_000)).unwrap();
        std::fs::write(labs.join("..%2f.json"), &text).unwrap();
        let odd = text.replace("00ab12", "00ab15").replace("ls-00ab15-a", "ls-00ab12-a");
        std::fs::write(labs.join("00ab15.json"), odd).unwrap();
        symlink(labs.join("00ab12.json"), labs.join("00ab16.json")).unwrap();
        let found: Vec<_> = store.all().unwrap().into_iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(found, ["00ab12"]);
    }

    #[test]
    fn folders_of_others_are_refused() {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.0.join("real")).unwrap();
        symlink(scratch.0.join("real"), scratch.0.join("link")).unwrap();
        let error = LabStore::at(&scratch.0.join("link")).unwrap_err().to_string();
        assert!(error.contains("link is a symbolic link"), "{error}");
        std::fs::set_permissions(scratch.0.join("real"), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(LabStore::at(&scratch.0.join("real")).unwrap_err().to_string().contains("open to others"));
        assert!(LabStore::at(Path::new("labs")).unwrap_err().to_string().contains("absolute"));
    }
}
