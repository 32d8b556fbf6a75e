//! The journal file of one network namespace, under its lock.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::entry::{Entry, Header, Mark};
use super::folder::Folder;
use super::lock::lock;
use super::read::{self, Contents};
use super::{JournalError, Lookup};

/// An open journal whose lock this process holds, alone or together with its agent or guardian: the lock
/// belongs to the open file, so it lasts until the last of them has let go of it.
#[derive(Debug)]
pub(super) struct JournalFile {
    folder: Folder,
    name: String,
    file: File,
    len: u64,
    mark_at: u64,
}

/// "net-7.jsonl".
pub(super) fn name_of(netns_cookie: u64) -> String {
    format!("net-{netns_cookie}.jsonl")
}

/// 7 of "net-7.jsonl".
pub(super) fn cookie_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("net-")?.strip_suffix(".jsonl")?;
    digits.parse().ok().filter(|cookie| name_of(*cookie) == name)
}

impl JournalFile {
    /// Opens and locks a journal; `None` where there is none. `make` creates it.
    pub(super) fn lock(folder: Folder, name: &str, make: bool) -> Result<Option<JournalFile>, JournalError> {
        loop {
            let Some(fd) = folder.file(name, make)? else { return Ok(None) };
            lock(&fd, &folder.path_of(name))?;
            // Another process may have removed the file between our open and our lock.
            if folder.is_current(name, &fd) {
                return Ok(Some(Self::adopt(folder, name, fd)));
            }
        }
    }

    /// As [`JournalFile::lock`] for a file that is there and that nobody else holds.
    pub(super) fn try_lock(folder: Folder, name: &str) -> Result<Option<JournalFile>, JournalError> {
        let Some(fd) = folder.file(name, false)? else { return Ok(None) };
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if folder.is_current(name, &fd) => Ok(Some(Self::adopt(folder, name, fd))),
            Ok(()) | Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(JournalError::io("lock", &folder.path_of(name), e)),
        }
    }

    /// Takes over a file whose lock is held already.
    pub(super) fn adopt(folder: Folder, name: &str, fd: OwnedFd) -> JournalFile {
        JournalFile { folder, name: name.to_owned(), file: fd.into(), len: 0, mark_at: 0 }
    }

    pub(super) fn read(&self, lookup: Lookup) -> Result<Contents, JournalError> {
        let from_start = (&self.file).seek(SeekFrom::Start(0));
        from_start.and_then(|_| read::read(&self.file, lookup)).map_err(|e| self.failed("read", e))
    }

    /// Starts the journal afresh, whatever was in it.
    pub(super) fn begin(&mut self, header: Header) -> Result<(), JournalError> {
        self.file.set_len(0).map_err(|e| self.failed("truncate", e))?;
        self.len = 0;
        self.append(&[Entry::Header(header)])?;
        self.mark_at = self.len;
        self.append(&[Entry::Mark(Mark::default())])?;
        self.folder.sync()
    }

    /// Goes on with the journal that `contents` were read from. A last line without its end goes.
    pub(super) fn resume(&mut self, contents: &Contents) -> Result<(), JournalError> {
        (self.len, self.mark_at) = (contents.len, contents.mark_at);
        self.file.set_len(self.len).map_err(|e| self.failed("truncate", e))
    }

    /// The same journal once more, under the same lock.
    pub(super) fn again(&self) -> Result<JournalFile, JournalError> {
        let file = self.file.try_clone().map_err(|e| self.failed("duplicate", e))?;
        let (folder, name) = (self.folder.again()?, self.name.clone());
        Ok(JournalFile { folder, name, file, len: self.len, mark_at: self.mark_at })
    }

    /// Appends lines; on return they are on disk. On failure the journal is as before.
    pub(super) fn append(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let lines: Vec<Vec<u8>> = entries.iter().map(line).collect();
        let total: usize = lines.iter().map(Vec::len).sum();
        if lines.iter().any(|line| line.len() >= read::MAX_LINE) || self.len + total as u64 > read::MAX_FILE {
            return Err(JournalError::Full { path: self.path() });
        }
        let written = self.file.write_all_at(&lines.concat(), self.len).and_then(|()| self.file.sync_data());
        written.map_err(|e| {
            // Half a line would swallow the next one. Failing here too leaves a journal that is refused
            // line by line when read, which is as safe.
            let _ = self.file.set_len(self.len);
            self.failed("write", e)
        })?;
        self.len += total as u64;
        Ok(())
    }

    /// Says where the run is. Not synced: it has to survive our death, which the page cache does, and means
    /// nothing after the machine's. One write within one page, so that no death leaves half of it.
    pub(super) fn mark(&self, mark: Mark) -> Result<(), JournalError> {
        let line = line(&Entry::Mark(mark));
        self.file.write_all_at(&line, self.mark_at).map_err(|e| self.failed("write", e))
    }

    /// Removes the file; the lock lasts until this is dropped.
    pub(super) fn remove(&self) -> Result<(), JournalError> {
        self.folder.remove(&self.name)
    }

    /// Whether the file still has its name: it is removed when everything was restored.
    pub(super) fn is_there(&self) -> bool {
        self.folder.is_current(&self.name, &self.file)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path_of(&self.name)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn failed(&self, operation: &'static str, source: io::Error) -> JournalError {
        JournalError::io(operation, &self.path(), source)
    }
}

