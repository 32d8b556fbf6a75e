//! The remaining steps of a walk, in its order. Pure: it touches neither files nor threads.
//!
//! The steps are a stack. A part of a folder that is read becomes two steps: what was read, and below it the place of the folders
//! that are found in it. The rest of the folder is put between both. So the order is the same whatever is read first.

use std::sync::Arc;

use super::portion::{FolderPart, OpenFolder, Portion, Seen};
use crate::name::RelativeName;

/// The most memory of what is read ahead, roughly.
const MOST_BYTES: usize = 8 << 20;
/// The largest number of folders that stay open because they are read in part.
const MOST_OPEN: usize = 64;
/// The memory that a portion takes beside its entries, about.
const OF_PORTION: usize = 128;

/// A step of a walk.
#[derive(Debug)]
enum Step {
    /// This is to be read.
    Waiting(FolderPart),
    /// The reading with this number is under way.
    Reading(u64),
    /// This was read. The number is the memory that it takes.
    Read(Vec<Seen>, usize),
    /// The place for the folders that the reading with this number finds.
    Place(u64),
}

/// The next action of the walk.
#[derive(Debug)]
pub(super) enum NextStep {
    /// Read this, as the reading with this number.
    Read(u64, FolderPart),
    /// Take this.
    Take(Vec<Seen>),
    /// Wait until what another thread reads is there.
    Wait,
    Over,
}

/// The steps of a walk, the next one last.
#[derive(Debug, Default)]
pub(super) struct Steps {
    steps: Vec<Step>,
    /// The number of steps that wait to be read, and of those among them that have an open folder.
    waiting: usize,
    open: usize,
    /// The memory of what was read and is not taken.
    bytes: usize,
    /// The number of readings that have begun.
    begun: u64,
}

impl Steps {
    /// Adds a folder, which is read next.
    pub(super) fn push(&mut self, folder: RelativeName) {
        self.steps.push(Step::Waiting(FolderPart::Whole(folder)));
        self.waiting += 1;
    }

    /// Returns what the walk does next.
    pub(super) fn step(&mut self) -> NextStep {
        match self.steps.pop() {
            None => NextStep::Over,
            Some(Step::Waiting(part)) => {
                let top = self.steps.len();
                let (reading, part) = self.begin(top, part);
                NextStep::Read(reading, part)
            }
            Some(Step::Read(seen, bytes)) => {
                self.bytes -= bytes;
                NextStep::Take(seen)
            }
            Some(other) => {
                self.steps.push(other);
                NextStep::Wait
            }
        }
    }

    /// Returns what a thread is to read ahead of the walk, if fewer than `near` portions come before it. Of what is further from
    /// the walk, more would be read than the walk soon takes.
    pub(super) fn next_ahead(&mut self, near: usize) -> Option<(u64, FolderPart)> {
        let at = self.nearest(near)?;
        let Step::Waiting(part) = self.steps.remove(at) else { return None };
        Some(self.begin(at, part))
    }

    /// Returns true if a thread is to be woken to read ahead: more than `own` parts wait, which are read without it, and little was
    /// read ahead.
    pub(super) fn wants_help(&self, near: usize, own: usize) -> bool {
        self.waiting > own && self.nearest(near.div_ceil(2)).is_some()
    }

    /// Returns true if what comes next is not read yet, and no thread reads it.
    pub(super) fn is_next_unread(&self) -> bool {
        matches!(self.steps.last(), Some(Step::Waiting(_)))
    }

    /// Returns the first step that waits to be read, if it may be read ahead.
    fn nearest(&self, near: usize) -> Option<usize> {
        let mut before = 0;
        for (at, step) in self.steps.iter().enumerate().rev() {
            match step {
                Step::Waiting(FolderPart::Whole(_)) if self.open >= MOST_OPEN => return None,
                Step::Waiting(_) => return (self.bytes < MOST_BYTES).then_some(at),
                Step::Reading(_) | Step::Read(..) => before += 1,
                Step::Place(_) => {}
            }
            if before >= near {
                return None;
            }
        }
        None
    }

    /// Begins to read a part that was the step at `at`.
    fn begin(&mut self, at: usize, part: FolderPart) -> (u64, FolderPart) {
        self.begun += 1;
        self.waiting -= 1;
        self.open -= usize::from(matches!(part, FolderPart::Rest(_)));
        self.steps.insert(at, Step::Reading(self.begun));
        self.steps.insert(at, Step::Place(self.begun));
        (self.begun, part)
    }

    /// Leaves what follows the portion of a reading to other threads.
    pub(super) fn leave(&mut self, reading: u64, rest: Arc<OpenFolder>) {
        if let Some(at) = self.under_way(reading) {
            self.steps.insert(at, Step::Waiting(FolderPart::Rest(rest)));
            (self.waiting, self.open) = (self.waiting + 1, self.open + 1);
        }
    }

    /// Takes what a reading has found.
    pub(super) fn finish(&mut self, reading: u64, portion: Portion) {
        let (folders, bytes) = (portion.folders, portion.bytes + OF_PORTION);
        if let Some(at) = self.under_way(reading) {
            self.steps[at] = Step::Read(portion.seen, bytes);
            self.bytes += bytes;
        }
        if let Some(at) = self.position(|step| matches!(step, Step::Place(number) if *number == reading)) {
            self.waiting += folders.len();
            let found = folders.into_iter().map(|folder| Step::Waiting(FolderPart::Whole(folder)));
            drop(self.steps.splice(at..=at, found));
        }
    }

    fn position(&self, is_so: impl Fn(&Step) -> bool) -> Option<usize> {
        self.steps.iter().rposition(is_so)
    }

    /// Returns where the step of a reading that is under way is.
    fn under_way(&self, reading: u64) -> Option<usize> {
        self.position(|step| matches!(step, Step::Reading(number) if *number == reading))
    }
}

#[cfg(test)]
mod tests;
