//! The end that has the source: it walks the trees, and asks the target about their entries.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use landspeed_record::units::Bytes;
use landspeed_record::{
    CopyComparison, CopyDifference, CopyDiffering, CopyEntryKind, CopyFailure, PathBytes,
};
use landspeed_transport::{CancelFlag, Flow};
use parking_lot::{Condvar, Mutex};

use super::Seen;
use super::queue::{CompareQueue, NextStep};
use crate::name::RelativeName;
use crate::plan::MOST_LISTED;
use crate::source::{Source, open};
use crate::threads::{FirstError, watch};
use crate::tree::{FoundEntry, Tree, Visitor};
use crate::wire::{EntryKind, Failure, FrameReader, FrameWriter, MOST_OFFERED};
use crate::{CopyProgress, Error};

/// Compares the source with what the target has. The other end calls [`crate::show`]. The entries that differ are in
/// [`CopyProgress::listed`], from where they must be taken while the comparison goes on: it waits where many wait there.
///
/// # Errors
/// Returns an error if a path of the source cannot be opened, if a flow breaks, or if `cancel` is set. An entry that
/// cannot be compared is in the result.
pub fn compare(
    flows: &[Box<dyn Flow>],
    source: &Source,
    progress: &CopyProgress,
    cancel: &CancelFlag,
) -> Result<CopyComparison, Error> {
    let trees = source.roots.iter().enumerate().map(|(number, root)| open(number, root));
    let comparing = Comparing {
        trees: trees.collect::<Result<_, _>>()?,
        queue: Mutex::default(),
        moved: Condvar::new(),
        outcome: Mutex::default(),
        progress,
    };
    let first = FirstError::default();
    let fail = |error| {
        first.keep(error);
        comparing.end();
    };
    std::thread::scope(|scope| {
        let mut threads = vec![scope.spawn(|| comparing.walk())];
        for flow in flows {
            let (comparing, fail) = (&comparing, &fail);
            threads.push(scope.spawn(move || comparing.ask_all(flow.as_ref()).unwrap_or_else(fail)));
        }
        watch(flows, cancel, &first, &|| {
            if cancel.is_cancelled() {
                fail(Error::Cancelled);
            }
            threads.iter().all(|thread| thread.is_finished())
        });
    });
    first.into_result()?;
    Ok(comparing.outcome.into_inner())
}

/// What the threads of the source share.
struct Comparing<'a> {
    trees: Vec<Tree>,
    queue: Mutex<CompareQueue>,
    /// Signalled when there may be something to do.
    moved: Condvar,
    outcome: Mutex<CopyComparison>,
    progress: &'a CopyProgress,
}

impl Comparing<'_> {
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
        let mut walk = Walk { comparing: self, found: Vec::new() };
        self.trees.iter().for_each(|tree| tree.walk(false, &mut walk));
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
    fn ask_all(&self, flow: &dyn Flow) -> Result<(), Error> {
        let mut writer = FrameWriter::new(flow.sender()?);
        let mut reader = FrameReader::new(flow.receiver()?);
        while let NextStep::Look(found) = self.next() {
            let entries: Vec<_> = found.iter().map(|one| one.offered.clone()).collect();
            writer.send(&entries, &[]).map_err(Error::Flow)?;
            let answer = reader.next::<Vec<Seen>>().map_err(Error::Flow)?;
            let (seen, _) = answer.ok_or_else(|| Error::Flow(ErrorKind::UnexpectedEof.into()))?;
            if seen.len() != found.len() {
                return Err(Error::Protocol("it does not answer what it was asked"));
            }
            found.into_iter().zip(seen).for_each(|(found, seen)| self.settle(&found, seen));
        }
        Ok(())
    }

    /// Counts an entry, and lists it if it differs.
    fn settle(&self, found: &FoundEntry, seen: Seen) {
        let size = Bytes(found.size());
        match seen {
            Err(failure) => self.fail(&found.offered.name, failure),
            Ok(differs) => {
                let is_differing = !differs.is_empty();
                self.count(|outcome| {
                    outcome.compared += 1;
                    outcome.compared_bytes += size;
                    outcome.differing += u64::from(is_differing);
                });
                if is_differing {
                    let is_over = || self.queue.lock().is_over();
                    self.progress.listing.add(differing(found, differs), &is_over);
                }
            }
        }
    }

    fn fail(&self, name: &RelativeName, failure: Failure) {
        self.count(|outcome| {
            outcome.failed += 1;
            if outcome.failures.len() < MOST_LISTED {
                let name_hex = PathBytes(name.as_bytes().to_vec());
                outcome.failures.push(CopyFailure { name_hex, why: failure.words() });
            }
        });
    }

    fn count(&self, count: impl FnOnce(&mut CopyComparison)) {
        let mut outcome = self.outcome.lock();
        count(&mut outcome);
        self.progress.moved(outcome.compared + outcome.failed, outcome.compared_bytes.0);
    }
}

fn differing(found: &FoundEntry, differs: BTreeSet<CopyDifference>) -> CopyDiffering {
    CopyDiffering {
        name_hex: PathBytes(found.offered.name.as_bytes().to_vec()),
        kind: match found.offered.kind {
            EntryKind::File { .. } => CopyEntryKind::File,
            EntryKind::Folder => CopyEntryKind::Folder,
            EntryKind::Symlink { .. } => CopyEntryKind::Link,
        },
        size_bytes: Bytes(found.size()),
        differs,
    }
}

struct Walk<'a, 'b> {
    comparing: &'a Comparing<'b>,
    /// Entries that are not yet in the queue.
    found: Vec<FoundEntry>,
}

impl Walk<'_, '_> {
    fn hand_over(&mut self) -> bool {
        self.comparing.add(std::mem::take(&mut self.found))
    }
}

impl Visitor for Walk<'_, '_> {
    fn found(&mut self, entry: FoundEntry) -> bool {
        self.comparing.progress.found(entry.size());
        self.found.push(entry);
        self.found.len() < MOST_OFFERED || self.hand_over()
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        self.comparing.progress.found(0);
        self.comparing.fail(&name, failure);
        !self.comparing.queue.lock().is_over()
    }
}