fn line(entry: &Entry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).expect("journal entries have string keys only");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use landspeed_daemon::Process;

    use super::*;
    use crate::journal::entry::FORMAT;

    fn header() -> Header {
        let me = Process::find(std::process::id()).unwrap();
        let boot_id = "00000000-0000-0000-0000-000000000000".into();
        Header { format: FORMAT, boot_id, netns_cookie: 7, agent: me, guardian: me }
    }

    #[test]
    fn names_and_cookies() {
        assert_eq!(cookie_of(&name_of(42)), Some(42));
        for bad in ["net-.jsonl", "net-007.jsonl", "net-1.jsonl.bak", "net-+1.jsonl", "net--1.jsonl"] {
            assert_eq!(cookie_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn one_holder_at_a_time_and_never_of_a_removed_file() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("s");
        let lock = |make| JournalFile::lock(Folder::open_or_make(&state).unwrap(), "net-7.jsonl", make);
        assert!(lock(false).unwrap().is_none());
        let mut first = lock(true).unwrap().unwrap();
        first.begin(header()).unwrap();
        assert!(matches!(lock(true), Err(JournalError::InProgress { pid, .. }) if pid == std::process::id()));
        first.remove().unwrap();
        assert!(!first.is_there());
        let second = lock(true).unwrap().unwrap();
        assert!(second.is_there() && !first.is_there());
    }

    #[test]
    fn the_mark_is_overwritten_in_place_and_lines_are_appended() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open_or_make(&home.path().join("s")).unwrap();
        let mut journal = JournalFile::lock(folder, "net-7.jsonl", true).unwrap().unwrap();
        journal.begin(header()).unwrap();
        for turning in [3, 0, 12] {
            journal.mark(Mark { turning, seen: 1, ..Mark::default() }).unwrap();
        }
        journal.append(&[Entry::Also { seq: 1, to: "x".into() }]).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let digits = r#""turning":"0000000012","seen":"0000000001","net":"0000000000","at_s":"0000000000""#;
        assert_eq!(lines[1], format!(r#"{{"entry":"mark",{digits}}}"#));
        assert_eq!(lines[2], r#"{"entry":"also","seq":1,"to":"x"}"#);
        let contents = journal.read(|_| None).unwrap();
        assert_eq!(contents.header, Some(header()));
        assert_eq!((contents.history.mark.turning, contents.refused.len()), (12, 1));
        // Who goes on with it cuts off a line that its writer did not live to end.
        std::fs::write(journal.path(), format!("{text}{{\"entry\"")).unwrap();
        let mut again = journal.again().unwrap();
        again.resume(&journal.read(|_| None).unwrap()).unwrap();
        again.mark(Mark::default()).unwrap();
        again.append(&[Entry::Also { seq: 2, to: "y".into() }]).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert!(text.lines().all(|line| serde_json::from_str::<Entry>(line).is_ok()), "{text}");
    }
}
