//! The journal file of one network namespace, under its lock.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::entry::{Entry, Header, Mark};
use super::folder::Folder;
use super::line;
use super::lock::lock;
use super::read::{self, Contents, End};
use super::second::{self, Copies, SecondCopy};
use super::{JournalError, Lookup};

/// An open journal whose lock this process holds, alone or together with its agent or guardian: the lock
/// belongs to the open file, so it lasts until the last of them has let go of it.
#[derive(Debug)]
pub(super) struct JournalFile {
    folder: Folder,
    name: String,
    file: File,
    end: End,
    copy: Second,
}

/// The second copy of a journal that is written.
#[derive(Debug)]
enum Second {
    /// It is only read so far.
    NotYet,
    Kept(SecondCopy),
    /// Why there is none.
    None(String),
}

/// "net-7.jsonl".
pub(super) fn name_of(netns_cookie: u64) -> String {
    format!("net-{netns_cookie}.jsonl")
}

/// "net-7.jsonl.new": the journal before it has its name. Nothing was changed under it.
pub(super) fn draft_of(name: &str) -> String {
    format!("{name}.new")
}

/// The journal that a draft was to become.
pub(super) fn draft_for(name: &str) -> Option<&str> {
    name.strip_suffix(".new").filter(|name| cookie_of(name).is_some())
}

/// 7 of "net-7.jsonl".
pub(super) fn cookie_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("net-")?.strip_suffix(".jsonl")?;
    digits.parse().ok().filter(|cookie| name_of(*cookie) == name)
}

impl JournalFile {
    /// Opens and locks a journal; `None` where there is none.
    pub(super) fn lock(folder: Folder, name: &str) -> Result<Option<JournalFile>, JournalError> {
        loop {
            let Some(fd) = folder.file(name, false)? else { return Ok(None) };
            lock(&fd, &folder.path_of(name))?;
            // Another process may have removed the file between our open and our lock.
            if folder.is_current(name, &fd) {
                return Ok(Some(Self::adopt(folder, name, fd)));
            }
        }
    }

    /// A new journal, locked, in the place of one under which nothing was changed. It has its name only once header and
    /// mark are on disk: a journal that lacks them has lost them.
    pub(super) fn begin(folder: Folder, name: &str, header: Header) -> Result<JournalFile, JournalError> {
        let draft = draft_of(name);
        folder.remove(&draft)?;
        let Some(fd) = folder.file(&draft, true)? else {
            return Err(JournalError::folder(&folder.path_of(&draft), "is gone"));
        };
        lock(&fd, &folder.path_of(&draft))?;
        let mut journal = Self::adopt(folder, name, fd);
        journal.end.lines = Some(0);
        let header = Entry::Header(header);
        journal.end.mark_at = line::sealed(line::HEADER, &header).len() as u64;
        journal.append(&[header, Entry::Mark(Mark { lines: line::MARK, ..Mark::default() })])?;
        journal.folder.rename(&draft, name)?;
        Ok(journal)
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
        let (name, file, end) = (name.to_owned(), fd.into(), End::default());
        JournalFile { folder, name, file, end, copy: Second::NotYet }
    }

    pub(super) fn read(&self, lookup: Lookup) -> Result<Contents, JournalError> {
        let from_start = (&self.file).seek(SeekFrom::Start(0));
        from_start.and_then(|_| read::read(&self.file, lookup)).map_err(|e| self.failed("read", e))
    }

    /// Goes on with the journal that `contents` were read from. A last line without its end goes.
    pub(super) fn resume(&mut self, contents: &Contents) -> Result<(), JournalError> {
        self.end = contents.end;
        if contents.damage.is_empty() {
            self.file.set_len(self.end.len).map_err(|e| self.failed("truncate", e))?;
            // Without checksums a copy could not be told from a journal that was changed.
            if self.end.lines.is_some() {
                self.double();
            }
        }
        Ok(())
    }

    /// Keeps a second copy from now on, in the place of the one that there is. The run goes on without where there can be none.
    pub(super) fn double(&mut self) {
        let made = self.bytes().and_then(|bytes| {
            Copies::open_or_make(&self.folder.state()).and_then(|copies| copies.put(&self.name, &bytes))
        });
        self.copy = made.map_or_else(|error| Second::None(error.to_string()), Second::Kept);
    }

