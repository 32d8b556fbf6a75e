//! The end that has the source: it walks the trees, and asks the target about their entries.

mod content;
mod extras;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::atomic::AtomicU32;

use landspeed_record::units::Bytes;
use landspeed_record::{
    CopyCheck, CopyComparison, CopyDifference, CopyDiffering, CopyEntryKind, CopyFailure, PathBytes,
};
use landspeed_transport::CancelFlag;
use parking_lot::{Condvar, Mutex};

use super::lane::{Lane, LaneFlow, Lanes};
use super::links::FirstNames;
use super::message::{Answer, Question};
use super::queue::{CompareQueue, ComparedEntry, NextStep};
use crate::extras::empty_source_words;
use crate::first_error::FirstError;
use crate::link::Flows;
use crate::name::RelativeName;
use crate::pages::PageBuffer;
use crate::source::Source;
use crate::tree::{self, FoundEntry, OfferBatch, ReadProblem, Tree, Visitor};
use crate::wire::{EntryKind, Failure, HardLink};
use crate::{CopyProgress, Error};

/// The number of failures that are listed, which fit a reply even if all names are as long as names can be. Further ones are
/// counted.
const MOST_LISTED: usize = 400;

/// Compares the source with what the target has. The other end calls [`crate::show`]. The entries that differ are in
/// [`CopyProgress::listed`], and must be taken from there while the comparison runs: it waits if too many are not
/// taken.
///
/// # Errors
/// Returns an error if a path of the source cannot be opened, if a flow breaks or falls silent, or if `cancel` is set. An
/// entry that cannot be compared is in the result.
pub fn compare(
    flows: Flows,
    source: &Source,
    check: CopyCheck,
    progress: &CopyProgress,
    cancel: &CancelFlag,
) -> Result<CopyComparison, Error> {
    let comparing = ComparingSource {
        trees: source.open()?,
        tries: !check.verifies(),
        by_content: source.rules.by_content,
        looks_for_extras: source.rules.removal.is_some(),
        lanes: AtomicU32::new(flows.count),
        queue: Mutex::new(CompareQueue::new(check, source.rules.by_content)),
        moved: Condvar::new(),
        tally: Mutex::default(),
        progress,
    };
    let lanes = Lanes::open(flows, progress, cancel)?;
    let first = FirstError::default();
    let fail = |error| {
        first.keep(error);
        comparing.end();
    };
    std::thread::scope(|scope| {
        let mut threads = vec![scope.spawn(|| comparing.walk())];
        for flow in &lanes.flows {
            let (comparing, fail) = (&comparing, &fail);
            threads.push(scope.spawn(move || comparing.ask_all(flow).unwrap_or_else(fail)));
        }
        lanes.watch(cancel, &first, &|| {
            if first.is_there() {
                comparing.end();
            }
            threads.iter().all(|thread| thread.is_finished())
        });
    });
    first.into_result()?;
    Ok(outcome(comparing.tally.into_inner(), source))
}

/// Returns the result of a comparison.
fn outcome(tally: Tally, source: &Source) -> CopyComparison {
    let Tally { mut outcome, emptied, .. } = tally;
    let is_unbounded = source.rules.removal.is_some_and(|removal| removal.most.is_none());
    if let Some((tree, extras)) = emptied.filter(|_| is_unbounded) {
        outcome.empty_source = empty_source_words(source.roots[tree].path.as_path(), extras, outcome.extra);
    }
    outcome
}

/// State that the threads of the source share.
struct ComparingSource<'a> {
    trees: Vec<Tree>,
    /// True to open each file that a copy would read, to find out whether it can.
    tries: bool,
    /// True if the copy compares files of the same length by content.
    by_content: bool,
    /// True to ask what only the target has, once all entries are compared.
    looks_for_extras: bool,
    /// The number of flows that still have questions about entries.
    lanes: AtomicU32,
    queue: Mutex<CompareQueue>,
    /// Signalled when there may be something to do.
    moved: Condvar,
    tally: Mutex<Tally>,
    progress: &'a CopyProgress,
}

