//! Reads small files of /proc and /sys, below a root folder that tests can choose.

use std::fs;
use std::path::{Path, PathBuf};

use landspeed_record::units::Bytes;

use crate::procfile::word;

/// The folder in which `proc` and `sys` are; "/" except in tests.
#[derive(Debug, Clone)]
pub(crate) struct SystemFiles {
    root: PathBuf,
}

impl Default for SystemFiles {
    fn default() -> Self {
        SystemFiles::below("/")
    }
}

impl SystemFiles {
    /// Returns the files whose `proc` and `sys` are in the folder `root`.
    pub(crate) fn below(root: impl Into<PathBuf>) -> Self {
        SystemFiles { root: root.into() }
    }

    /// Returns the full path of `path`, which is relative to the root ("sys/class/net").
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// Returns a file's contents without surrounding white space; `None` if it is absent, unreadable or empty.
    pub(crate) fn word(&self, path: impl AsRef<Path>) -> Option<String> {
        word(self.path(path))
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.word(path)?.parse().ok()
    }

    /// Returns the value of the line `name` ("MemTotal") of /proc/meminfo; `None` if there is no such line.
    pub(crate) fn memory(&self, name: &str) -> Option<Bytes> {
        let text = self.word("proc/meminfo")?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(Bytes(kib.saturating_mul(1024)))
    }

    /// Returns the names in a folder, sorted; none if the folder does not exist.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten();
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Writes `text` to the file `path` below `root`, and creates the folders above it.
    pub(crate) fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_missing_file_is_none_and_not_an_error() {
        let tree = tempfile::tempdir().unwrap();
        let files = SystemFiles::below(tree.path());
        fs::write(tree.path().join("speed"), "25000\n").unwrap();
        fs::write(tree.path().join("empty"), "\n").unwrap();
        assert_eq!(files.number::<i64>("speed"), Some(25_000));
        assert_eq!((files.word("empty"), files.word("absent")), (None, None));
        assert_eq!(files.names("."), ["empty", "speed"]);
        assert!(files.names("absent").is_empty());
    }
}
