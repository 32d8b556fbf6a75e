//! The journal file of one network namespace, under its lock.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::entry::{JournalEntry, JournalHeader, ProgressMark};
use super::folder::JournalFolder;
use super::line;
use super::lock::lock;
use super::name::draft_of;
use super::read::{self, AppendPosition, JournalContents};
use super::second_copy::{self, SecondCopies, SecondCopy};
use super::{JournalError, KnobLookup};

/// An open journal whose lock this process holds, alone or together with its agent or guardian. The lock belongs to
/// the open file, so it lasts until the last of these processes has closed it.
#[derive(Debug)]
pub(super) struct JournalFile {
    folder: JournalFolder,
    name: String,
    file: File,
    end: AppendPosition,
    copy: CopyState,
}

/// The state of the second copy of a journal.
#[derive(Debug)]
enum CopyState {
    /// No copy is written, because the journal has only been read so far.
    NotYet,
    Kept(SecondCopy),
    /// There is no copy, for this reason.
    None(String),
}

impl JournalFile {
    /// Opens and locks a journal. Returns `None` if there is none.
    pub(super) fn lock(folder: JournalFolder, name: &str) -> Result<Option<JournalFile>, JournalError> {
        loop {
            let Some(fd) = folder.file(name, false)? else { return Ok(None) };
            lock(&fd, &folder.path_of(name))?;
            // Another process may have removed the file between our open and our lock.
            if folder.is_current(name, &fd) {
                return Ok(Some(Self::adopt(folder, name, fd)));
            }
        }
    }

    /// Creates and locks a new journal, which replaces an existing one with its name. The file gets its final name only
    /// once header and mark are on disk, so a journal that lacks one of these was damaged.
    pub(super) fn begin(
        folder: JournalFolder,
        name: &str,
        header: JournalHeader,
    ) -> Result<JournalFile, JournalError> {
        let draft = draft_of(name);
        folder.remove(&draft)?;
        let Some(fd) = folder.file(&draft, true)? else {
            return Err(JournalError::folder(&folder.path_of(&draft), "is gone"));
        };
        lock(&fd, &folder.path_of(&draft))?;
        let mut journal = Self::adopt(folder, name, fd);
        journal.end.lines = Some(0);
        let header = JournalEntry::Header(header);
        journal.end.mark_at = line::sealed(line::HEADER, &header).len() as u64;
        journal.append(&[
            header,
            JournalEntry::Mark(ProgressMark { lines: line::MARK, ..ProgressMark::default() }),
        ])?;
        journal.folder.rename(&draft, name)?;
        Ok(journal)
    }

