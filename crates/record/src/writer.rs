//! The writer of records, which appends during the run.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::reader::LINE_LIMIT;
use crate::{Header, Line, incoming, sequence};

/// An error about a record that could not be written. It names the file and, for a full disk or a missing permission,
/// a remedy.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the record {path}: {source}{remedy}")]
pub struct RecordWriteError {
    path: String,
    source: io::Error,
    remedy: &'static str,
}

/// A writer of lines to a record file. It hands each line to the kernel before the next, so that only the last line can
/// be cut off. The writer holds an exclusive lock on the file (flock). Without the lock, two processes that continue
/// one record would measure the same runs twice.
#[derive(Debug)]
pub struct RecordWriter {
    file: File,
    path: PathBuf,
}

impl RecordWriter {
    /// Creates the file `path`, which must not exist yet, with access for its owner only. Missing folders are created
    /// too.
    ///
    /// # Errors
    /// Returns an error if the file exists, or if the file or its folder cannot be created.
    pub fn create(path: &Path) -> Result<Self, RecordWriteError> {
        let open = || -> io::Result<File> {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
            lock(&file)?;
            Ok(file)
        };
        let file = open().map_err(|source| error(path, source))?;
        Ok(RecordWriter { file, path: path.to_owned() })
    }

    /// Opens the record at `path` to continue it. If the last run died while it wrote a line, the incomplete line is
    /// removed.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, or if another process is still writing the record.
    pub fn append(path: &Path) -> Result<Self, RecordWriteError> {
        let open = || -> io::Result<File> {
            let mut file = OpenOptions::new().read(true).append(true).open(path)?;
            lock(&file)?;
            let whole = end_of_last_line(&mut file)?;
            file.set_len(whole)?;
            Ok(file)
        };
        let file = open().map_err(|source| error(path, source))?;
        Ok(RecordWriter { file, path: path.to_owned() })
    }

    /// Appends one line and hands it to the kernel. A header is given its number among the records of the folder. If
    /// the folder's counter cannot be used, the header has no number, and only the clock orders the record.
    ///
    /// # Errors
    /// Returns an error if the line cannot be written, or if [`crate::read`] would refuse it. A refused line is not
    /// written, so that the record stays readable.
    pub fn write(&mut self, line: &Line) -> Result<(), RecordWriteError> {
        let counted = match line {
            Line::Header(header) => Some(Line::Header(self.counted(header))),
            _ => None,
        };
        let mut text =
            serde_json::to_vec(counted.as_ref().unwrap_or(line)).expect("record lines have string keys only");
        text.push(b'\n');
        readable(&text).map_err(|source| error(&self.path, source))?;
        self.file.write_all(&text).map_err(|source| error(&self.path, source))
    }

    fn counted(&self, header: &Header) -> Header {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let sequence = sequence::next(folder.unwrap_or(Path::new("."))).unwrap_or_default();
        Header { sequence, ..header.clone() }
    }
}

/// Checks that the reader accepts this line.
fn readable(line: &[u8]) -> io::Result<()> {
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    if line.len() as u64 > LINE_LIMIT {
        return Err(refused(format!("a line of {} bytes, and {LINE_LIMIT} can be read back", line.len())));
    }
    incoming::check(line).map_err(|why| refused(format!("a line that could not be read back: {why}")))
}

/// Locks a record for its writer. On a file system without such locks (such as some NFS), this always succeeds.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let who = writer_of(file).map_or_else(String::new, |pid| format!(" (process {pid})"));
            let why = format!("a run{who} still writes it: wait until it ends, or end it");
            Err(io::Error::new(io::ErrorKind::WouldBlock, why))
        }
        _ => Ok(()),
    }
}

/// Returns the ID of the process that holds the lock, from a line of /proc/locks:
/// "1: FLOCK  ADVISORY  WRITE 4711 08:01:123 0 EOF".
fn writer_of(file: &File) -> Option<u32> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let fields = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut ours =
        fields.filter(|of| of.get(1) == Some(&"FLOCK") && of.get(5).is_some_and(|id| id.ends_with(&inode)));
    ours.next()?.get(4)?.parse().ok()
}

/// Returns the position after the last complete line; 0 if there is none. The search begins at the end, because records
/// are long and a line has a few megabytes at most.
fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = [0; 65_536];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn error(path: &Path, source: io::Error) -> RecordWriteError {
    let remedy = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space or choose another folder with --data-dir"
        }
        io::ErrorKind::PermissionDenied => "; choose another folder with --data-dir",
        _ => "",
    };
    RecordWriteError { path: path.display().to_string(), source, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_no_reader_takes_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        let mut writer = RecordWriter::create(&path).unwrap();
        let restored =
            |notes| Line::Restored(crate::RestoreOutcome { notes, ..crate::RestoreOutcome::default() });
        writer.write(&Line::Header(crate::Header { format: 1, ..crate::Header::default() })).unwrap();
        for notes in
            [vec!["x".repeat(17 << 20)], vec!["x".repeat(2000); 7000], vec![String::new(); 2_000_000]]
        {
            assert!(!writer.write(&restored(notes)).unwrap_err().to_string().is_empty());
        }
        writer.write(&restored(vec!["fits".to_owned()])).unwrap();
        assert_eq!(crate::read(&path).unwrap().lines, [restored(vec!["fits".to_owned()])]);
    }

    #[test]
    fn a_record_continues_after_its_last_complete_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        let note = |text: &str| Line::Note { text: text.to_owned() };
        let mut writer = RecordWriter::create(&path).unwrap();
        writer.write(&note(&"long ".repeat(40_000))).unwrap();
        drop(writer);
        let whole = std::fs::read(&path).unwrap();
        for rest in ["", "{\"line\":\"no", &"x".repeat(200_000)] {
            std::fs::write(&path, [&whole, rest.as_bytes()].concat()).unwrap();
            RecordWriter::append(&path).unwrap().write(&note("next")).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), 2);
            assert!(text.lines().all(|line| serde_json::from_str::<Line>(line).is_ok()));
        }
        std::fs::write(&path, "no line at all").unwrap();
        RecordWriter::append(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        assert!(RecordWriter::append(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_record_that_is_being_written_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        let writer = RecordWriter::create(&path).unwrap();
        let refused = RecordWriter::append(&path).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(writer);
        RecordWriter::append(&path).unwrap();
    }
}