/// The counts of what was compared so far.
#[derive(Debug, Default)]
struct Tally {
    outcome: CopyComparison,
    /// Bytes of content that are compared, or that need not be read.
    moved_bytes: u64,
    /// The first tree that is an empty folder although the target's folder is not, and the number of the target's
    /// entries.
    emptied: Option<(usize, u64)>,
}

/// One flow, as the source uses it.
struct QuestionLane<'a> {
    lane: &'a Lane<'a, Answer>,
    /// Memory for the pieces that are read.
    buffer: PageBuffer,
}

impl QuestionLane<'_> {
    fn tell(&self, question: &Question) -> Result<(), Error> {
        self.lane.send(question)
    }

    fn ask(&self, question: &Question) -> Result<Answer, Error> {
        self.tell(question)?;
        self.more()
    }

    /// Waits for a further answer to the same question.
    fn more(&self) -> Result<Answer, Error> {
        self.lane.next()?.ok_or_else(|| Error::Flow(ErrorKind::UnexpectedEof.into()))
    }
}

fn unasked() -> Error {
    Error::Protocol("it does not answer the question that it was asked")
}

impl ComparingSource<'_> {
    /// Changes the queue, and wakes the threads for which there may be something to do.
    fn change<T>(&self, change: impl FnOnce(&mut CompareQueue) -> T) -> T {
        let changed = change(&mut self.queue.lock());
        self.moved.notify_all();
        changed
    }

    /// Ends the comparison for all threads.
    fn end(&self) {
        self.change(CompareQueue::end);
    }

    fn walk(&self) {
        let mut walk =
            Walk { comparing: self, found: OfferBatch::default(), first_names: FirstNames::default() };
        tree::walk_all(&self.trees, false, &mut walk);
        walk.hand_over();
        self.change(CompareQueue::walked);
        self.progress.walked();
    }

    /// Adds entries that the walk has found, once there is room. Returns false if the comparison is over before.
    fn add(&self, found: Vec<FoundEntry>) -> bool {
        let mut queue = self.queue.lock();
        while queue.is_full() && !queue.is_over() {
            self.moved.wait(&mut queue);
        }
        queue.add(found);
        let goes_on = !queue.is_over();
        drop(queue);
        self.moved.notify_all();
        goes_on
    }

    /// Returns the next step of a flow. Waits while there is none.
    fn next(&self) -> NextStep {
        let mut queue = self.queue.lock();
        loop {
            match queue.step() {
                NextStep::Wait => self.moved.wait(&mut queue),
                step => {
                    // The walk may wait for room.
                    self.moved.notify_all();
                    return step;
                }
            }
        }
    }

    /// Asks over one flow until the comparison is over.
    fn ask_all(&self, flow: &LaneFlow) -> Result<(), Error> {
        flow.carry::<Answer>(|lane| {
            let mut lane = QuestionLane { lane, buffer: PageBuffer::default() };
            loop {
                match self.next() {
                    NextStep::Look(found) => self.look(found, &lane)?,
                    NextStep::Read(work) => self.read(&work, &mut lane)?,
                    NextStep::Wait | NextStep::Over => return self.ask_for_extras(&lane),
                }
            }
        })
    }

    /// Asks how entries differ.
    fn look(&self, mut found: Vec<FoundEntry>, lane: &QuestionLane<'_>) -> Result<(), Error> {
        let entries = found.iter().map(|one| one.offered.clone()).collect();
        // A file whose content is to be read waits without them.
        found.iter_mut().for_each(|one| one.offered.metadata.attributes.clear());
        let Answer::Seen(seen) = lane.ask(&Question::Look(entries))? else { return Err(unasked()) };
        if seen.len() != found.len() {
            return Err(unasked());
        }
        let seen = seen.into_iter().map(|seen| seen.map_err(|failure| failure.words_at_target()));
        let compared = self.change(|queue| queue.seen(found, seen));
        compared.into_iter().for_each(|one| self.settle(one));
        Ok(())
    }

    /// Counts an entry, and lists it if it differs.
    fn settle(&self, entry: ComparedEntry) {
        let ComparedEntry { found, differs, read_bytes } = entry;
        let size = found.size();
        match differs.and_then(|differs| self.tried(&found, differs)) {
            Err(why) => self.fail(&found.offered.name, why, size - read_bytes),
            Ok(differs) => {
                self.count(size - read_bytes, |outcome| {
                    outcome.compared += 1;
                    outcome.compared_bytes += Bytes(size);
                    outcome.differing += u64::from(!differs.is_empty());
                });
                if !differs.is_empty() {
                    let is_over = || self.queue.lock().is_over();
                    self.progress.listing.add(differing(&found, differs), &is_over);
                }
            }
        }
    }

    /// Returns how an entry differs, or why the copy that is tried could not read the file that it would send. Opening
    /// the file is enough, and changes nothing. A hard link is not read: its file fails under its first name.
    fn tried(
        &self,
        found: &FoundEntry,
        differs: BTreeSet<CopyDifference>,
    ) -> Result<BTreeSet<CopyDifference>, String> {
        let offered = &found.offered;
        let is_file =
            matches!(offered.kind, EntryKind::File { .. }) && !matches!(offered.link, HardLink::To(_));
        let is_sent = || differs.iter().any(|one| one.sends_content(self.by_content));
        let opened = (self.tries && is_file && is_sent())
            .then(|| self.trees[found.place.tree].read(&found.place, |_| Ok(())));
        match opened {
            Some(Err(ReadProblem::Failed(failure))) => Err(failure.words()),
            // A copy looks again at an entry that has changed meanwhile.
            Some(Err(ReadProblem::Changed) | Ok(())) | None => Ok(differs),
        }
    }

    fn fail(&self, name: &RelativeName, why: String, bytes: u64) {
        self.count(bytes, |outcome| {
            outcome.failed += 1;
            if outcome.failures.len() < MOST_LISTED {
                let name_hex = PathBytes(name.as_bytes().to_vec());
                outcome.failures.push(CopyFailure { name_hex, why });
            }
        });
    }

    /// Counts entries, and bytes that are compared or need not be.
    fn count(&self, bytes: u64, count: impl FnOnce(&mut CopyComparison)) {
        let mut tally = self.tally.lock();
        count(&mut tally.outcome);
        tally.moved_bytes += bytes;
        self.progress.moved(tally.outcome.compared + tally.outcome.failed, tally.moved_bytes);
    }
}

