//! The outline of a record: its first two lines and its last line. The outline is read without the rest of the record,
//! so that a list of hundreds of long records appears without delay.

use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::reader::{header, line};
use crate::{Header, Line, RecordReadError, decode};

/// The first two lines of a record and its last line.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordOutline {
    pub header: Header,
    /// The line after the header; `None` if it is missing or cannot be read. In the record of a study or a grid it is
    /// the plan.
    pub second: Option<Line>,
    /// The last complete line; `None` if it is missing or cannot be read.
    pub last: Option<Line>,
    /// True if a run is writing the record now.
    pub in_progress: bool,
}

/// Reads the first two lines of a record and its last line.
pub fn outline(path: &Path) -> Result<RecordOutline, RecordReadError> {
    let name = path.display().to_string();
    let io = |source| RecordReadError::Io { path: name.clone(), source };
    let mut input = BufReader::new(File::open(path).map_err(io)?);
    let header = header(&mut input, &name)?;
    let second = decode(&line(&mut input).map_err(io)?).ok();
    let mut file = input.into_inner();
    let last = last_line(&mut file).map_err(io)?;
    Ok(RecordOutline { header, second, last: decode(&last).ok(), in_progress: is_locked(&file) })
}

/// Reads the header of a record.
pub fn read_header(path: &Path) -> Result<Header, RecordReadError> {
    let name = path.display().to_string();
    let io = |source| RecordReadError::Io { path: name.clone(), source };
    header(&mut BufReader::new(File::open(path).map_err(io)?), &name)
}

/// Counts the runs of a study in a record, without parsing its lines.
pub fn count_runs(path: &Path) -> io::Result<usize> {
    let mut input = BufReader::new(File::open(path)?);
    let mut runs = 0;
    loop {
        let line = line(&mut input)?;
        if line.is_empty() {
            return Ok(runs);
        }
        runs += usize::from(line.starts_with(br#"{"line":"run""#));
    }
}

/// Returns true if a run holds the lock on the record, which it does while it writes the record.
fn is_locked(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Returns the last complete line, without its newline. Returns an empty line if there is none, or if it is longer than
/// 4 MiB. All lines at the end of a run are shorter.
fn last_line(file: &mut File) -> io::Result<Vec<u8>> {
    const TAIL: u64 = 4 << 20;
    let len = file.metadata()?.len();
    let mut tail = vec![0; len.min(TAIL) as usize];
    file.seek(SeekFrom::Start(len - tail.len() as u64))?;
    file.read_exact(&mut tail)?;
    let newline = |text: &[u8]| text.iter().rposition(|byte| *byte == b'\n');
    let Some(end) = newline(&tail) else { return Ok(Vec::new()) };
    Ok(match newline(&tail[..end]) {
        Some(before) => tail[before + 1..end].to_vec(),
        None if len <= TAIL => tail[..end].to_vec(),
        None => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordWriter;

    #[test]
    fn the_ends_of_a_record_are_read_while_it_is_written_and_after_it_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        let note = |text: &str| Line::Note { text: text.to_owned() };
        let mut writer = RecordWriter::create(&path).unwrap();
        assert!(outline(&path).is_err(), "it is empty");
        let begun = Header { format: 1, kind: "tune".into(), ..Header::default() };
        writer.write(&Line::Header(begun.clone())).unwrap();
        let alone = outline(&path).unwrap();
        let begun = Header { sequence: alone.header.sequence.clone(), ..begun };
        assert_eq!(begun.sequence.number, 1);
        assert_eq!((alone.second, alone.last), (None, Some(Line::Header(begun.clone()))));
        for text in ["first", &"long ".repeat(40_000), "last"] {
            writer.write(&note(text)).unwrap();
        }
        let written = outline(&path).unwrap();
        assert_eq!(
            (written.header, written.second, written.last),
            (begun, Some(note("first")), Some(note("last")))
        );
        assert!(written.in_progress);
        drop(writer);
        assert!(!outline(&path).unwrap().in_progress);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole, &b"{\"line\":\"no"[..]].concat()).unwrap();
        let cut = outline(&path).unwrap();
        assert_eq!((cut.last, cut.in_progress), (Some(note("last")), false));
    }
}
