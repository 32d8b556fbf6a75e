//! How far a long check came, in a file: a check that was cut off goes on with the rest.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// The parts of a check that passed. Each is a line of a file.
pub(super) struct Progress {
    file: PathBuf,
    done: BTreeSet<String>,
}

impl Progress {
    /// Reads how far the check came. Without a file, it has not begun.
    pub(super) fn open(file: PathBuf) -> Progress {
        let done = fs::read_to_string(&file).unwrap_or_default();
        Progress { done: done.lines().map(str::to_owned).collect(), file }
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.done.contains(part)
    }

    /// Keeps that a part passed.
    pub(super) fn add(&mut self, part: &str) -> Result<()> {
        let kept = || format!("keep progress in {}", self.file.display());
        let mut file = File::options().create(true).append(true).open(&self.file).with_context(kept)?;
        file.write_all(format!("{part}\n").as_bytes()).with_context(kept)?;
        self.done.insert(part.to_owned());
        Ok(())
    }

    /// Forgets all parts, because the whole check has passed.
    pub(super) fn end(self) -> Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("remove {}", self.file.display()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_goes_on_with_what_has_not_passed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("6.12-igb.knobs");
        let mut progress = Progress::open(file.clone());
        assert!(!progress.has("mtu=9000"));
        progress.add("mtu=9000").unwrap();
        progress.add("tcp-rmem=4096 131072 6291456").unwrap();
        let again = Progress::open(file.clone());
        assert!(again.has("mtu=9000") && again.has("tcp-rmem=4096 131072 6291456") && !again.has("mtu=1500"));
        again.end().unwrap();
        assert!(!file.exists() && !Progress::open(file.clone()).has("mtu=9000"));
        Progress::open(file).end().unwrap();
    }
}
