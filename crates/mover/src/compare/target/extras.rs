//! Reports what only the target has.

use landspeed_record::CopyEntryKind;
use rustix::fs::FileType;

use super::ComparedTarget;
use crate::Error;
use crate::compare::lane::Lane;
use crate::compare::message::{Answer, Question};
use crate::extras::{FolderNames, Sweeper, is_bounded};
use crate::name::RelativeName;
use crate::wire::{Failure, MOST_OFFERED};

impl ComparedTarget {
    /// Reports what only the target has in these folders, in as many answers as it takes.
    pub(super) fn tell_extras(
        &self,
        folders: Vec<FolderNames>,
        lane: &Lane<'_, Question>,
    ) -> Result<(), Error> {
        if self.rules.removal.is_none() || !is_bounded(&folders) {
            return Err(Error::Protocol("it tells names that it was not asked for"));
        }
        let mut telling = ExtrasAnswer { lane, entries: Vec::new(), sent: Ok(()) };
        let mut failures = Vec::new();
        for mut folder in folders {
            let Some(root) = &self.root else { continue };
            let (names, ignore) = (&self.names, &self.rules.ignore);
            let sweeper = Sweeper { root, names, ignore, only_looks: true, is_dry_run: true };
            let swept = sweeper.sweep(&mut folder, &mut |name, kind| {
                telling.add(name, kind);
                Ok(())
            });
            failures.extend(swept.failures);
        }
        failures.truncate(MOST_OFFERED);
        telling.end(failures)
    }
}

/// Answers that are being written.
struct ExtrasAnswer<'a, 'b> {
    lane: &'a Lane<'b, Question>,
    /// Extras that were not yet sent.
    entries: Vec<(RelativeName, CopyEntryKind)>,
    /// The first error of the flow. After it, nothing is sent.
    sent: Result<(), Error>,
}

impl ExtrasAnswer<'_, '_> {
    fn add(&mut self, name: &RelativeName, kind: FileType) {
        let kind = match kind {
            FileType::Directory => CopyEntryKind::Folder,
            FileType::Symlink => CopyEntryKind::Link,
            FileType::Fifo => CopyEntryKind::Fifo,
            FileType::BlockDevice | FileType::CharacterDevice => CopyEntryKind::Device,
            _ => CopyEntryKind::File,
        };
        self.entries.push((name.clone(), kind));
        if self.entries.len() >= MOST_OFFERED && self.sent.is_ok() {
            let entries = std::mem::take(&mut self.entries);
            self.sent = self.lane.send(&Answer::Extras { entries, failures: Vec::new(), is_last: false });
        }
        self.entries.truncate(MOST_OFFERED);
    }

    fn end(self, failures: Vec<(RelativeName, Failure)>) -> Result<(), Error> {
        self.sent?;
        self.lane.send(&Answer::Extras { entries: self.entries, failures, is_last: true })
    }
}
