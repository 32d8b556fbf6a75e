//! Asks for the entries that only the target has.

use std::sync::atomic::Ordering;

use landspeed_record::units::Bytes;
use landspeed_record::{CopyDifference, CopyDiffering, CopyEntryKind, PathBytes};

use super::{ComparingSource, QuestionLane, unasked};
use crate::Error;
use crate::compare::message::{Answer, Question};
use crate::extras::{FolderNames, NameTaker, list_names};
use crate::name::RelativeName;
use crate::wire::Failure;

impl ComparingSource<'_> {
    /// Asks for the entries that only the target has, if this is the last flow that compares entries, and if no entry
    /// has failed: after a failure, a copy removes nothing.
    pub(super) fn ask_for_extras(&self, lane: &QuestionLane<'_>) -> Result<(), Error> {
        let is_last = self.lanes.fetch_sub(1, Ordering::AcqRel) == 1;
        let is_asked = is_last && self.looks_for_extras && !self.queue.lock().is_over();
        if !is_asked || self.tally.lock().outcome.failed > 0 {
            return Ok(());
        }
        let mut asking = ExtrasAsker { comparing: self, lane, asked: Ok(()) };
        list_names(&self.trees, &mut asking);
        asking.asked
    }

    fn list_extra(&self, name: RelativeName, kind: CopyEntryKind) {
        self.count(0, |outcome| outcome.extra += 1);
        let entry = CopyDiffering {
            name_hex: PathBytes(name.into()),
            kind,
            size_bytes: Bytes(0),
            differs: [CopyDifference::Extra].into(),
        };
        self.progress.listing.add(entry, &|| self.queue.lock().is_over());
    }
}

/// Asks the target what only it has in the folders that are listed.
struct ExtrasAsker<'a, 'b, 'c> {
    comparing: &'a ComparingSource<'b>,
    lane: &'a QuestionLane<'c>,
    /// The first error of the flow, which ends the walk.
    asked: Result<(), Error>,
}

impl ExtrasAsker<'_, '_, '_> {
    /// Returns the number of extras in these folders.
    fn ask(&mut self, folders: Vec<FolderNames>) -> Result<u64, Error> {
        let (mut answer, mut extras) = (self.lane.ask(&Question::Names(folders))?, 0);
        loop {
            let Answer::Extras { entries, failures, is_last } = answer else { return Err(unasked()) };
            extras += entries.len() as u64;
            entries.into_iter().for_each(|(name, kind)| self.comparing.list_extra(name, kind));
            failures
                .iter()
                .for_each(|(name, failure)| self.comparing.fail(name, failure.words_at_target(), 0));
            if is_last {
                return Ok(extras);
            }
            answer = self.lane.more()?;
        }
    }
}

impl NameTaker for ExtrasAsker<'_, '_, '_> {
    fn take(&mut self, folders: Vec<FolderNames>) -> bool {
        self.asked = self.ask(folders).map(drop);
        self.asked.is_ok()
    }

    fn take_empty(&mut self, tree: usize, folder: Vec<FolderNames>) -> bool {
        let extras = self.ask(folder);
        if let Ok(extras @ 1..) = extras {
            self.comparing.tally.lock().emptied.get_or_insert((tree, extras));
        }
        self.asked = extras.map(drop);
        self.asked.is_ok()
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        self.comparing.fail(&name, failure.words(), 0);
        true
    }
}
