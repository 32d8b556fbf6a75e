//! The removal of extras (entries that only the target has), once all entries are settled and none has failed.
//!
//! The names are sent twice. First the target only counts: nothing is removed if it finds more extras than allowed, or
//! if any folder of either end fails. Nor is anything removed where a folder of the source is empty, unless the user
//! has given a bound: a mount may be missing there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{FailedEntry, Phase, Plan, Work};
use crate::extras::FolderNames;
use crate::name::RelativeName;
use crate::select::Removal;
use crate::wire::{Failure, Swept};

/// The largest number of messages with names that wait or are not answered.
const MOST_UNANSWERED: usize = 16;

/// Why nothing was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotRemoved {
    /// Entries have failed.
    Failures,
    /// The target has this number of extras.
    TooMany(u64),
    /// A tree of the source is an empty folder, and the target has something in its place.
    EmptySource(EmptySource),
}

/// A tree that is an empty folder, although the target has something in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EmptySource {
    /// The number of the tree.
    pub(crate) tree: usize,
    /// The extras in its place, and all extras.
    pub(crate) extras: u64,
    pub(crate) all: u64,
}

/// The state of the removal.
#[derive(Debug)]
pub(super) struct RemovalPlan {
    most: Option<u64>,
    /// False while extras are only counted.
    removes: bool,
    /// The number of the next message.
    next: u64,
    queue: VecDeque<(u64, Vec<FolderNames>)>,
    unanswered: BTreeSet<u64>,
    /// The extras that were counted.
    found: u64,
    /// The messages about empty trees that are not answered, with the numbers of the trees.
    empty: BTreeMap<u64, usize>,
    /// The first tree that is empty, and the extras in its place.
    emptied: Option<(usize, u64)>,
}

impl Plan {
    /// Returns the plan of a copy that removes what only the target has, if this is asked for.
    pub(crate) fn removing(mut self, removal: Option<Removal>) -> Self {
        self.removal = removal.map(|removal| RemovalPlan {
            most: removal.most,
            removes: false,
            next: 0,
            queue: VecDeque::new(),
            unanswered: BTreeSet::new(),
            found: 0,
            empty: BTreeMap::new(),
            emptied: None,
        });
        self
    }

    /// Returns true if the walk is to list the names in the source's folders.
    pub(crate) fn wants_names(&self) -> bool {
        self.phase == Phase::Removing && !self.is_walked
    }

    /// Returns true if no further names are to be added now.
    pub(crate) fn has_many_names(&self) -> bool {
        self.removal.as_ref().is_some_and(|removal| removal.unanswered.len() >= MOST_UNANSWERED)
    }

    /// Adds the names in folders of the source.
    pub(crate) fn add_names(&mut self, folders: Vec<FolderNames>) {
        if let Some(removal) = &mut self.removal {
            removal.queue.push_back((removal.next, folders));
            removal.unanswered.insert(removal.next);
            removal.next += 1;
        }
    }

    /// Adds that a tree of the source is an empty folder. Without a bound, the message is sent only while extras are
    /// counted: if the target removes anything later, its folder was empty too, or the source's was emptied meanwhile.
    pub(crate) fn add_empty(&mut self, tree: usize, folder: Vec<FolderNames>) {
        let Some(removal) = &mut self.removal else { return };
        if !removal.removes || removal.most.is_some() {
            removal.empty.insert(removal.next, tree);
            self.add_names(folder);
        }
    }

    /// Takes the extras that the target has found or removed. An answer without a question is ignored.
    pub(crate) fn swept(&mut self, number: u64, swept: Swept) {
        let Some(removal) = &mut self.removal else { return };
        if !removal.unanswered.remove(&number) {
            return;
        }
        let empty = removal.empty.remove(&number).filter(|_| swept.extras > 0);
        removal.emptied = removal.emptied.or(empty.map(|tree| (tree, swept.extras)));
        match removal.removes {
            true => self.settled.deleted = self.settled.deleted.saturating_add(swept.extras),
            false => removal.found = removal.found.saturating_add(swept.extras),
        }
        let named = swept.failures.len() as u64;
        swept.failures.into_iter().for_each(|(name, failure)| self.count_unremoved(name, failure));
        self.settled.failed = self.settled.failed.saturating_add(swept.failed.saturating_sub(named));
    }

    fn count_unremoved(&mut self, name: RelativeName, failure: Failure) {
        self.settled.fail(FailedEntry { name, failure, is_at_target: true });
    }

    /// Returns the next message with names.
    pub(super) fn names(&mut self) -> Option<Work> {
        let removal = self.removal.as_mut()?;
        let (number, folders) = removal.queue.pop_front()?;
        Some(Work::Names { number, folders, removes: removal.removes })
    }

    /// Returns true while names wait or are not answered.
    pub(super) fn awaits_answers(&self) -> bool {
        self.removal.as_ref().is_some_and(|removal| !removal.unanswered.is_empty())
    }

    /// Returns the phase after that in which all entries are settled.
    pub(super) fn after_content(&mut self) -> Phase {
        match (self.removal.is_some(), self.settled.failed) {
            (false, _) => Phase::Folders,
            (true, 0) => Phase::Removing,
            (true, _) => self.without_removal(NotRemoved::Failures),
        }
    }

    /// Returns the phase after the names of all folders were sent once.
    pub(super) fn after_names(&mut self) -> Phase {
        let failed = self.settled.failed;
        match &mut self.removal {
            Some(removal) if !removal.removes => match (removal.found, removal.most, removal.emptied) {
                _ if failed > 0 => self.without_removal(NotRemoved::Failures),
                (0, ..) => Phase::Folders,
                (found, Some(most), _) if found > most => self.without_removal(NotRemoved::TooMany(found)),
                (all, None, Some((tree, extras))) => {
                    self.without_removal(NotRemoved::EmptySource(EmptySource { tree, extras, all }))
                }
                _ => {
                    removal.removes = true;
                    Phase::Removing
                }
            },
            _ => Phase::Folders,
        }
    }

    fn without_removal(&mut self, why: NotRemoved) -> Phase {
        self.settled.not_removed = Some(why);
        Phase::Folders
    }
}