    /// Opens and locks a journal if it exists and no other process holds its lock.
    pub(super) fn try_lock(folder: JournalFolder, name: &str) -> Result<Option<JournalFile>, JournalError> {
        let Some(fd) = folder.file(name, false)? else { return Ok(None) };
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if folder.is_current(name, &fd) => Ok(Some(Self::adopt(folder, name, fd))),
            Ok(()) | Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(JournalError::io("lock", &folder.path_of(name), e)),
        }
    }

    /// Takes over a file whose lock is already held.
    pub(super) fn adopt(folder: JournalFolder, name: &str, fd: OwnedFd) -> JournalFile {
        let (name, file, end) = (name.to_owned(), fd.into(), AppendPosition::default());
        JournalFile { folder, name, file, end, copy: CopyState::NotYet }
    }

    pub(super) fn read(&self, lookup: KnobLookup) -> Result<JournalContents, JournalError> {
        let from_start = (&self.file).seek(SeekFrom::Start(0));
        from_start.and_then(|_| read::read(&self.file, lookup)).map_err(|e| self.failed("read", e))
    }

    /// Prepares the journal for appending: cuts off an incomplete last line and starts a second copy. `contents` were
    /// read from this journal. A damaged journal is left as it is.
    pub(super) fn resume(&mut self, contents: &JournalContents) -> Result<(), JournalError> {
        self.end = contents.end;
        if contents.damage.is_empty() {
            self.file.set_len(self.end.len).map_err(|e| self.failed("truncate", e))?;
            // A journal without checksums gets no copy, because a reader could not tell which of the two files was
            // changed.
            if self.end.lines.is_some() {
                self.double();
            }
        }
        Ok(())
    }

    /// Keeps a second copy of the journal from now on, which replaces an existing copy. If that fails, the run
    /// continues without one.
    pub(super) fn double(&mut self) {
        let made = self.bytes().and_then(|bytes| {
            SecondCopies::open_or_make(&self.folder.state()).and_then(|copies| copies.put(&self.name, &bytes))
        });
        self.copy = made.map_or_else(|error| CopyState::None(error.to_string()), CopyState::Kept);
    }

    /// Returns the reason why the second copy is missing or incomplete; `None` if it is complete or not wanted yet.
    pub(super) fn without_copy(&self) -> Option<&str> {
        match &self.copy {
            CopyState::NotYet => None,
            CopyState::Kept(copy) => copy.missed(),
            CopyState::None(why) => Some(why),
        }
    }

    fn bytes(&self) -> Result<Vec<u8>, JournalError> {
        let mut bytes = vec![0; self.file.metadata().map_or(0, |file| file.len() as usize)];
        self.file.read_exact_at(&mut bytes, 0).map_err(|e| self.failed("read", e))?;
        Ok(bytes)
    }

    /// Returns another handle of this journal, under the same lock.
    pub(super) fn again(&self) -> Result<JournalFile, JournalError> {
        let file = self.file.try_clone().map_err(|e| self.failed("duplicate", e))?;
        let (folder, name) = (self.folder.again()?, self.name.clone());
        Ok(JournalFile { folder, name, file, end: self.end, copy: CopyState::NotYet })
    }

    /// Appends entries, which are on disk on return. After a failure the journal is unchanged.
    pub(super) fn append(&mut self, entries: &[JournalEntry]) -> Result<(), JournalError> {
        let lines: Vec<Vec<u8>> = (1..).zip(entries).map(|(nth, entry)| self.line(nth, entry)).collect();
        let total: usize = lines.iter().map(Vec::len).sum();
        let is_full = self.end.len + total as u64 > read::MAX_FILE;
        if is_full || lines.iter().any(|line| line.len() >= read::MAX_LINE) {
            return Err(JournalError::Full { path: self.path() });
        }
        let lines = lines.concat();
        let written = self.file.write_all_at(&lines, self.end.len).and_then(|()| self.file.sync_data());
        written.map_err(|e| {
            // Cuts off an incomplete line, which would merge with the next one. If this fails too, the reader rejects
            // the merged line.
            let _ = self.file.set_len(self.end.len);
            self.failed("write", e)
        })?;
        match &self.copy {
            CopyState::Kept(copy) if copy.is_gone() => self.double(),
            CopyState::Kept(copy) => copy.write(&lines, self.end.len),
            CopyState::NotYet | CopyState::None(_) => {}
        }
        self.end.len += total as u64;
        self.end.lines = self.end.lines.map(|lines| lines + entries.len() as u32);
        Ok(())
    }

    /// Returns an entry as the `nth` line after the existing ones.
    fn line(&self, nth: u32, entry: &JournalEntry) -> Vec<u8> {
        self.end.lines.map_or_else(|| line::plain(entry), |lines| line::sealed(lines + nth, entry))
    }

    /// Overwrites the mark with the run's current state, without a sync. The mark means nothing after a reboot, so it
    /// only has to survive the death of this process, and for that the page cache suffices. The mark is written in one
    /// call within one page, so a death cannot leave half of it.
    pub(super) fn mark(&self, mark: ProgressMark) -> Result<(), JournalError> {
        let mark = JournalEntry::Mark(ProgressMark { lines: self.end.lines.unwrap_or(0), ..mark });
        let line = self.end.lines.map_or_else(|| line::plain(&mark), |_| line::sealed(line::MARK, &mark));
        self.file.write_all_at(&line, self.end.mark_at).map_err(|e| self.failed("write", e))?;
        if let CopyState::Kept(copy) = &self.copy {
            copy.write(&line, self.end.mark_at);
        }
        Ok(())
    }

    /// Marks everything as restored, and removes the journal and its second copy. If the file with one of these names
    /// is by now that of another run, it is kept. The lock lasts until this value is dropped.
    pub(super) fn remove(&self) -> Result<(), JournalError> {
        // A process that has only read the journal does not know the offset of the mark. No other process reads the
        // mark in that case.
        if self.end.mark_at > 0 {
            let _ = self.mark(ProgressMark { turning: ProgressMark::DONE, ..ProgressMark::default() });
        }
        second_copy::remove(&self.folder.state(), &self.name, &self.header())?;
        if self.is_there() { self.folder.remove(&self.name) } else { Ok(()) }
    }

    /// Returns the journal's first line, which distinguishes runs; empty if it is incomplete.
    fn header(&self) -> Vec<u8> {
        let mut line = Vec::new();
        let mut lines = BufReader::new(&self.file).take(read::MAX_LINE as u64);
        let whole = (&self.file).seek(SeekFrom::Start(0)).and_then(|_| lines.read_until(b'\n', &mut line));
        if whole.is_ok() && line.ends_with(b"\n") { line } else { Vec::new() }
    }

    /// Removes this file, which does not have its final name yet.
    pub(super) fn discard(&self) -> Result<(), JournalError> {
        self.folder.remove(&self.name)
    }

    /// Returns true if the journal's name in its folder still leads to this file.
    pub(super) fn is_there(&self) -> bool {
        self.folder.is_current(&self.name, &self.file)
    }

    /// Returns true if the journal's path still leads to this file.
    pub(super) fn is_findable(&self) -> bool {
        self.folder.is_reachable() && self.is_there()
    }

    /// Returns true if the journal's path still leads to this file, and the file has the length that was written.
    pub(super) fn is_kept(&self) -> bool {
        self.is_findable() && self.file.metadata().is_ok_and(|file| file.len() == self.end.len)
    }

    /// Writes the content to a new file at the journal's path.
    pub(super) fn copy_anew(&self) -> Result<(), JournalError> {
        self.folder.anew()?.put(&self.name, &self.bytes()?).map(drop)
    }

    /// Returns paths of the file, its folder and the folder above. The first two lead through descriptors, so they stay
    /// valid after a rename.
    pub(super) fn places(&self) -> [PathBuf; 3] {
        let held = |fd: BorrowedFd<'_>| PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        [held(self.fd()), held(self.folder.fd()), self.folder.state()]
    }

    /// Returns the run's journal: this file, or the file that the guardian wrote at the journal's path after another
    /// program removed this one.
    pub(super) fn current(&self, lookup: KnobLookup) -> Result<JournalFile, JournalError> {
        let held = self.read(lookup)?;
        let is_newer = |file: &JournalFile| {
            let contents = file.read(lookup).ok();
            contents.is_some_and(|it| it.damage.is_empty() && it.header == held.header)
        };
        let named = match self.is_findable() {
            true => None,
            false => self.folder.anew().and_then(|folder| Self::try_lock(folder, &self.name))?,
        };
        named.filter(is_newer).map_or_else(|| self.again(), Ok)
    }

    pub(super) fn folder(&self) -> &JournalFolder {
        &self.folder
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

#[cfg(test)]
mod tests {
    use landspeed_kernel::daemon::ProcessIdentity;

    use super::*;
    use crate::journal::entry::FORMAT;

    fn header() -> JournalHeader {
        let me = ProcessIdentity::find(std::process::id()).unwrap();
        let boot_id = "00000000-0000-0000-0000-000000000000".into();
        JournalHeader { format: FORMAT, boot_id, netns_cookie: 7, agent: me, guardian: me }
    }

    #[test]
    fn one_holder_at_a_time_and_never_of_a_removed_file() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("s");
        let folder = || JournalFolder::open_or_make(&state).unwrap();
        let lock = || JournalFile::lock(folder(), "net-7.jsonl");
        assert!(lock().unwrap().is_none());
        let first = JournalFile::begin(folder(), "net-7.jsonl", header()).unwrap();
        assert!(matches!(lock(), Err(JournalError::InProgress { pid, .. }) if pid == std::process::id()));
        first.remove().unwrap();
        assert!(!first.is_there());
        assert!(first.read(|_| None).unwrap().history.mark.is_done());
        let second = JournalFile::begin(folder(), "net-7.jsonl", header()).unwrap();
        assert!(second.is_there() && !first.is_there());
        first.remove().unwrap();
        assert!(second.is_there(), "it removes nothing but itself");
    }

    #[test]
    fn the_mark_is_overwritten_in_place_and_lines_are_appended() {
        let home = tempfile::tempdir().unwrap();
        let folder = JournalFolder::open_or_make(&home.path().join("s")).unwrap();
        let mut journal = JournalFile::begin(folder, "net-7.jsonl", header()).unwrap();
        for turning in [3, 0, 12] {
            journal.mark(ProgressMark { turning, seen: 1, ..ProgressMark::default() }).unwrap();
        }
        journal.append(&[JournalEntry::Also { seq: 1, to: "x".into() }]).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let digits = r#""turning":"0000000012","seen":"0000000001","net":"0000000000","at_s":"0000000000","lines":"0000000002""#;
        assert!(lines[1].ends_with(&format!(r#","entry":"mark",{digits}}}"#)), "{}", lines[1]);
        assert!(lines[2].ends_with(r#","entry":"also","seq":1,"to":"x"}"#), "{}", lines[2]);
        let contents = journal.read(|_| None).unwrap();
        assert_eq!(contents.header, Some(header()));
        assert_eq!((contents.history.mark.turning, contents.refused.len()), (12, 1));
        // A process that continues the journal cuts off a line that its writer did not finish.
        journal.mark(ProgressMark::default()).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        std::fs::write(journal.path(), format!("{text}{{\"entry\"")).unwrap();
        let mut again = journal.again().unwrap();
        again.resume(&journal.read(|_| None).unwrap()).unwrap();
        again.append(&[JournalEntry::Also { seq: 2, to: "y".into() }]).unwrap();
        again.mark(ProgressMark::default()).unwrap();
        let contents = journal.read(|_| None).unwrap();
        assert_eq!((contents.end.lines, contents.damage), (Some(4), Vec::new()));
        // The loss of lines that the mark counts is noticed.
        let text = std::fs::read_to_string(journal.path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        std::fs::write(journal.path(), lines[..3].join("\n")).unwrap();
        assert_eq!(journal.read(|_| None).unwrap().damage, ["lines 3 to 4 are missing"]);
    }
}
