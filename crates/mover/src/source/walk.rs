//! Adds the entries of the trees to the plan: first all of them, and once their content is settled the folders again, whose
//! modes and times are set last.

use landspeed_record::CopyStage;

use super::folders::FoundFolders;
use super::{LOOK, Sending, made};
use crate::name::RelativeName;
use crate::stage::{self, Pause};
use crate::tree::{self, FoundEntry, OfferBatch, Visitor};
use crate::wire::{EntryKind, Failure, Operation};

impl Sending<'_> {
    pub(super) fn walk(&self) {
        let _life = self.progress.stages.begin(CopyStage::Walk);
        let folders = self.walk_all(false, FoundFolders::default());
        self.progress.walked();
        self.tell_names();
        if self.wait_until(|plan| plan.wants_folders()) {
            self.walk_all(true, folders);
        }
    }

    /// Walks all trees. Returns the folders that were found.
    fn walk_all(&self, only_folders: bool, folders: FoundFolders) -> FoundFolders {
        let mut walk = Walk { sending: self, only_folders, folders, found: OfferBatch::default() };
        tree::walk_all(&self.trees, only_folders, &mut walk);
        self.made.iter().filter(|_| !only_folders).for_each(|files| made::walk(*files, &mut walk));
        if only_folders {
            walk.take_missing();
        }
        walk.hand_over();
        self.change(|plan| plan.walked());
        walk.folders
    }

    /// Waits until `is_so`. Returns false if the copy is over before.
    pub(super) fn wait_until(&self, is_so: impl Fn(&crate::plan::Plan) -> bool) -> bool {
        let mut plan = self.plan.lock();
        while !plan.is_over() && !is_so(&plan) {
            // The other threads signal far more often than this one has something to do.
            stage::wait(Pause::Blocked, || self.moved.wait_for(&mut plan, LOOK));
        }
        !plan.is_over()
    }
}

struct Walk<'a, 'b> {
    sending: &'a Sending<'b>,
    only_folders: bool,
    folders: FoundFolders,
    /// Entries that are not yet in the plan.
    found: OfferBatch,
}

impl Walk<'_, '_> {
    /// Adds the found entries to the plan, once there is room. Returns false if the walk is to end.
    fn hand_over(&mut self) -> bool {
        let found = self.found.take();
        stage::settle(Pause::Device);
        let proven = &self.sending.progress.proven;
        let has_room = |plan: &crate::plan::Plan| !plan.is_full() && !proven.is_full();
        let goes_on = self.sending.wait_until(|plan| has_room(plan) || plan.has_given_up());
        self.sending.change(|plan| {
            if goes_on && !plan.has_given_up() && !found.is_empty() {
                plan.add(found);
            }
            goes_on && !plan.has_given_up()
        })
    }

    /// Takes the folders that the first walk has found and the second one has not: they are named, and get the metadata
    /// that they had first.
    fn take_missing(&mut self) {
        let (missing, others) = std::mem::take(&mut self.folders).missing();
        let plan = self.sending.plan.lock();
        let is_cut_off = plan.is_over() || plan.has_given_up();
        drop(plan);
        // A walk that was cut off has not come to all folders.
        if is_cut_off {
            return;
        }
        for folder in missing {
            let folder = self.now(folder);
            if self.found.push(folder) && !self.hand_over() {
                return;
            }
        }
        let gone = Failure { operation: Operation::Open, errno: libc::ENOENT };
        self.sending.change(|plan| plan.add_failed_unnamed(gone, others));
    }

    /// Returns a folder as it is now. If it is gone, names it and returns it as it was. A folder in one that can no
    /// longer be listed may still exist.
    fn now(&self, before: FoundEntry) -> FoundEntry {
        let seen = self.sending.trees[before.place.tree].look(&before.place.inner);
        let not_a_folder = Failure { operation: Operation::Open, errno: libc::ENOTDIR };
        let failure = match seen {
            Ok(now) if now.is_folder() => return now,
            Ok(_) => not_a_folder,
            Err(failure) => failure,
        };
        self.sending.change(|plan| plan.add_failed_again(before.offered.name.clone(), failure));
        before
    }
}

impl Visitor for Walk<'_, '_> {
    fn found(&mut self, entry: FoundEntry) -> bool {
        match (self.only_folders, &entry.offered.kind) {
            (true, _) => self.folders.add_again(&entry),
            (false, EntryKind::Folder) => self.folders.add(&entry),
            (false, _) => {}
        }
        if !self.only_folders {
            self.sending.progress.found(entry.size());
        }
        !self.found.push(entry) || self.hand_over()
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        self.sending.progress.found(0);
        self.sending.change(|plan| {
            plan.add_failed(name, failure);
            !plan.is_over()
        })
    }
}
