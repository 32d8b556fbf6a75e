//! Reading a record back. A record may come from a stranger: sizes are bounded, a broken line is an
//! error that names its number, and nothing in it is acted on.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::{Header, Line, RECORD_FORMAT, decode};

/// Longest line that is read; a trial with a thousand TCP samples is about 300 KB.
pub(crate) const LINE_LIMIT: u64 = 16 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read the record {path}: {source}")]
    Io { path: String, source: std::io::Error },
    #[error("{path}, line {number}: not a record line: {why}")]
    Line { path: String, number: usize, why: String },
    #[error("{path} does not start with a landspeed record header")]
    NoHeader { path: String },
    #[error("{path} has record format {found}, this landspeed reads up to {RECORD_FORMAT}: update landspeed")]
    TooNew { path: String, found: u32 },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub header: Header,
    /// The lines after it, in order, unknown ones left out.
    pub lines: Vec<Line>,
    /// Whether the last line was cut off: the run died while writing it.
    pub cut_off: bool,
}

pub fn read(path: &Path) -> Result<Record, ReadError> {
    let name = path.display().to_string();
    let io = |source| ReadError::Io { path: name.clone(), source };
    let mut input = BufReader::new(File::open(path).map_err(io)?);
    let mut header = None;
    let mut lines = Vec::new();
    let mut cut_off = false;
    for number in 1.. {
        let mut text = Vec::new();
        let io = |source| ReadError::Io { path: name.clone(), source };
        (&mut input).take(LINE_LIMIT).read_until(b'\n', &mut text).map_err(io)?;
        if text.is_empty() {
            break;
        }
        let whole = text.last() == Some(&b'\n');
        match decode::<Line>(&text) {
            Ok(Line::Header(h)) if number == 1 => {
                if h.format > RECORD_FORMAT {
                    return Err(ReadError::TooNew { path: name, found: h.format });
                }
                header = Some(h);
            }
            Ok(_) if number == 1 => return Err(ReadError::NoHeader { path: name }),
            Ok(Line::Unknown) => {}
            Ok(line) => lines.push(line),
            Err(_) if number == 1 => return Err(ReadError::NoHeader { path: name }),
            Err(_) if !whole => cut_off = true,
            Err(why) => return Err(ReadError::Line { path: name, number, why: why.to_string() }),
        }
    }
    let header = header.ok_or(ReadError::NoHeader { path: name })?;
    Ok(Record { header, lines, cut_off })
}