    /// Why there is no whole second copy, where there is none.
    pub(super) fn without_copy(&self) -> Option<&str> {
        match &self.copy {
            Second::NotYet => None,
            Second::Kept(copy) => copy.missed(),
            Second::None(why) => Some(why),
        }
    }

    fn bytes(&self) -> Result<Vec<u8>, JournalError> {
        let mut bytes = vec![0; self.file.metadata().map_or(0, |file| file.len() as usize)];
        self.file.read_exact_at(&mut bytes, 0).map_err(|e| self.failed("read", e))?;
        Ok(bytes)
    }

    /// The same journal once more, under the same lock.
    pub(super) fn again(&self) -> Result<JournalFile, JournalError> {
        let file = self.file.try_clone().map_err(|e| self.failed("duplicate", e))?;
        let (folder, name) = (self.folder.again()?, self.name.clone());
        Ok(JournalFile { folder, name, file, end: self.end, copy: Second::NotYet })
    }

    /// Appends lines; on return they are on disk. On failure the journal is as before.
    pub(super) fn append(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let lines: Vec<Vec<u8>> = (1..).zip(entries).map(|(nth, entry)| self.line(nth, entry)).collect();
        let total: usize = lines.iter().map(Vec::len).sum();
        let is_full = self.end.len + total as u64 > read::MAX_FILE;
        if is_full || lines.iter().any(|line| line.len() >= read::MAX_LINE) {
            return Err(JournalError::Full { path: self.path() });
        }
        let lines = lines.concat();
        let written = self.file.write_all_at(&lines, self.end.len).and_then(|()| self.file.sync_data());
        written.map_err(|e| {
            // Half a line would swallow the next one. Failing here too leaves a journal that is refused
            // line by line when read, which is as safe.
            let _ = self.file.set_len(self.end.len);
            self.failed("write", e)
        })?;
        match &self.copy {
            Second::Kept(copy) if copy.is_gone() => self.double(),
            Second::Kept(copy) => copy.write(&lines, self.end.len),
            Second::NotYet | Second::None(_) => {}
        }
        self.end.len += total as u64;
        self.end.lines = self.end.lines.map(|lines| lines + entries.len() as u32);
        Ok(())
    }

    /// The `nth` line behind those that there are.
    fn line(&self, nth: u32, entry: &Entry) -> Vec<u8> {
        self.end.lines.map_or_else(|| line::plain(entry), |lines| line::sealed(lines + nth, entry))
    }

    /// Says where the run is. Not synced: it has to survive our death, which the page cache does, and means
    /// nothing after the machine's. One write within one page, so that no death leaves half of it.
    pub(super) fn mark(&self, mark: Mark) -> Result<(), JournalError> {
        let mark = Entry::Mark(Mark { lines: self.end.lines.unwrap_or(0), ..mark });
        let line = self.end.lines.map_or_else(|| line::plain(&mark), |_| line::sealed(line::MARK, &mark));
        self.file.write_all_at(&line, self.end.mark_at).map_err(|e| self.failed("write", e))?;
        if let Second::Kept(copy) = &self.copy {
            copy.write(&line, self.end.mark_at);
        }
        Ok(())
    }

    /// Says that everything is put back, and removes both files, unless another one has the name by now; the lock lasts
    /// until this is dropped.
    pub(super) fn remove(&self) -> Result<(), JournalError> {
        // Who has only read it does not know where the mark is, and nobody waits to hear of it.
        if self.end.mark_at > 0 {
            let _ = self.mark(Mark { turning: Mark::DONE, ..Mark::default() });
        }
        second::remove(&self.folder.state(), &self.name, &self.header())?;
        if self.is_there() { self.folder.remove(&self.name) } else { Ok(()) }
    }

