//! The reader of records. A record may come from an untrusted source, so the size of its lines is limited, and nothing
//! in it is executed. An error names the number of the malformed line.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use crate::{
    CongestionControls, DecodeError, EndpointOutcome, Header, HostFacts, Line, PathFacts, RECORD_FORMAT,
    Side, decode,
};

/// Longest line that is read, in bytes. The line of a trial with a thousand TCP samples has about 300 KB.
pub(crate) const LINE_LIMIT: u64 = 16 << 20;

#[derive(Debug, thiserror::Error)]
pub enum RecordReadError {
    #[error("cannot read the record {path}: {source}")]
    Io { path: String, source: std::io::Error },
    #[error("{path}, line {number}: not a record line: {why}")]
    Line { path: String, number: usize, why: String },
    #[error("{path} does not begin as a record of landspeed; `landspeed records` lists those that are kept")]
    NoHeader { path: String },
    #[error("{path} has record format {found}, this landspeed reads up to {RECORD_FORMAT}: update landspeed")]
    TooNew { path: String, found: u32 },
}

/// Returns an iterator over the values of a record's lines that match a pattern, in their order.
#[macro_export]
macro_rules! lines_of {
    ($record:expr, $line:pat $(if $guard:expr)? => $value:expr) => {
        $record.lines.iter().filter_map(|line| match line {
            $line $(if $guard)? => Some($value),
            _ => None,
        })
    };
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    pub header: Header,
    /// The lines after the header, in order, without lines of an unknown kind.
    pub lines: Vec<Line>,
    /// True if the last line was cut off because the run died while it wrote the line.
    pub cut_off: bool,
    /// One message for each line that was left out because it holds a value that this landspeed does not know. The
    /// message names the number of the line and the value.
    pub unread: Vec<String>,
}

impl Record {
    /// Returns the path between the hosts, if the run determined it.
    pub fn path(&self) -> Option<&PathFacts> {
        self.lines.iter().find_map(|line| match line {
            Line::Path(path) => Some(path),
            _ => None,
        })
    }

    /// Returns the facts of a host of the first pair, as they were when the run began.
    pub fn host(&self, wanted: Side) -> Option<&HostFacts> {
        self.lines.iter().find_map(|line| match line {
            Line::Host { side, facts } if *side == wanted => Some(&**facts),
            _ => None,
        })
    }

    /// Returns the congestion controls that the sockets of the record's trials, runs and copies reported.
    pub fn controls(&self) -> BTreeSet<String> {
        let of = |end: &EndpointOutcome| end.observed.get::<CongestionControls>().0.clone();
        let reported = self.lines.iter().flat_map(|line| match line {
            Line::Trial(trial) => vec![of(&trial.a), of(&trial.b)],
            Line::GridTrial(trial) => vec![of(&trial.a), of(&trial.b)],
            Line::Run(run) => vec![run.controls.clone()],
            Line::CopyTurn(turn) => vec![BTreeSet::from_iter(turn.counted.control.clone())],
            Line::CopyEnd(end) => vec![end.controls.clone()],
            _ => Vec::new(),
        });
        reported.flatten().collect()
    }
}

pub fn read(path: &Path) -> Result<Record, RecordReadError> {
    let name = path.display().to_string();
    let io = |source| RecordReadError::Io { path: name.clone(), source };
    let mut input = BufReader::new(File::open(path).map_err(io)?);
    let header = header(&mut input, &name)?;
    let mut record = Record { header, ..Record::default() };
    for number in 2.. {
        let text = line(&mut input).map_err(io)?;
        if text.is_empty() {
            break;
        }
        let whole = text.last() == Some(&b'\n');
        match decode::<Line>(&text) {
            Ok(Line::Unknown) => {}
            Ok(line) => record.lines.push(line),
            Err(_) if !whole => record.cut_off = true,
            Err(why) if is_tagged(&text) => record.unread.push(unread(number, &why)),
            Err(why) => return Err(RecordReadError::Line { path: name, number, why: why.to_string() }),
        }
    }
    Ok(record)
}

/// Returns true for valid JSON with the tag of a record line, which is the member `line`.
fn is_tagged(text: &[u8]) -> bool {
    decode::<Value>(text).is_ok_and(|value| value["line"].is_string())
}

fn unread(number: usize, why: &DecodeError) -> String {
    let why = why.to_string();
    let what = why.split(", expected").next().unwrap_or_default();
    format!("line {number} was not read: {what}; a newer landspeed may have written it")
}

/// Reads the header of the record. `name` is the record's name in errors.
pub(crate) fn header(input: &mut impl BufRead, name: &str) -> Result<Header, RecordReadError> {
    let path = || name.to_owned();
    let text = line(input).map_err(|source| RecordReadError::Io { path: path(), source })?;
    match decode::<Line>(&text) {
        Ok(Line::Header(header)) if header.format > RECORD_FORMAT => {
            Err(RecordReadError::TooNew { path: path(), found: header.format })
        }
        Ok(Line::Header(header)) => Ok(header),
        _ => Err(RecordReadError::NoHeader { path: path() }),
    }
}

/// Reads the next line, including its newline, up to [`LINE_LIMIT`] bytes. Returns an empty line at the end of the
/// record.
pub(crate) fn line(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    input.take(LINE_LIMIT).read_until(b'\n', &mut text)?;
    Ok(text)
}
