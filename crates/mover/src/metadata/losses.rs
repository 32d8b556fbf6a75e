//! Metadata that the target could not keep. The source makes the text for people.

use std::collections::BTreeMap;

use landspeed_record::{CopyKept, CopyLoss, PathBytes};
use parking_lot::Mutex;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::name::RelativeName;

/// The losses of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LostKind {
    kind: CopyKept,
    /// The number of entries.
    entries: u64,
    /// The first of them.
    name: RelativeName,
    /// The error number of the system for that one, as in errno(3).
    errno: i32,
}

impl LostKind {
    /// Returns the loss as it is reported.
    pub(crate) fn reported(&self) -> CopyLoss {
        let why = match (self.kind, self.errno) {
            (CopyKept::Times, libc::ERANGE) => "the file system keeps another time in its place".to_owned(),
            (_, errno) => std::io::Error::from_raw_os_error(errno).to_string(),
        };
        let name_hex = PathBytes(self.name.as_bytes().to_vec());
        CopyLoss { kind: self.kind.into(), entries: self.entries, name_hex, why }
    }
}

/// What was not taken of one entry, with the first reason of each kind.
#[derive(Debug, Default)]
pub(super) struct EntryLosses(BTreeMap<CopyKept, Errno>);

impl EntryLosses {
    /// Notes a refusal, if `result` is one.
    pub(super) fn note(&mut self, kind: CopyKept, result: rustix::io::Result<()>) {
        if let Err(error) = result {
            self.0.entry(kind).or_insert(error);
        }
    }
}

/// What was not taken of all entries.
#[derive(Debug, Default)]
pub(super) struct Losses(Mutex<BTreeMap<CopyKept, LostKind>>);

impl Losses {
    pub(super) fn count(&self, name: &RelativeName, lost: EntryLosses) {
        if lost.0.is_empty() {
            return;
        }
        let mut all = self.0.lock();
        for (kind, error) in lost.0 {
            let first = || LostKind { kind, entries: 0, name: name.clone(), errno: error.raw_os_error() };
            all.entry(kind).or_insert_with(first).entries += 1;
        }
    }

    pub(super) fn all(&self) -> Vec<LostKind> {
        self.0.lock().values().cloned().collect()
    }
}
