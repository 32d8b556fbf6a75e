//! The kinds of records, and the header of each.

use crate::{Header, RECORD_FORMAT, Record};

/// A kind of record, by the command that writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordKind {
    /// Name in headers, and the beginning of file names.
    pub name: &'static str,
    /// The command that writes records of this kind.
    pub command: &'static str,
}

impl RecordKind {
    pub const TUNE: RecordKind = RecordKind { name: "tune", command: "landspeed tune" };
    pub const STUDY: RecordKind = RecordKind { name: "compare", command: "landspeed compare" };
    pub const GRID: RecordKind = RecordKind { name: "grid", command: "landspeed measure --vary" };
    pub const COPY: RecordKind = RecordKind { name: "copy", command: "landspeed copy" };

    const ALL: [RecordKind; 4] = [RecordKind::TUNE, RecordKind::STUDY, RecordKind::GRID, RecordKind::COPY];

    /// Returns the header of a new record of this kind. Fields that not all kinds use have their defaults.
    pub fn header(&self, command: &str, started: &str) -> Header {
        Header {
            format: RECORD_FORMAT,
            landspeed: env!("CARGO_PKG_VERSION").to_owned(),
            kind: self.name.to_owned(),
            started: started.to_owned(),
            command: command.to_owned(),
            ..Header::default()
        }
    }

    /// Checks that `record`, which was read from `path`, is of this kind.
    ///
    /// # Errors
    /// Returns an error if the record's header names another kind.
    pub fn check(&self, record: &Record, path: &str) -> Result<(), WrongKind> {
        if record.header.kind == self.name { Ok(()) } else { Err(self.missing(record, path)) }
    }

    /// Returns the error about `record`, which was read from `path` and has no data of this kind.
    pub fn missing(&self, record: &Record, path: &str) -> WrongKind {
        let kind = &record.header.kind;
        let writer = RecordKind::ALL.into_iter().find(|known| known.name == kind);
        let why = match (record.unread.first(), writer) {
            (Some(why), _) if kind == self.name => why.clone(),
            (_, Some(writer)) => format!("`{}` wrote it", writer.command),
            _ => format!("it is of kind {kind:?}"),
        };
        WrongKind { path: path.to_owned(), why, command: self.command }
    }
}

/// An error about a record of another kind, or about a record whose plan this landspeed cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record {path} holds nothing of `{command}` ({why}): choose one that it wrote")]
pub struct WrongKind {
    path: String,
    why: String,
    command: &'static str,
}