fn differing(found: &FoundEntry, differs: BTreeSet<CopyDifference>) -> CopyDiffering {
    let kind = match (&found.offered.kind, &found.offered.link) {
        (EntryKind::File { .. }, HardLink::To(_)) => CopyEntryKind::HardLink,
        (EntryKind::File { .. }, _) => CopyEntryKind::File,
        (EntryKind::Folder, _) => CopyEntryKind::Folder,
        (EntryKind::Symlink { .. }, _) => CopyEntryKind::Link,
        (EntryKind::Fifo, _) => CopyEntryKind::Fifo,
        (EntryKind::Device(_), _) => CopyEntryKind::Device,
    };
    CopyDiffering {
        name_hex: PathBytes(found.offered.name.as_bytes().to_vec()),
        kind,
        size_bytes: Bytes(if kind == CopyEntryKind::File { found.size() } else { 0 }),
        differs,
    }
}

/// Takes what the walk finds into the comparison.
struct Walk<'a, 'b> {
    comparing: &'a ComparingSource<'b>,
    /// Entries that are not yet in the queue.
    found: OfferBatch,
    first_names: FirstNames,
}

impl Walk<'_, '_> {
    fn hand_over(&mut self) -> bool {
        self.comparing.add(self.found.take())
    }
}

impl Visitor for Walk<'_, '_> {
    fn found(&mut self, mut entry: FoundEntry) -> bool {
        self.first_names.sort(&mut entry);
        self.comparing.progress.found(entry.size());
        !self.found.push(entry) || self.hand_over()
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        self.comparing.progress.found(0);
        self.comparing.fail(&name, failure.words(), 0);
        !self.comparing.queue.lock().is_over()
    }
}