    /// The first line, which tells runs apart.
    fn header(&self) -> Vec<u8> {
        let mut line = Vec::new();
        let mut lines = BufReader::new(&self.file).take(read::MAX_LINE as u64);
        let whole = (&self.file).seek(SeekFrom::Start(0)).and_then(|_| lines.read_until(b'\n', &mut line));
        if whole.is_ok() && line.ends_with(b"\n") { line } else { Vec::new() }
    }

    /// Removes a file that was to become a journal.
    pub(super) fn discard(&self) -> Result<(), JournalError> {
        self.folder.remove(&self.name)
    }

    /// Whether the file still has its name.
    pub(super) fn is_there(&self) -> bool {
        self.folder.is_current(&self.name, &self.file)
    }

    /// Whether a later process that looks for the journal finds this one.
    pub(super) fn stands(&self) -> bool {
        self.folder.is_reachable() && self.is_there()
    }

    /// As [`JournalFile::stands`], and as long as it was written.
    pub(super) fn is_kept(&self) -> bool {
        self.stands() && self.file.metadata().is_ok_and(|file| file.len() == self.end.len)
    }

    /// Writes what is in the file once more to where it should be.
    pub(super) fn copy_anew(&self) -> Result<(), JournalError> {
        self.folder.anew()?.put(&self.name, &self.bytes()?).map(drop)
    }

    /// Paths of the file, its folder and the folder above: the first two hold whatever they are called by now.
    pub(super) fn places(&self) -> [PathBuf; 3] {
        let held = |fd: BorrowedFd<'_>| PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        [held(self.fd()), held(self.folder.fd()), self.folder.state()]
    }

    /// This one, or the one that the guardian wrote in its place since.
    pub(super) fn current(&self, lookup: Lookup) -> Result<JournalFile, JournalError> {
        let held = self.read(lookup)?;
        let is_newer = |file: &JournalFile| {
            let contents = file.read(lookup).ok();
            contents.is_some_and(|it| it.damage.is_empty() && it.header == held.header)
        };
        let named = match self.stands() {
            true => None,
            false => self.folder.anew().and_then(|folder| Self::try_lock(folder, &self.name))?,
        };
        named.filter(is_newer).map_or_else(|| self.again(), Ok)
    }

    pub(super) fn folder(&self) -> &Folder {
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
        let folder = || Folder::open_or_make(&state).unwrap();
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
        let folder = Folder::open_or_make(&home.path().join("s")).unwrap();
        let mut journal = JournalFile::begin(folder, "net-7.jsonl", header()).unwrap();
        for turning in [3, 0, 12] {
            journal.mark(Mark { turning, seen: 1, ..Mark::default() }).unwrap();
        }
        journal.append(&[Entry::Also { seq: 1, to: "x".into() }]).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let digits = r#""turning":"0000000012","seen":"0000000001","net":"0000000000","at_s":"0000000000","lines":"0000000002""#;
        assert!(lines[1].ends_with(&format!(r#","entry":"mark",{digits}}}"#)), "{}", lines[1]);
        assert!(lines[2].ends_with(r#","entry":"also","seq":1,"to":"x"}"#), "{}", lines[2]);
        let contents = journal.read(|_| None).unwrap();
        assert_eq!(contents.header, Some(header()));
        assert_eq!((contents.history.mark.turning, contents.refused.len()), (12, 1));
        // Who goes on with it cuts off a line that its writer did not live to end.
        journal.mark(Mark::default()).unwrap();
        let text = std::fs::read_to_string(journal.path()).unwrap();
        std::fs::write(journal.path(), format!("{text}{{\"entry\"")).unwrap();
        let mut again = journal.again().unwrap();
        again.resume(&journal.read(|_| None).unwrap()).unwrap();
        again.append(&[Entry::Also { seq: 2, to: "y".into() }]).unwrap();
        again.mark(Mark::default()).unwrap();
        let contents = journal.read(|_| None).unwrap();
        assert_eq!((contents.end.lines, contents.damage), (Some(4), Vec::new()));
        // Lines that the mark counts cannot go unnoticed.
        let text = std::fs::read_to_string(journal.path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        std::fs::write(journal.path(), lines[..3].join("\n")).unwrap();
        assert_eq!(journal.read(|_| None).unwrap().damage, ["lines 3 to 4 are missing"]);
    }
}
