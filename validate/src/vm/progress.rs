//! How far a long check came, in a file: a check that was cut off goes on with the rest.

use std::collections::BTreeSet;
use std::fs;
use std::iter;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// The parts of a check that passed with one subject, such as a program. The subject is the first line of a file, and
/// each part is a line below.
pub(super) struct Progress {
    file: PathBuf,
    subject: String,
    done: BTreeSet<String>,
}

impl Progress {
    /// Reads how far the check came with this subject. What passed with another one does not count.
    pub(super) fn open(file: PathBuf, subject: String) -> Progress {
        let kept = fs::read_to_string(&file).unwrap_or_default();
        let mut lines = kept.lines();
        let is_same = lines.next() == Some(&*subject);
        Progress { file, subject, done: lines.filter(|_| is_same).map(str::to_owned).collect() }
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.done.contains(part)
    }

    /// Records that a part passed.
    pub(super) fn add(&mut self, part: &str) -> Result<()> {
        self.done.insert(part.to_owned());
        let lines: Vec<&str> = iter::once(&self.subject).chain(&self.done).map(String::as_str).collect();
        // A line that was cut off could name another part.
        let part = self.file.with_extension("part");
        fs::write(&part, lines.join("\n"))
            .and_then(|()| fs::rename(&part, &self.file))
            .with_context(|| format!("keep progress in {}", self.file.display()))
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
        let open = |subject: &str| Progress::open(file.clone(), subject.to_owned());
        let mut progress = open("one on 6.12");
        assert!(!progress.has("mtu=9000"));
        progress.add("mtu=9000").unwrap();
        progress.add("tcp-rmem=4096 131072 6291456").unwrap();
        let again = open("one on 6.12");
        assert!(again.has("mtu=9000") && again.has("tcp-rmem=4096 131072 6291456") && !again.has("mtu=1500"));
        // What another program passed says nothing of this one, and is forgotten with its first part.
        let mut other = open("other on 6.12");
        assert!(!other.has("mtu=9000") && !other.has("one on 6.12"));
        other.add("mtu=1500").unwrap();
        assert!(!open("one on 6.12").has("mtu=9000") && open("other on 6.12").has("mtu=1500"));
        other.end().unwrap();
        assert!(!file.exists() && !open("other on 6.12").has("mtu=1500"));
        again.end().unwrap();
    }
}
